import assert from "node:assert/strict";
import { test } from "node:test";
import type { AuditEntry } from "@brume/api/account.ts";
import { routes } from "@brume/api/routes.ts";
import { en } from "../texts/en.ts";
import { ru } from "../texts/ru.ts";
import { fieldChanges, objectsOf, operationName } from "./auditview.ts";

test("every operation that changes something has a name in each language", () => {
  const names = Object.entries(routes).flatMap(([name, { method }]) => (method === "GET" ? [] : [name]));
  for (const t of [en, ru]) {
    assert.deepEqual(
      names.filter((name) => operationName(name, t) === name),
      [],
    );
    assert.equal(new Set(names.map((name) => operationName(name, t))).size, names.length);
  }
  assert.deepEqual(
    [operationName("createRecordTXT", en), operationName("readServer", en)],
    ["Add record TXT", "readServer"],
  );
});

test("an object has the name that other entries show, and no page after its deletion or if it never existed", () => {
  const entry = (ID: number, Operation: string, part: Partial<AuditEntry>): AuditEntry =>
    ({
      ID,
      Operation,
      Status: 200,
      Resource: "server",
      ResourceID: 1,
      Before: null,
      After: null,
      ...part,
    }) as AuditEntry;
  const objects = objectsOf([
    entry(6, "deleteServer", { Before: { Name: "web" } }),
    entry(5, "updateServer", { Status: 409 }),
    entry(4, "updateDomain", { Resource: "domain", ResourceID: 1, After: { Name: "a.example" } }),
    entry(3, "updateDomain", { Resource: "domain", ResourceID: 9, Status: 404 }),
    entry(2, "deleteRecord", { Resource: "record", ResourceID: 2, Status: 403 }),
    entry(1, "createSession", { Resource: null, ResourceID: null }),
  ]);
  const shown = [6, 5, 4, 3, 2].map((id) => [objects.get(id)?.name, objects.get(id)?.Data !== null]);
  assert.deepEqual(shown, [
    ["web", false],
    ["web", false],
    ["a.example", true],
    [undefined, false],
    [undefined, false],
  ]);
  assert.equal(objects.has(1), false);
});

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
