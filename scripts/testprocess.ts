/**
 * One of the processes of `scripts/test.ts`: runs test files one after the other. A file is a suite in the output. Nothing may import
 * `node:test` before `loadRunner`.
 */
import asyncHooks, { AsyncLocalStorage, AsyncResource, type HookCallbacks } from "node:async_hooks";
import { readdirSync, readFileSync, readlinkSync, renameSync, unlinkSync, writeFileSync } from "node:fs";
import { flushCompileCache } from "node:module";
import { cpus } from "node:os";
import { join, resolve } from "node:path";
import type { suite } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { pathToFileURL } from "node:url";

/** Milliseconds that a process gets to end after its last file, and the run after its last process; `TEST_GRACE` changes it. */
export const grace = Number(process.env["TEST_GRACE"] ?? 30_000);

/** The test that the running code belongs to; undefined outside of tests. */
const current = new AsyncLocalStorage<AsyncResource>();

/**
 * Loads the test runner so that it finds the test of the running code through `current`. By itself it uses a hook on every asynchronous
 * operation, which took a fifth of the processor time of most files. The runner looks up tests by the number of the running operation, and
 * its hook notes the numbers of tests: it gets the number of the test instead, and its hook is called for tests only.
 */
async function loadRunner(): Promise<{ readonly describe: typeof suite }> {
  const { createHook, executionAsyncId } = asyncHooks;
  let note: HookCallbacks["init"];
  class Resource extends AsyncResource {
    constructor(...args: ConstructorParameters<typeof AsyncResource>) {
      super(...args);
      note?.(this.asyncId(), "Test", 0, this);
    }
    override runInAsyncScope<This, Result>(
      fn: (this: This, ...args: never[]) => Result,
      self?: This,
      ...args: never[]
    ): Result {
      return super.runInAsyncScope(() => current.run(this, () => fn.apply(self as This, args)));
    }
  }
  const replaced = {
    AsyncResource: Resource,
    executionAsyncId: () => current.getStore()?.asyncId() ?? executionAsyncId(),
    createHook(callbacks: HookCallbacks) {
      note = callbacks.init;
      const hook = { enable: () => hook, disable: () => hook };
      return hook;
    },
  };
  Object.assign(asyncHooks, replaced);
  try {
    return await import("node:test");
  } finally {
    Object.assign(asyncHooks, { AsyncResource, createHook, executionAsyncId });
  }
}

/** Returns the name of the pipe behind a file descriptor. */
function outputOf(descriptor: number): string {
  try {
    return readlinkSync(`/proc/self/fd/${descriptor}`);
  } catch {
    return "";
  }
}

/** Returns the milliseconds that the processors were idle, and all their time, since the start of the system. */
function readTimes(): { readonly idle: number; readonly all: number } {
  const sum = (numbers: readonly number[]): number => numbers.reduce((total, number) => total + number, 0);
  const times = cpus().map((processor) => processor.times);
  return { idle: sum(times.map(({ idle }) => idle)), all: sum(times.flatMap(Object.values)) };
}

/** Part of the time of the processors that is idle before another process takes a file. */
const spare = 0.2;

/** Waits until the processors have been idle for a part of the last seconds, or the queue is empty. Processes that begin together end apart. */
async function untilIdle(queue: string): Promise<void> {
  for (let before = readTimes(); readdirSync(queue).some((name) => !name.endsWith(".runs")); ) {
    await pause(500 + 500 * Math.random());
    const now = readTimes();
    if (now.idle - before.idle >= spare * (now.all - before.all)) return;
    before = now;
  }
}

/** Takes the next file from the queue; null: it is empty. Of several processes that want the same file, one renames it. */
function take(queue: string): { readonly file: string; end(): void } | null {
  for (const name of readdirSync(queue).sort()) {
    if (name.endsWith(".runs")) continue;
    const [waiting, runs] = [join(queue, name), join(queue, `${name}.runs`)];
    try {
      renameSync(waiting, runs);
    } catch {
      continue;
    }
    return { file: readFileSync(runs, "utf8"), end: () => unlinkSync(runs) };
  }
  return null;
}

const countOf = (list: readonly string[], name: string): number => list.filter((each) => each === name).length;

/**
 * Runs the files of the queue, a folder with one entry per file, whose content is its path. A process that `waits` takes a file only while
 * processors are idle. When this process exits, it writes the names of its outputs to a file in `ended`.
 */
export async function runFiles(queue: string, ended: string, waits: boolean): Promise<void> {
  const { describe } = await loadRunner();
  // Otherwise the process ends when the tests of a file wait for nothing but timers that do not keep it alive.
  const alive = setInterval(() => {}, 60_000);
  let running = new AbortController();
  for (const event of ["uncaughtException", "unhandledRejection"] as const)
    process.on(event, (error: unknown) => {
      // The runner fails the test that an error belongs to. An error without a test fails the file, which might wait for ever.
      if (current.getStore() === undefined) running.abort(error);
    });
  process.on("exit", () => writeFileSync(join(ended, String(process.pid)), [1, 2].map(outputOf).join("\n")));
  const open: string[] = [];
  for (;;) {
    if (waits) await untilIdle(queue);
    const next = take(queue);
    if (next === null) break;
    const { file, end } = next;
    const before = process.getActiveResourcesInfo();
    running = new AbortController();
    await describe(file, { signal: running.signal }, () => import(pathToFileURL(resolve(file)).href));
    // Otherwise Node writes the compiled code when the process ends, and processes that begin later compile the same modules.
    flushCompileCache();
    const after = process.getActiveResourcesInfo();
    const more = [...new Set(after)].filter((name) => countOf(after, name) > countOf(before, name));
    if (more.length > 0) open.push(`${file} (${more.join(", ")})`);
    end();
  }
  clearInterval(alive);
  setTimeout(() => {
    console.error(`Ended with open handles, perhaps of these files: ${open.join("; ")}`);
    process.exit(1);
  }, grace).unref();
}
