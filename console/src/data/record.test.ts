import assert from "node:assert/strict";
import { test } from "node:test";
import type { DnsRecord, Domain } from "@brume/api/dns.ts";
import {
  addRow,
  changesetOf,
  countEdits,
  editRow,
  isComplete,
  linesOf,
  noEdits,
  partOf,
  rowOf,
  sortRows,
  toggleRow,
  withEdits,
} from "./record.ts";

const zone = { Name: "example.com" };

const record = (TypeRecord: string, CanonicalDescription: string): DnsRecord =>
  ({ ID: 7, TypeRecord, CanonicalDescription, TTL: 60 }) as DnsRecord;

test("a record is a row with the value of its zone file line", () => {
  const rows = [
    ["A", "www.example.com. 60 IN A 192.0.2.1", "www", "192.0.2.1"],
    ["MX", "@ 60 MX 10 mail.example.com.", "@", "10 mail.example.com."],
    ["TXT", 'example.com. 60 IN TXT "a b" "c"', "@", '"a b" "c"'],
    ["SRV", "_sip._tcp.example.com. 60 IN SRV 1 2 3 a.", "_sip._tcp", "1 2 3 a."],
  ] as const;
  for (const [type, line, owner, value] of rows)
    assert.deepEqual(rowOf(record(type, line), zone), { id: 7, owner, type, ttl: 60, value });
});

test("names of a domain that is not ASCII are relative to it", () => {
  const stored = record("A", "www.пример.рф. 60 IN A 192.0.2.1");
  const { owner } = rowOf(stored, { Name: "пример.рф", NamePunyCode: "xn--e1afmkfd.xn--p1ai" } as Domain);
  assert.equal(owner, "www");
});

test("edits are gathered into a changeset, and vanish when they are taken back", () => {
  const row = rowOf(record("MX", "@ 60 MX 10 mail.example.com."), zone);
  const stored = new Map([[row.id, row]]);
  let edits = editRow(noEdits, row, { value: "20 mail2" });
  edits = addRow(edits, { owner: "_sip._tcp", type: "SRV", value: "1 2 5060 sip" });
  edits = toggleRow(edits, 9);
  assert.equal(countEdits(edits), 3);
  assert.deepEqual(changesetOf(edits, stored), {
    changes: [
      { Op: "Delete", ID: 9 },
      { Op: "Update", ID: 7, HostName: "mail2", Priority: 20 },
      {
        Op: "Create",
        TypeRecord: "SRV",
        TTL: 3600,
        Name: "@",
        Service: "_sip",
        Proto: "tcp",
        Priority: 1,
        Weight: 2,
        Port: 5060,
        Target: "sip",
      },
    ],
    rows: [9, 7, -1],
  });
  edits = toggleRow(toggleRow(editRow(edits, row, row), 9), -1);
  assert.equal(countEdits(edits), 0);
});

test("a removed row is not updated too", () => {
  const row = rowOf(record("A", "www.example.com. 60 IN A 192.0.2.1"), zone);
  const edits = toggleRow(editRow(noEdits, row, { ttl: 5 }), 7);
  assert.equal(countEdits(edits), 1);
  assert.deepEqual(changesetOf(edits, new Map([[7, row]])).changes, [{ Op: "Delete", ID: 7 }]);
});

test("an edit contains only what was changed, also of a row that another client has changed meanwhile", () => {
  const row = rowOf(record("MX", "@ 60 MX 10 mail.example.com."), zone);
  const edits = editRow(noEdits, row, { value: "20 mail.example.com." });
  const now = { ...row, ttl: 300 };
  assert.deepEqual(withEdits(now, edits), { ...now, value: "20 mail.example.com." });
  assert.deepEqual(changesetOf(edits, new Map([[7, now]])).changes, [{ Op: "Update", ID: 7, Priority: 20 }]);
  assert.deepEqual(changesetOf(edits, new Map()).changes, [{ Op: "Update", ID: 7 }]);
  assert.equal(countEdits(editRow(edits, now, { value: row.value })), 0);
});

