import assert from "node:assert/strict";
import { test } from "node:test";
import { createTurns } from "./turn.ts";

const settle = () => new Promise(setImmediate);

test("works on one server wait for each other, on others they do not", async () => {
  const turns = createTurns();
  const log: string[] = [];
  let free = () => {};
  const held = turns.take([1], () => new Promise<void>((resolve) => (free = resolve)));
  const second = turns.take([1], async () => void log.push("second"));
  await turns.take([2], async () => void log.push("other"));
  await settle();
  assert.deepEqual(log, ["other"]);
  free();
  await Promise.all([held, second]);
  assert.deepEqual(log, ["other", "second"]);
});

test("a failure is the caller's own", async () => {
  const turns = createTurns();
  await assert.rejects(
    turns.take([1], () => Promise.reject(new Error("no"))),
    /no/,
  );
  assert.equal(await turns.take([1], async () => 5), 5);
});

test("two who need the same two never wait for each other", async () => {
  const turns = createTurns();
  const works = [
    [1, 2],
    [2, 1],
    [1, 2],
    [2, 2],
  ].map((ids, index) => turns.take(ids, settle).then(() => index));
  assert.deepEqual(await Promise.all(works), [0, 1, 2, 3]);
  await turns.settle();
});
