/** Properties of the readers: no input makes them throw, and printed values are read as the same values. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { boolean, date, id, integer, Labels, list, optional, text, word } from "@brume/api/common.ts";
import { contract } from "@brume/api/contract.ts";
import type { Operation } from "@brume/api/operation.ts";
import fc from "fast-check";
import { type TObject, Type } from "typebox";
import { ApiError } from "../../base/error.ts";
import { decodeBody } from "./body.ts";
import { readFields } from "./fields.ts";

function read(schema: TObject, body: string, strict = false) {
  return readFields(schema, decodeBody(new TextEncoder().encode(body), {}, strict), { strict });
}

/** What is read of a good body. */
function value(schema: TObject, body: string, strict = false): unknown {
  const { value, errors } = read(schema, body, strict);
  assert.deepEqual(errors, [], body);
  return value;
}

const number = optional(integer(1, 9));

const bodies = Object.entries<Operation>(contract).flatMap(([name, { body }]) => (body ? [{ name, body }] : []));

test("every body of the contract can be parsed", () => {
  assert.ok(bodies.length > 10);
  for (const { name, body } of bodies)
    assert.ok(
      read(body, "{}").errors.every(({ code }) => code === "field_required"),
      name,
    );
});

/** Returns the names of the outermost fields of a body, as JSON or as a form. */
const namesIn = (text: string): readonly string[] =>
  text.startsWith("{")
    ? Object.keys(JSON.parse(text) as object)
    : text.split("&").map((pair) => pair.split(/[=[.]/, 1)[0] ?? "");

/** Contains the name of a field of the request only inside of another field. */
const nestedName = '{"MnemonicName":[{"Name":{"DomainId":0}}],"DomainID":[]}';

test("parsing any fields does not throw, and strict mode never accepts more", () => {
  const names = fc.constantFrom(...bodies.flatMap(({ body }) => Object.keys(body.properties)), "__proto__", "x");
  const leaf = fc.oneof(fc.string({ unit: "grapheme" }), fc.integer(), fc.double(), fc.boolean(), fc.constant(null));
  const some = fc.letrec((tie) => ({
    any: fc.oneof(leaf, fc.array(tie("any"), { maxLength: 3 }), fc.dictionary(names, tie("any"), { maxKeys: 3 })),
  })).any;
  const json = fc.dictionary(names, some, { maxKeys: 6 }).map((fields) => JSON.stringify(fields));
  const step = fc.constantFrom("[0]", "[]", ".Op", "[Name]", "[env]", "");
  const pair = fc.tuple(names, step, step, fc.string({ unit: "grapheme" }));
  const form = fc
    .array(pair, { minLength: 1, maxLength: 6 })
    .map((pairs) => pairs.map(([name, one, two, text]) => `${name}${one}${two}=${encodeURIComponent(text)}`).join("&"));
  fc.assert(
    fc.property(fc.oneof(json, form), fc.constantFrom(...bodies), (text, { body }) => {
      try {
        const relaxed = read(body, text);
        for (const { pointer, detail } of relaxed.errors) assert.ok(pointer.startsWith("/") && !/[\r\n]/.test(detail));
        // Strict mode ignores a field of responses (`DomainID`) that the lenient one reads as a field of the request (`DomainId`).
        const spelt = relaxed.errors.filter(({ pointer }) => namesIn(text).includes(pointer.split("/")[1] ?? ""));
        if (read(body, text, true).errors.length === 0) assert.deepEqual(spelt, []);
      } catch (error) {
        assert.ok(error instanceof ApiError, String(error));
      }
    }),
    {
      numRuns: 2000,
      examples: bodies.filter(({ name }) => name === "updateRecordAAAA").map((each) => [nestedName, each]),
    },
  );
});

const valid = fc.record(
  {
    Name: fc
      .string({ unit: "grapheme", minLength: 1 })
      .map((text) => text.trim().normalize("NFC"))
      .filter((text) => text !== ""),
    TTL: fc.integer({ min: 1, max: 2147483647 }),
    On: fc.boolean(),
    Type: fc.constantFrom("A" as const, "AAAA" as const),
    When: fc.date({ min: new Date(0), max: new Date("9999-12-31"), noInvalidDate: true }).map((at) => at.toISOString()),
    Raw: fc.string({ unit: "grapheme", minLength: 1 }),
    Keys: fc.array(fc.integer({ min: 1, max: 99 }), { minLength: 1, maxLength: 4 }),
    Labels: fc.dictionary(fc.stringMatching(/^[a-z]{1,5}$/), fc.stringMatching(/^[A-Z]{0,5}$/), {
      minKeys: 1,
      maxKeys: 4,
      noNullPrototype: true,
    }),
    Quotas: fc.record(
      { Servers: fc.integer({ min: 1, max: 9 }), CPU: fc.integer({ min: 1, max: 9 }) },
      { noNullPrototype: true },
    ),
    Rules: fc.array(
      fc.record(
        { Source: fc.constantFrom("any", "10.0.0.1"), Port: fc.integer({ min: 1, max: 65535 }) },
        { noNullPrototype: true },
      ),
      { minLength: 1, maxLength: 3 },
    ),
  },
  { requiredKeys: ["Name"], noNullPrototype: true },
);
const everything = Type.Object({
  Name: text(),
  TTL: optional(integer(1, 2147483647)),
  On: optional(boolean()),
  Type: optional(word(["A", "AAAA"])),
  When: optional(date()),
  Raw: optional(text({ "x-verbatim": true })),
  Keys: optional(list(id())),
  Labels: optional(Labels),
  Quotas: optional(Type.Object({ Servers: number, CPU: number })),
  Rules: optional(list(Type.Object({ Source: text(), Port: integer(1, 65535) }))),
});

/** What Python prints. */
function printRelaxed(given: unknown): string {
  if (given === true) return "True";
  if (given === false) return "False";
  if (typeof given === "string")
    return `'${JSON.stringify(given).slice(1, -1).replaceAll('\\"', '"').replaceAll("'", "\\'")}'`;
  if (Array.isArray(given)) return `[${given.map(printRelaxed).join(", ")}]`;
  if (typeof given !== "object" || given === null) return String(given);
  return `{${Object.entries(given)
    .map(([key, item]) => `${printRelaxed(key)}: ${printRelaxed(item)}`)
    .join(", ")}}`;
}

function printForm(given: unknown, name = ""): string[] {
  if (Array.isArray(given)) return given.flatMap((item, index) => printForm(item, `${name}[${index}]`));
  if (typeof given !== "object" || given === null)
    return [`${encodeURIComponent(name)}=${encodeURIComponent(String(given))}`];
  return Object.entries(given).flatMap(([key, item]) => printForm(item, name === "" ? key : `${name}[${key}]`));
}

test("a value printed as JSON, relaxed JSON or a form is parsed unchanged", () => {
  fc.assert(
    fc.property(valid, (fields) => {
      const json = JSON.stringify(fields);
      assert.deepEqual(value(everything, json), fields);
      assert.deepEqual(value(everything, json, true), fields);
      assert.deepEqual(value(everything, printRelaxed(fields)), fields);
      const form = printForm(fields).join("&");
      assert.deepEqual(value(everything, form), fields);
      assert.deepEqual(value(everything, form, true), fields);
    }),
    { numRuns: 300 },
  );
});
