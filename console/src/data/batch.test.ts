import assert from "node:assert/strict";
import { test } from "node:test";
import type { Event } from "@brume/api/event.ts";
import { waitUntil } from "../../../test/support/waituntil.ts";
import { createBatches } from "./batch.ts";

const event = (ID: number): Event => ({ ID }) as Event;

test("events are passed on once per frame, and also if the page draws no frame any more", async () => {
  const frames: (() => void)[] = [];
  const passed: number[][] = [];
  const take = createBatches(
    (events) => passed.push(events.map(({ ID }) => ID)),
    (draw) => frames.push(draw),
  );
  const isPassed = (count: number) =>
    waitUntil(
      "events",
      () => passed.length,
      (found) => found === count,
    );
  for (const ID of [1, 2]) take(event(ID));
  assert.deepEqual(passed, []);
  frames.pop()?.();
  assert.deepEqual(passed, [[1, 2]]);
  for (const ID of [3, 4]) take(event(ID));
  await isPassed(2);
  // The frame is drawn when the page is visible again.
  for (const ID of [5, 6]) take(event(ID));
  frames.shift()?.();
  await isPassed(3);
  assert.deepEqual(passed, [
    [1, 2],
    [3, 4],
    [5, 6],
  ]);
});
