import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { type Call, createCalls } from "./calls.ts";

const calling = (fails: readonly number[] = []) => {
  const placed: number[] = [];
  const callOf = (tunnel: number): Call => ({
    tunnel,
    async place() {
      placed.push(tunnel);
      if (fails.includes(tunnel)) throw new Error("it is not loaded");
    },
  });
  return { placed, callsOf: (...tunnels: readonly number[]) => tunnels.map(callOf) };
};

test("peers are contacted one after the other, in order", () => {
  const { placed, callsOf } = calling();
  const calls = createCalls();
  calls.replace(callsOf(1, 2, 3, 4));
  assert.deepEqual(placed, [1, 2]);
  calls.over(2);
  assert.deepEqual(placed, [1, 2, 3]);
  calls.over(9);
  calls.over(2);
  assert.deepEqual(placed, [1, 2, 3], "who was not called leaves no place");
  calls.over(1);
  assert.deepEqual(placed, [1, 2, 3, 4]);
});

test("a peer that was just contacted, or is up, is not contacted", () => {
  const { placed, callsOf } = calling();
  const calls = createCalls();
  calls.replace(callsOf(1, 2, 3, 4));
  calls.replace(callsOf(1, 2, 3, 4));
  calls.over(3);
  calls.over(1);
  calls.over(2);
  assert.deepEqual(placed, [1, 2, 4]);
});

test("peers that do not respond do not delay others", (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const { placed, callsOf } = calling();
  createCalls().replace(callsOf(1, 2, 3, 4, 5));
  t.mock.timers.tick(499);
  assert.deepEqual(placed, [1, 2]);
  t.mock.timers.tick(1);
  assert.deepEqual(placed, [1, 2, 3, 4]);
  t.mock.timers.tick(500);
  assert.deepEqual(placed, [1, 2, 3, 4, 5]);
});

test("a replaced peer is not contacted, and a failed contact frees its place", async () => {
  const { placed, callsOf } = calling([1]);
  const calls = createCalls();
  calls.replace(callsOf(1, 2, 3));
  calls.replace(callsOf(4));
  assert.deepEqual(placed, [1, 2]);
  await turn();
  assert.deepEqual(placed, [1, 2, 4]);
});
