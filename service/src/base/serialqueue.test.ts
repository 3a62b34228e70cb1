import assert from "node:assert/strict";
import { test } from "node:test";
import { createKeyedQueue, createSerialQueue } from "./serialqueue.ts";

const settle = () => new Promise(setImmediate);

test("work of one key runs in order, work of different keys in parallel", async () => {
  const queue = createKeyedQueue();
  const log: string[] = [];
  let free = () => {};
  const held = queue.run([1], () => new Promise<void>((resolve) => (free = resolve)));
  const second = queue.run([1], async () => void log.push("second"));
  await queue.run([2], async () => void log.push("other"));
  await settle();
  assert.deepEqual(log, ["other"]);
  free();
  await Promise.all([held, second]);
  assert.deepEqual(log, ["other", "second"]);
});

test("only the caller of a failed work gets its error", async () => {
  const queue = createKeyedQueue();
  await assert.rejects(
    queue.run([1], () => Promise.reject(new Error("no"))),
    /no/,
  );
  assert.equal(await queue.run([1], async () => 5), 5);
});

test("two works that need the same two keys do not deadlock", async () => {
  const queue = createKeyedQueue();
  const works = [
    [1, 2],
    [2, 1],
    [1, 2],
    [2, 2],
  ].map((ids, index) => queue.run(ids, settle).then(() => index));
  assert.deepEqual(await Promise.all(works), [0, 1, 2, 3]);
  await queue.settle();
});

test("one queue runs work in order, also after a failure, and settles with the last", async () => {
  const queue = createSerialQueue();
  const log: number[] = [];
  const works = [1, 2, 3].map((number) =>
    queue.run(async () => {
      await settle();
      log.push(number);
      if (number === 2) throw new Error("no");
      return number;
    }),
  );
  const ends = Promise.allSettled(works);
  await queue.settle();
  assert.deepEqual(log, [1, 2, 3]);
  assert.deepEqual(
    (await ends).map(({ status }) => status),
    ["fulfilled", "rejected", "fulfilled"],
  );
});
