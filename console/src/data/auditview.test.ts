import assert from "node:assert/strict";
import { test } from "node:test";
import { fieldChanges } from "./auditview.ts";

test("only fields that differ are shown, below their objects", () => {
  const before = { Name: "a", Quotas: { CPU: 1, RAM: 2 }, Types: ["x"] };
  const after = { Name: "a", Quotas: { CPU: 4, RAM: 2 }, Types: ["x", "y"] };
  assert.deepEqual(fieldChanges(before, after), [
    { field: "Quotas.CPU", before: "1", after: "4" },
    { field: "Types", before: '["x"]', after: '["x","y"]' },
  ]);
});

test("a created object has no fields before, a deleted one none after; an entry without objects shows nothing", () => {
  assert.deepEqual(fieldChanges(null, { ID: 1 }), [{ field: "ID", before: null, after: "1" }]);
  assert.deepEqual(fieldChanges({ Note: null }, null), [{ field: "Note", before: "null", after: null }]);
  assert.deepEqual(fieldChanges(null, null), []);
});
