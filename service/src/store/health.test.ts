import assert from "node:assert/strict";
import { test } from "node:test";
import { StorageError } from "./db.ts";
import { createHealth } from "./health.ts";

test("a full disk is logged once, also if small writes succeed meanwhile", () => {
  let time = 5000;
  const lines: string[] = [];
  const health = createHealth(
    "brume.db",
    (_level, message) => lines.push(message),
    () => time,
  );
  for (let round = 0; round < 10; round++) {
    health.note(new StorageError("the disk is full", { isFull: true }));
    health.worked();
    time += 5000;
    health.worked();
    assert.equal(health.blocked(), "the disk is full");
  }
  time += 5000;
  health.worked();
  assert.equal(health.blocked(), null);
  assert.deepEqual(lines, [
    "Nothing can be stored: the disk is full. Reads and the name server still work.",
    "Changes can be stored again.",
  ]);
});
