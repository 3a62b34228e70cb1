import assert from "node:assert/strict";
import { test } from "node:test";
import { createQueue } from "./queue.ts";

const settle = () => new Promise(setImmediate);

test("owners take turns, each in the order of his own asking", async () => {
  const queue = createQueue(1);
  const first = await queue.enter(9);
  const order: string[] = [];
  const ends: (() => void)[] = [];
  for (const [owner, name] of [
    [1, "a1"],
    [1, "a2"],
    [1, "a3"],
    [2, "b1"],
    [3, "c1"],
    [2, "b2"],
  ] as const)
    void queue.enter(owner).then((end) => ends.push(end) && order.push(name));
  first();
  for (let turn = 0; turn < 6; turn++) {
    await settle();
    assert.equal(order.length, turn + 1);
    ends[turn]?.();
  }
  assert.deepEqual(order, ["a1", "b1", "c1", "a2", "b2", "a3"]);
});

test("only so many are inside, and leaving twice frees one place", async () => {
  const queue = createQueue(2);
  const one = await queue.enter(1);
  await queue.enter(1);
  let inside = 0;
  for (let more = 0; more < 3; more++) void queue.enter(1).then(() => inside++);
  await settle();
  assert.equal(inside, 0);
  one();
  one();
  await settle();
  assert.equal(inside, 1);
});

test("who gives up leaves no hole", async () => {
  const queue = createQueue(1);
  const inside = await queue.enter(1);
  const off = new AbortController();
  const given = assert.rejects(queue.enter(2, off.signal), /enough/);
  const next = queue.enter(2);
  off.abort(new Error("enough"));
  await given;
  inside();
  (await next)();
  await assert.rejects(queue.enter(3, AbortSignal.abort(new Error("before"))), /before/);
  (await queue.enter(3))();
});
