import assert from "node:assert/strict";
import { test } from "node:test";
import { createQueue } from "./bootqueue.ts";

/** Polls for all servers until each had a slot, and releases it at once. Returns the order. */
function drain(
  queue: ReturnType<typeof createQueue>,
  all: readonly (readonly [id: number, owner: number])[],
): number[] {
  const order: number[] = [];
  while (order.length < all.length)
    for (const [id, owner] of all.toReversed()) {
      if (order.includes(id)) continue;
      const slot = queue.enter(id, owner);
      if (typeof slot === "number") continue;
      order.push(id);
      slot();
    }
  return order;
}

const enter = (queue: ReturnType<typeof createQueue>, id: number, owner = 1): (() => void) => {
  const slot = queue.enter(id, owner);
  if (typeof slot === "number") assert.fail(`server ${id} got no slot; ${slot} are before it`);
  return slot;
};

test("owners take turns, their servers in order of arrival, and each position is returned", () => {
  const queue = createQueue(1, () => 0);
  const release = enter(queue, 9, 9);
  const all = [
    [11, 1],
    [12, 1],
    [13, 1],
    [21, 2],
    [31, 3],
    [22, 2],
  ] as const;
  for (const [id, owner] of all) queue.enter(id, owner);
  assert.deepEqual(
    all.map(([id, owner]) => queue.enter(id, owner)),
    [0, 3, 5, 1, 2, 4],
  );
  release();
  assert.deepEqual(drain(queue, all), [11, 21, 31, 12, 22, 13]);
});

test("limits the number of slots, and a second release has no effect", () => {
  const queue = createQueue(2, () => 0);
  const one = enter(queue, 1);
  enter(queue, 2);
  assert.deepEqual([queue.enter(3, 1), queue.enter(4, 1)], [0, 1]);
  one();
  one();
  enter(queue, 3);
  assert.equal(queue.enter(4, 1), 0);
});

test("a second start keeps the slot, and the first release has no effect", () => {
  const queue = createQueue(1, () => 0);
  const first = enter(queue, 1);
  const second = enter(queue, 1);
  first();
  assert.equal(queue.enter(2, 1), 0);
  second();
  enter(queue, 2);
});

test("servers that quit or no longer poll leave the queue", () => {
  let time = 0;
  const queue = createQueue(1, () => time);
  const release = enter(queue, 1);
  assert.deepEqual([queue.enter(2, 2), queue.enter(3, 2), queue.enter(4, 2)], [0, 1, 2]);
  queue.quit(2);
  assert.equal(queue.enter(4, 2), 1);
  time = 60_000;
  assert.equal(queue.enter(4, 2), 1);
  time = 100_000;
  assert.equal(queue.enter(4, 2), 0);
  release();
  enter(queue, 4, 2);
});
