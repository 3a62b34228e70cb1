import assert from "node:assert/strict";
import { test } from "node:test";
import { createMemo } from "./memo.ts";

test("a value is kept until the position changes", async () => {
  let position: number | null = 1;
  let reads = 0;
  const memo = createMemo<string>(
    () => position,
    100,
    (value) => value.length,
  );
  const get = (key = "a") => memo.get(key, async () => `${key}${++reads}`);
  assert.deepEqual([await get(), await get(), await get("b")], ["a1", "a1", "b2"]);
  position = 2;
  assert.deepEqual([await get(), await get()], ["a3", "a3"]);
  position = null;
  assert.deepEqual([await get(), await get()], ["a4", "a5"]);
});

test("a value is not kept if there is a commit while it is read", async () => {
  let position = 1;
  const memo = createMemo<string>(
    () => position,
    100,
    (value) => value.length,
  );
  const first = await memo.get("a", async () => {
    position = 2;
    return "old";
  });
  assert.deepEqual([first, await memo.get("a", async () => "new")], ["old", "new"]);
});

test("values are dropped beyond the limit, and too large ones never kept", async () => {
  const memo = createMemo<string>(
    () => 1,
    10,
    (value) => value.length,
  );
  const get = (key: string, value: string) => memo.get(key, async () => value);
  await get("a", "123456");
  assert.equal(await get("a", "x"), "123456");
  await get("b", "123456");
  assert.equal(await get("a", "x"), "x");
  await get("c", "12345678901");
  assert.equal(await get("c", "y"), "y");
});
