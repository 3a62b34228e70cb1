import assert from "node:assert/strict";
import { test } from "node:test";
import { machineStatus, serverRow } from "../../../test/support/rows.ts";
import { uuidOf } from "./model/machinespec.ts";
import { isBehind, numbersOf } from "./restored.ts";

const row = serverRow(17, { boot: 5, disk_version: 2 });
const label = { uuid: uuidOf(row), name: "web-1", cpus: 1, memory: 512, image: "" };
const disks = (...versions: number[]) => versions.map((version) => ({ version, gb: 10, allocated: 0 }));
const seen = (boot: number, version: number, ...present: number[]) =>
  machineStatus({ label, boot, version, power: version === 0 ? "off" : "running", disks: disks(...present) });
const compare = (...status: Parameters<typeof seen>) => {
  const { boot, disk_version } = numbersOf(row, seen(...status));
  assert.equal(isBehind(row, seen(...status)), boot > row.boot || disk_version > row.disk_version);
  return [boot, disk_version];
};

test("a row takes higher numbers of its VM", () => {
  assert.deepEqual(compare(5, 2, 2), [5, 2]);
  assert.deepEqual(compare(9, 2, 2), [9, 2]);
  assert.deepEqual(compare(9, 3, 3), [9, 3]);
  assert.deepEqual(compare(9, 0, 3), [9, 3]);
  assert.deepEqual(compare(0, 0, 3), [5, 3], "its disk was restored too, but not its last run");
  assert.deepEqual(compare(6, 3, 2, 3), [6, 3], "its old disk was not removed yet");
});

test("a row keeps numbers that are not lower, or whose successor is not certain", () => {
  assert.deepEqual(compare(4, 2, 2), [5, 2]);
  assert.deepEqual(compare(4, 1, 1), [5, 2]);
  assert.deepEqual(compare(0, 0), [5, 2], "it has no disk");
  assert.deepEqual(compare(5, 3, 2, 3), [5, 2], "the undo of a rebuild could not end the VM");
  assert.deepEqual(compare(6, 0, 2, 3), [6, 2]);
  assert.deepEqual(compare(6, 0, 3, 4), [6, 2]);
  assert.equal(isBehind(row, seen(5, 2, 2)), false);
  const other = { ...seen(5, 3, 3), label: { ...label, uuid: uuidOf({ id: 17, created: 1 }) } };
  assert.equal(isBehind(row, other), false);
  assert.equal(isBehind(row, { ...other, label: null }), false);
});
