import assert from "node:assert/strict";
import { test } from "node:test";
import type { RecordType } from "@brume/api/dns.ts";
import { answerBytes } from "./data.ts";
import { groupRecords } from "./served.ts";
import { showLongDomain } from "./show.ts";

test("a record takes its rdata and twelve bytes", () => {
  for (const [type, value, rdata] of [
    ["A", "192.0.2.1", 4],
    ["AAAA", "2001:db8::1", 16],
    ["CNAME", "a.bc", 1 + 1 + 1 + 2 + 1],
    ["NS", "ns.example.com", 16],
    ["MX", "10 mail.example.com", 2 + 18],
    ["MX", "0 .", 2 + 1],
    ["SRV", "_sip._tcp 1 2 5060 sip.example.com", 6 + 17],
    ["TXT", "x".repeat(255), 256],
    ["TXT", "x".repeat(256), 258],
    ["TXT", "ж".repeat(128), 1 + 254 + 1 + 2],
  ] as [RecordType, string, number][])
    assert.equal(answerBytes({ type, value }), 12 + rdata, `${type} ${value.slice(0, 40)}`);
});

test("the records of a large zone are grouped and shown with yields", () => {
  const records = Array.from({ length: 2000 }, (_, index) => ({
    type: "A" as const,
    owner: `h${index}`,
    ttl: 300,
    value: "192.0.2.1",
  }));
  const row = {
    id: 1,
    name: "example.com",
    ascii: "example.com",
    serial: 1,
    created: 0,
    labels: "{}",
    import_report: null,
  };
  const rows = records.map((record, index) => ({
    ...record,
    id: index,
    domain_id: 1,
    created: 0,
    serial: 1,
    labels: "{}",
  }));
  for (const work of [groupRecords(records, "example.com"), showLongDomain(row as never, rows as never, 1, [])]) {
    let yields = 0;
    while (work.next().done !== true) yields += 1;
    assert.ok(yields >= records.length, `${yields} yields`);
  }
});

test("the spelling of names is collected with yields", () => {
  const records = Array.from({ length: 2000 }, (_, index) => ({
    type: "A" as const,
    owner: `H${index}`,
    ttl: 300,
    value: "192.0.2.1",
  }));
  const work = groupRecords(records, "example.com");
  let yields = 0;
  let step = work.next();
  for (; step.done !== true; step = work.next()) yields += 1;
  // One after each record, and more before the first.
  assert.ok(yields >= records.length + 3, `${yields} yields`);
  assert.equal(step.value.sets.size, records.length);
  assert.equal(step.value.spellings.get("h7"), "H7");
});
