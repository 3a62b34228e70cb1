import assert from "node:assert/strict";
import { test } from "node:test";
import { createQueue } from "./bootqueue.ts";

/** Everybody asks again and again, and each who is in leaves at once. */
function drain(
  queue: ReturnType<typeof createQueue>,
  all: readonly (readonly [id: number, owner: number])[],
): number[] {
  const order: number[] = [];
  while (order.length < all.length)
    for (const [id, owner] of all.toReversed()) {
      if (order.includes(id)) continue;
      const place = queue.enter(id, owner);
      if (typeof place === "number") continue;
      order.push(id);
      place();
    }
  return order;
}

const enter = (queue: ReturnType<typeof createQueue>, id: number, owner = 1): (() => void) => {
  const place = queue.enter(id, owner);
  if (typeof place === "number") assert.fail(`${id} is not in, ${place} are before it`);
  return place;
};

test("owners take turns, each in the order of his own asking, and all know how many are before them", () => {
  const queue = createQueue(1, () => 0);
  const leave = enter(queue, 9, 9);
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
  leave();
  assert.deepEqual(drain(queue, all), [11, 21, 31, 12, 22, 13]);
});

test("only so many are inside, and leaving twice frees one place", () => {
  const queue = createQueue(2, () => 0);
  const one = enter(queue, 1);
  enter(queue, 2);
  assert.deepEqual([queue.enter(3, 1), queue.enter(4, 1)], [0, 1]);
  one();
  one();
  enter(queue, 3);
  assert.equal(queue.enter(4, 1), 0);
});

test("one who is in and starts anew keeps its place, and its first start gives it to nobody", () => {
  const queue = createQueue(1, () => 0);
  const first = enter(queue, 1);
  const second = enter(queue, 1);
  first();
  assert.equal(queue.enter(2, 1), 0);
  second();
  enter(queue, 2);
});

test("who quits, or does not ask any more, is before nobody", () => {
  let time = 0;
  const queue = createQueue(1, () => time);
  const leave = enter(queue, 1);
  assert.deepEqual([queue.enter(2, 2), queue.enter(3, 2), queue.enter(4, 2)], [0, 1, 2]);
  queue.quit(2);
  assert.equal(queue.enter(4, 2), 1);
  time = 60_000;
  assert.equal(queue.enter(4, 2), 1);
  time = 100_000;
  assert.equal(queue.enter(4, 2), 0);
  leave();
  enter(queue, 4, 2);
});
