/** Consistent reads: retried while the version changes, limited by `attempts`, and undefined for a missing row. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { readConsistently } from "./consistent.ts";

/** Reads a row whose version is `versions[i]` at the i-th look-up; null: it does not exist. */
async function readWith(versions: readonly (number | null)[], attempts?: number) {
  let found = 0;
  let reads = 0;
  const result = await readConsistently({
    find: async () => {
      const version = versions[found++];
      return version === null || version === undefined ? undefined : { version };
    },
    version: (row) => row.version,
    read: async (row) => {
      reads += 1;
      return `rest of ${row.version}`;
    },
    ...(attempts !== undefined && { attempts }),
  });
  return { result, reads };
}

test("a row that does not change is read once", async () => {
  assert.deepEqual(await readWith([3, 3]), { result: { row: { version: 3 }, rest: "rest of 3" }, reads: 1 });
});

test("a row that changes during the read is read again", async () => {
  assert.deepEqual(await readWith([1, 2, 3, 3]), { result: { row: { version: 3 }, rest: "rest of 3" }, reads: 3 });
});

test("the last state is returned when the attempts are used up", async () => {
  assert.deepEqual(await readWith([1, 2, 3], 2), { result: { row: { version: 2 }, rest: "rest of 2" }, reads: 2 });
});

test("a missing row is undefined, also when it is deleted during the read", async () => {
  assert.deepEqual(await readWith([null]), { result: undefined, reads: 0 });
  assert.deepEqual(await readWith([1, null]), { result: undefined, reads: 1 });
  assert.deepEqual(await readWith([1, 2, null]), { result: undefined, reads: 2 });
});

test("a row that was found before, and a version that costs less than the row, save look-ups of the row", async () => {
  const versions = [4, 5, 5];
  let found = 0;
  const result = await readConsistently({
    row: { version: 3 },
    find: async () => ({ version: 3 + ++found }),
    version: (row) => row.version,
    current: async () => versions.shift(),
    read: async (row) => row.version,
  });
  assert.deepEqual({ result, found }, { result: { row: { version: 5 }, rest: 5 }, found: 2 });
});
