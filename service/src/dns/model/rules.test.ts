/**
 * Which records may share a name: each rule by examples. The check of one record with a table lookup and the check of a complete zone
 * always agree.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { RecordType } from "@brume/api/dns.ts";
import fc from "fast-check";
import type { StoredRecord } from "./record.ts";
import { type ConflictQuery, checkZone, conflictQueries, describeConflict } from "./rules.ts";
import { servedOwner, sortKey } from "./served.ts";

const record = (type: RecordType, owner: string, value = type === "A" ? "10.0.0.1" : "x.y"): StoredRecord => ({
  type,
  owner,
  ttl: 60,
  value: type === "SRV" ? `_s._tcp 0 0 1 ${value}` : value,
});

/** A table that answers questions the slow way. */
const tableOf = (rows: readonly StoredRecord[]) => async (question: ConflictQuery) =>
  rows.find((row) => {
    const key = sortKey(servedOwner(row));
    const { between, value, otherThan } = question;
    return (
      question.types.includes(row.type) &&
      (between ? key > between[0] && key < between[1] : question.keys.includes(key)) &&
      (value === undefined || row.value === value) &&
      (otherThan === undefined || row.value !== otherThan)
    );
  });

/** What is in the way of a record according to the questions alone. */
async function checkPlacement(one: StoredRecord, find: ReturnType<typeof tableOf>) {
  if (one.type === "CNAME" && one.owner === "@") return { code: "cname_at_apex", other: null };
  for (const question of conflictQueries(one)) {
    const other = await find(question);
    if (other !== undefined) return { code: question.code, other };
  }
  return null;
}

test("each rule, in both orders", async () => {
  const cases: [StoredRecord, StoredRecord, string | null, string | null][] = [
    [record("A", "a"), record("CNAME", "a"), "cname_conflict", "cname_conflict"],
    [record("CNAME", "a", "x.y"), record("CNAME", "a", "x.z"), "cname_conflict", "cname_conflict"],
    [record("CNAME", "a"), record("CNAME", "a"), "record_exists", "record_exists"],
    [record("CNAME", "_s._tcp.a"), record("SRV", "a"), "cname_conflict", "cname_conflict"],
    [record("CNAME", "a"), record("SRV", "a"), null, null],
    [record("A", "a"), record("A", "a", "10.0.0.2"), null, null],
    [record("A", "a"), record("A", "a"), "record_exists", "record_exists"],
    [record("MX", "a", "0 ."), record("MX", "a", "10 x.y"), "null_mx", "null_mx"],
    [record("MX", "a", "0 ."), record("MX", "a", "0 ."), "record_exists", "record_exists"],
    [record("MX", "a", "0 ."), record("MX", "b", "0 x.y"), null, null],
    [record("A", "*"), record("A", "a"), null, null],
    [record("NS", "@"), record("TXT", "@"), null, null],
    [record("NS", "@"), record("TXT", "a"), null, null],
    [record("NS", "lab"), record("A", "lab"), null, null],
    [record("NS", "lab"), record("NS", "lab", "z.y"), null, null],
    [record("NS", "lab"), record("A", "a.b.lab"), null, null],
    [record("NS", "lab"), record("AAAA", "*.lab", "::1"), null, null],
    [record("NS", "lab"), record("TXT", "lab"), "delegation_conflict", "delegation_conflict"],
    [record("NS", "lab"), record("MX", "a.b.lab"), "delegation_conflict", "delegation_conflict"],
    [record("NS", "lab"), record("NS", "a.lab"), "delegation_conflict", "delegation_conflict"],
    [record("NS", "lab"), record("SRV", "lab"), "delegation_conflict", "delegation_conflict"],
    [record("NS", "_tcp.lab"), record("SRV", "lab"), "delegation_conflict", "delegation_conflict"],
    [record("NS", "lab"), record("CNAME", "lab"), "cname_conflict", "cname_conflict"],
    [record("NS", "lab"), record("CNAME", "a.lab"), "delegation_conflict", "delegation_conflict"],
    [record("NS", "lab"), record("TXT", "xlab"), null, null],
    [record("NS", "lab"), record("TXT", "lab-b"), null, null],
    [record("NS", "lab"), record("NS", "lab"), "record_exists", "record_exists"],
  ];
  for (const [first, second, ...codes] of cases) {
    const title = `${first.type} ${first.owner}, ${second.type} ${second.owner}`;
    for (const [[before, after], code] of [
      [[first, second], codes[0]],
      [[second, first], codes[1]],
    ] as const) {
      assert.equal((await checkPlacement(after, tableOf([before])))?.code ?? null, code, title);
      const zoneErrors = checkZone([before, after]);
      assert.deepEqual(zoneErrors, code === null ? [] : [{ index: 1, code, other: 0 }], title);
    }
  }
});