test("a new row needs a value, its empty name is the domain, and MX without a priority gets one", () => {
  const requestOf = (part: Parameters<typeof addRow>[1]) => changesetOf(addRow(noEdits, part), new Map()).changes[0];
  const create = { Op: "Create", TTL: 3600 };
  assert.deepEqual(requestOf({ value: "192.0.2.1" }), { ...create, TypeRecord: "A", Name: "@", IP: "192.0.2.1" });
  const mx = { ...create, TypeRecord: "MX", Name: "@" };
  assert.deepEqual(requestOf({ type: "MX", value: "mail" }), { ...mx, HostName: "mail", Priority: 10 });
  assert.deepEqual(requestOf({ type: "MX", value: "5 mail" }), { ...mx, HostName: "mail", Priority: 5 });
  assert.deepEqual(requestOf({ type: "MX", value: "5" }), { ...mx, HostName: "", Priority: 5 });
  assert.deepEqual(requestOf({ type: "MX", value: "5 mail 6 mx" }), { ...mx, HostName: "mail 6 mx", Priority: 5 });
  const srv = { ...create, TypeRecord: "SRV", Name: "@", Service: "_a", Proto: "b" };
  // The service rejects a text in place of a number, and a host of several words.
  assert.deepEqual(requestOf({ type: "MX", value: "not a host" }), { ...mx, HostName: "a host", Priority: "not" });
  assert.deepEqual(requestOf({ type: "SRV", owner: "_a._b", value: "1 x 2 c d" }), {
    ...srv,
    Priority: 1,
    Weight: "x",
    Port: 2,
    Target: "c d",
  });
  const rows = [
    { value: "" },
    { value: "x" },
    { type: "SRV", value: "x" },
    { type: "SRV", owner: "_a._b", value: "x" },
  ];
  assert.deepEqual(
    rows.map((row) =>
      isComplete({ id: -1, owner: "", type: "A", ttl: 60, ...row } as Parameters<typeof isComplete>[0]),
    ),
    [false, true, false, true],
  );
});

test("an error marks the part of the row that contains its field", () => {
  const fields = ["A IP", "A Name", "A TTL", "A ", "CNAME Name", "CNAME MnemonicName", "MX HostName", "SRV Service"];
  assert.deepEqual(
    fields.map((one) => partOf(...(one.split(" ") as [string, string]))),
    ["value", "owner", "ttl", undefined, "value", "owner", "value", "owner"],
  );
});

test("the lines of a changeset have one form, and what replaces a record is below it", () => {
  const www = record("CNAME", "www.example.com. 60 IN CNAME @");
  const mail = record("MX", "@ 60 MX 10 mail.example.com.");
  const other = record("MX", "@ 60 MX 20 mail.example.com.");
  const changes = [
    { Before: null, After: www },
    { Before: null, After: other },
    { Before: mail, After: null },
  ] as unknown as Parameters<typeof linesOf>[0];
  assert.deepEqual(linesOf(changes, zone), [
    { isAdded: false, text: "@ 60 IN MX 10 mail.example.com." },
    { isAdded: true, text: "@ 60 IN MX 20 mail.example.com." },
    { isAdded: true, text: "www 60 IN CNAME @" },
  ]);
});

test("rows are in the order of name, type and value, not of their ids", () => {
  const row = (id: number, owner: string, type: "A" | "TXT", value: string) => ({ id, owner, type, ttl: 60, value });
  const sorted = [
    row(9, "@", "A", "192.0.2.1"),
    row(3, "@", "A", "192.0.2.2"),
    row(1, "@", "TXT", "a"),
    row(8, "*", "A", "192.0.2.1"),
    row(2, "www", "A", "192.0.2.1"),
  ];
  const ids = (rows: readonly { readonly id: number }[]) => rows.map(({ id }) => id);
  assert.deepEqual(ids(sortRows(sorted.toReversed())), ids(sorted));
  assert.deepEqual(ids(sortRows(sorted.toSorted((a, b) => a.id - b.id))), ids(sorted));
});
