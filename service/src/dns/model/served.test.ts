import assert from "node:assert/strict";
import { test } from "node:test";
import type { RecordType } from "@brume/api/dns.ts";
import { answerBytes } from "./data.ts";

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
