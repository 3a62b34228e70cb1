import assert from "node:assert/strict";
import { test } from "node:test";
import { coalesce } from "./coalesce.ts";

test("callers during a run share the next run, which begins after their calls", async () => {
  let begun = 0;
  let idle = 0;
  const ends: (() => void)[] = [];
  const call = coalesce(
    () => {
      const number = ++begun;
      return new Promise<number>((resolve) => ends.push(() => resolve(number)));
    },
    () => idle++,
  );
  const first = call();
  const [second, third] = [call(), call()];
  assert.equal(begun, 1);
  ends[0]?.();
  assert.equal(await first, 1);
  await new Promise(setImmediate);
  assert.deepEqual([begun, idle], [2, 0]);
  ends[1]?.();
  assert.deepEqual(await Promise.all([second, third]), [2, 2]);
  await new Promise(setImmediate);
  assert.deepEqual([begun, idle], [2, 1]);
});

test("a failed run rejects only its own callers", async () => {
  let fails = true;
  const call = coalesce(async () => {
    await new Promise(setImmediate);
    if (fails) throw new Error("no");
    return 5;
  });
  const first = call();
  const second = call();
  await assert.rejects(first, /no/);
  fails = false;
  assert.equal(await second, 5);
});
