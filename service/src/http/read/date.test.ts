/** Dates in requests: the last line of the table in docs/spec.md#coercion. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { normaliseDate } from "./date.ts";

test("valid dates", () => {
  const rows: [string, string][] = [
    ["2026-11-20T09:15:00.120Z", "2026-11-20T09:15:00.120Z"],
    ["2026-11-20T09:15:00Z", "2026-11-20T09:15:00.000Z"],
    ["2026-11-20t09:15:00z", "2026-11-20T09:15:00.000Z"],
    ["2026-11-20 09:15:00Z", "2026-11-20T09:15:00.000Z"],
    ["2026-11-20T09:15:00.1Z", "2026-11-20T09:15:00.100Z"],
    ["2026-11-20T09:15:00.123456789Z", "2026-11-20T09:15:00.123Z"],
    ["2026-11-20T09:15:00", "2026-11-20T09:15:00.000Z"],
    ["2026-11-20", "2026-11-20T00:00:00.000Z"],
    ["2026-11-20T01:15:00+03:00", "2026-11-19T22:15:00.000Z"],
    ["2026-11-20T23:15:00-01:30", "2026-11-21T00:45:00.000Z"],
    ["2024-02-29", "2024-02-29T00:00:00.000Z"],
    ["2016-12-31T23:59:60Z", "2017-01-01T00:00:00.000Z"],
    ["0001-01-01", "0001-01-01T00:00:00.000Z"],
    ["9999-12-31T23:59:59.999Z", "9999-12-31T23:59:59.999Z"],
  ];
  for (const [text, answer] of rows) assert.equal(normaliseDate(text), answer, text);
});

test("invalid dates", () => {
  const rows = [
    "",
    "today",
    "2026",
    "2026-11",
    "2026-13-01",
    "2026-00-10",
    "2026-02-29",
    "2026-02-30",
    "2026-11-20T24:00:00Z",
    "2026-11-20T09:60:00Z",
    "2026-11-20T09:15Z",
    "2026-11-20Z",
    "2026-11-20T09:15:00+3",
    "2026-11-20T09:15:00+24:00",
    "2026-11-20T09:15:00.Z",
    "20261120T091500Z",
    "1763629200",
    "Fri, 20 Nov 2026 09:15:00 GMT",
    "0000-01-01T00:00:00+01:00",
    "9999-12-31T23:59:59-01:00",
    "2026-11-20T09:15:00Z\n",
  ];
  for (const text of rows) assert.equal(normaliseDate(text), null, JSON.stringify(text));
});

test("a date of a response is parsed unchanged", () => {
  const date = fc.date({
    min: new Date("0000-01-01T00:00:00Z"),
    max: new Date("9999-12-31T23:59:59.999Z"),
    noInvalidDate: true,
  });
  fc.assert(fc.property(date, (at) => assert.equal(normaliseDate(at.toISOString()), at.toISOString())));
});
