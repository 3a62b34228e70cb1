import assert from "node:assert/strict";
import { test } from "node:test";
import { createTurn, forEachInTurns } from "./turn.ts";

test("a slice is over after five milliseconds, and the next one starts after the event loop", async () => {
  let now = 0;
  const turn = createTurn(() => now);
  assert.equal(turn.isOver(), false);
  now = 5;
  assert.equal(turn.isOver(), true);
  let isServed = false;
  setImmediate(() => {
    isServed = true;
  });
  await turn.next();
  assert.equal(isServed, true);
  assert.equal(turn.isOver(), false);
});

test("other work runs between the items of long work", async () => {
  const seen: (number | string)[] = [];
  setImmediate(() => seen.push("other"));
  await forEachInTurns([1, 2, 3], (item) => {
    seen.push(item);
    for (const until = performance.now() + 6; performance.now() < until; );
  });
  assert.deepEqual(
    seen.filter((item) => item !== "other"),
    [1, 2, 3],
  );
  assert.ok(seen.indexOf("other") < seen.indexOf(3));
});
