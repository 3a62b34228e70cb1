/** Queries: docs/spec.md#lists, #headers-and-queries-for-changes, and strict mode. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { contract } from "@brume/api/contract.ts";
import type { Operation } from "@brume/api/operation.ts";
import fc from "fast-check";
import { queryError, readQuery } from "./query.ts";

/** Anything that a string can hold, halves of surrogate pairs too. */
const unit = fc.oneof(fc.nat(0x7f), fc.nat(0xffff)).map((code) => String.fromCharCode(code));

const schema = contract.listDomains.query;
const loose = { strict: false, change: false };
const strict = { strict: true, change: false };
const change = { strict: false, change: true };

function errors(query: string, options = loose): string[] {
  return readQuery(schema, query, options).errors.map(({ pointer, code }) => `${pointer} ${code}`);
}

test("valid queries", () => {
  const rows: [string, object][] = [
    ["", {}],
    ["limit=10", { limit: 10 }],
    ["LIMIT=10&Name=*.com", { limit: 10, name: "*.com" }],
    ["name=a+b%20c", { name: "a b c" }],
    ["name=\u00c3\u00a9", { name: "é" }],
    ["n%61me=x", { name: "x" }],
    ["name=a&name=b&NAME=c", { name: "c" }],
    ["name=&limit=&cursor&label=", {}],
    ["records=False", { records: false }],
    ["label=a&label=b%3Dc&Label=&LABEL=!d", { label: "a,b=c,!d" }],
    ["Text=x&limit[]=5&limit.x=6&__proto__=7&%ff=8&dryRun=true", {}],
    ["&&limit=5&", { limit: 5 }],
  ];
  for (const [query, value] of rows)
    assert.deepEqual(readQuery(schema, query, loose), { value, dryRun: false, errors: [] }, query);
});

test("errors name the parameter", () => {
  assert.deepEqual(errors("Limit=0&RECORDS=maybe&name=%zz"), [
    "?name format_invalid",
    "?records type_mismatch",
    "?limit out_of_range",
  ]);
  assert.equal(
    readQuery(schema, "limit=9999", loose).errors[0]?.detail,
    'limit must be between 1 and 1000, not "9999".',
  );
});

test("dryRun, for changes only", () => {
  for (const query of ["dryRun=true", "DRYRUN=1", "dryrun=yes", "a=b&dryRun=true"])
    assert.deepEqual(readQuery(undefined, query, change), { value: {}, dryRun: true, errors: [] }, query);
  for (const query of ["", "dryRun=false", "dryRun=true&dryRun=0", "Name=x"])
    assert.deepEqual(readQuery(undefined, query, change), { value: {}, dryRun: false, errors: [] }, query);
  for (const query of ["dryRun", "dryRun=", "dryRun=%20", "dryRun=maybe", "dryRun=%zz"])
    assert.equal(readQuery(undefined, query, change).errors[0]?.pointer, "?dryRun", query);
  assert.deepEqual(readQuery(undefined, "dryRun=maybe", loose), { value: {}, dryRun: false, errors: [] });
  assert.equal(readQuery(schema, "dryRun=true&limit=5", change).dryRun, true);
});

test("strict: unknown parameters and repeated ones", () => {
  assert.deepEqual(errors("limit=5&what=1&dryRun=true&%ff=1", strict), [
    "?what unknown_field",
    "?dryRun unknown_field",
    "?%ff unknown_field",
  ]);
  assert.deepEqual(errors("limit=5&limit=6", strict), ["?limit duplicate_field"]);
  assert.deepEqual(errors("limit=+5&records=1", strict), ["?records type_mismatch", "?limit type_mismatch"]);
  assert.deepEqual(errors("label=a&label=b&limit=5&records=true", strict), []);
  assert.deepEqual(readQuery(undefined, "x=1", { strict: true, change: true }).errors.length, 1);
});

test("all invalid parameters are reported at once, with their own code", () => {
  for (const query of ["limit=0", "limit=x", "cursor=%zz", "label=%zz"]) {
    const error = queryError(readQuery(schema, query, loose).errors);
    assert.equal(error?.code, "query_invalid", query);
    assert.equal(error?.errors.length, 1);
    assert.equal(error?.errors[0]?.code, "query_invalid");
  }
  const several = queryError(readQuery(schema, "records=maybe&limit=1e3", loose).errors);
  assert.deepEqual(
    several?.errors.map(({ pointer, code }) => [pointer, code]),
    [
      ["?records", "query_invalid"],
      ["?limit", "query_invalid"],
    ],
  );
  assert.equal(queryError(readQuery(schema, "other=1", strict).errors), null);
  assert.equal(queryError([]), null);
});

test("every query of the contract can be parsed", () => {
  for (const { query, method } of Object.values<Operation>(contract))
    assert.deepEqual(readQuery(query, "", { strict: true, change: method !== "GET" }).errors, []);
});

test("no query causes an unexpected exception", () => {
  const token = fc.constantFrom(
    "limit",
    "label",
    "dryRun",
    "name",
    "=",
    "&",
    "%",
    "+",
    "5",
    "true",
    "[",
    "\u00e9",
    "\ud800",
  );
  const query = fc.oneof(
    fc.string({ unit }),
    fc.array(token).map((parts) => parts.join("")),
  );
  fc.assert(
    fc.property(query, fc.boolean(), fc.boolean(), (query, strict, change) => {
      for (const { pointer } of readQuery(schema, query, { strict, change }).errors) assert.equal(pointer[0], "?");
    }),
    { numRuns: 1000 },
  );
});
