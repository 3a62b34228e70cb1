/** Waits for a condition of a test. A wait that does not end fails with the last state: a time-out of the test runner shows none. */
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { inspect } from "node:util";

/** Milliseconds, far above what a busy host needs. */
const limit = 180_000;

/** Reads a value until it fits, and resolves to it. `what` is the end of the sentence `waited for …`. */
export async function waitUntil<T>(
  what: string,
  read: () => T | Promise<T>,
  fits: (value: T) => boolean,
  pause = 5,
): Promise<T> {
  const end = performance.now() + limit;
  for (;;) {
    const value = await read();
    if (fits(value)) return value;
    if (performance.now() > end) assert.fail(`waited for ${what}; the last state: ${inspect(value, { depth: 4 })}`);
    await sleep(pause);
  }
}

/**
 * Polls until there is a result, and resolves to it. An empty text is none. The pauses grow: many polls start programs, whose processor time is
 * missing elsewhere.
 */
export async function until<T>(
  what: string,
  poll: () => T | null | undefined | false | Promise<T | null | undefined | false>,
  milliseconds = limit,
): Promise<T> {
  const end = performance.now() + milliseconds;
  for (let pause = 10; ; pause = Math.min(1.5 * pause, 250)) {
    const found = await poll();
    if (found !== null && found !== undefined && found !== false && found !== "") return found;
    if (performance.now() > end) assert.fail(`waited ${milliseconds} ms until ${what}`);
    await sleep(pause);
  }
}