test("a CNAME at the top of a domain is rejected", async () => {
  assert.deepEqual(await checkPlacement(record("CNAME", "@"), tableOf([])), { code: "cname_at_apex", other: null });
  assert.deepEqual(checkZone([record("CNAME", "@")]), [{ index: 0, code: "cname_at_apex", other: null }]);
});

test("existing conflicts are not reported, each new one is", () => {
  const existing = [record("A", "a"), record("CNAME", "a")];
  const added = [record("TXT", "a"), record("TXT", "b"), record("A", "a")];
  assert.deepEqual(checkZone([...existing, ...added], 2), [
    { index: 2, code: "cname_conflict", other: 1 },
    { index: 4, code: "cname_conflict", other: 1 },
  ]);
});

test("records of one type at one name must fit into a response", () => {
  // 16 bytes each: 4,000 make 64,000.
  const many = Array.from({ length: 4001 }, (_, i) => record("A", "a", `10.0.${i >> 8}.${i & 255}`));
  const beside = [record("AAAA", "a", "2001:db8::1"), record("A", "b")];
  assert.deepEqual(checkZone([...many, ...beside]), [{ index: 4000, code: "too_long", other: null }]);
  assert.deepEqual(checkZone([...many, ...beside], many.length), []);
});

test("a record needs few queries of the database, regardless of the depth of its name", () => {
  const deep = "a.".repeat(100).slice(0, -1);
  assert.deepEqual(conflictQueries(record("A", deep)).length, 2);
  for (const type of ["AAAA", "CNAME", "MX", "NS", "SRV", "TXT"] as const)
    assert.ok(conflictQueries(record(type, deep)).length <= 5, type);
});

test("the error of a conflict names the conflicting record", () => {
  const domain = { id: 3, ascii: "example.com" };
  const other = { ...record("A", "a"), id: 14 };
  const exists = describeConflict(record("A", "a"), { code: "record_exists", other }, domain);
  assert.equal(exists.message, "Record 14 of domain 3 has the same type, name and data.");
  assert.deepEqual(exists.errors, [
    { pointer: "", code: "record_exists", detail: "Подобная запись для данного домена уже существует" },
  ]);
  const beside = describeConflict(record("CNAME", "a"), { code: "cname_conflict", other }, domain);
  assert.equal(
    beside.message,
    "A CNAME must be the only record at its name, but there is record 14, A at a.example.com.",
  );
  assert.equal(beside.errors[0]?.pointer, "/MnemonicName");
  const apex = describeConflict(
    record("CNAME", "@"),
    { code: "cname_at_apex", other: null },
    domain,
    undefined,
    "/Changes/4",
  );
  assert.equal(apex.errors[0]?.pointer, "/Changes/4/MnemonicName");
});

const labels = fc.constantFrom("a", "b", "lab", "_s", "_tcp", "*");
const owners = fc.oneof(
  fc.constant("@"),
  fc.array(labels, { minLength: 1, maxLength: 3 }).map((parts) => parts.join(".")),
  fc.constantFrom("_s._tcp", "_s._tcp.a", "_tcp.a"),
);
const types = fc.constantFrom<RecordType>("A", "AAAA", "CNAME", "MX", "NS", "SRV", "TXT");
const records = fc
  .tuple(types, owners, fc.constantFrom("x.y", "x.z"))
  .map(([type, owner, value]) => record(type, owner, value));

test("property: single changes and a changeset reject the same records for the same reason", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(records, { maxLength: 12 }), async (list) => {
      const single: { index: number; code: string }[] = [];
      for (const [index, one] of list.entries()) {
        const conflict = await checkPlacement(one, tableOf(list.slice(0, index)));
        if (conflict !== null) single.push({ index, code: conflict.code });
      }
      assert.deepEqual(
        checkZone(list).map(({ index, code }) => ({ index, code })),
        single,
      );
    }),
    { numRuns: 3000 },
  );
});

test("property: records accepted one by one, in any order, are a zone without conflicts", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(records, { maxLength: 12 }), async (list) => {
      const zone: StoredRecord[] = [];
      for (const one of list) if ((await checkPlacement(one, tableOf(zone))) === null) zone.push(one);
      assert.deepEqual(checkZone(zone), []);
      assert.deepEqual(checkZone(zone.toReversed()), []);
    }),
    { numRuns: 1000 },
  );
});
