import assert from "node:assert/strict";
import { test } from "node:test";
import { parseZone } from "./parse.ts";

const lines = (text: string) =>
  parseZone(text, "example.com").records.map(({ type, owner, ttl, value }) => `${owner} ${ttl} ${type} ${value}`);

test("$GENERATE", () => {
  assert.deepEqual(lines("$GENERATE 1-3 h$ 60 A 10.0.0.$"), [
    "h1 60 A 10.0.0.1",
    "h2 60 A 10.0.0.2",
    "h3 60 A 10.0.0.3",
  ]);
  assert.deepEqual(lines("$GENERATE 8-16/4 h${0,3,d} CNAME x${-8,2,x}.net."), [
    "h008 3600 CNAME x00.net",
    "h012 3600 CNAME x04.net",
    "h016 3600 CNAME x08.net",
  ]);
  assert.deepEqual(lines('$GENERATE 1-2 @ MX "1$ m$"'), ["@ 3600 MX 11 m1.example.com", "@ 3600 MX 12 m2.example.com"]);
  assert.deepEqual(lines('$GENERATE 1-1 a TXT "costs $$ $ \\$"'), ["a 3600 TXT costs $ 1 $"]);
  assert.deepEqual(lines("$GENERATE 26-26 ${0,4,n} A 10.0.0.1"), ["a.1 3600 A 10.0.0.1"]);
});
