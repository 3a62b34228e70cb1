/** The table of coercions, docs/spec.md#coercion, line by line; and what strict mode leaves of it. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { id, integer, text, word } from "@brume/api/common.ts";
import fc from "fast-check";
import { type Json, type JsonObject, parseJson } from "./json.ts";
import { compileScalar, type Mode, type Schema } from "./scalar.ts";

const loose: Mode = { strict: false, form: false };
const strict: Mode = { strict: true, form: false };
const strictForm: Mode = { strict: true, form: true };

/** JSON of what is given, then the value, or the code of the refusal in capitals' stead: `!type_mismatch`. */
type Row = readonly [given: string, wanted: unknown];

function check(schema: unknown, mode: Mode, rows: readonly Row[]): void {
  const convert = compileScalar(schema as Schema);
  for (const [given, wanted] of rows) {
    const result = convert(parseJson(given, false), mode);
    assert.deepEqual(typeof result === "object" ? `!${result.code}` : result, wanted, given);
  }
}

test("integer", () => {
  check(integer(-5, 600), loose, [
    ["512", 512],
    ["-5", -5],
    ["0", 0],
    ["-0", 0],
    ['" 512 "', 512],
    ['"+7"', 7],
    ['"-5"', -5],
    ['"007"', 7],
    ["10.0", 10],
    ["1e2", 100],
    ['""', undefined],
    ['"  "', undefined],
    ["601", "!out_of_range"],
    ["-6", "!out_of_range"],
    ['"601"', "!out_of_range"],
    ["12345678901234567890", "!out_of_range"],
    ['"99999999999999999999999999"', "!out_of_range"],
    ["1e400", "!out_of_range"],
    ["1.5", "!type_mismatch"],
    ["1.0000000000000000001", "!type_mismatch"],
    ["1e-400", "!type_mismatch"],
    ['"1.0"', "!type_mismatch"],
    ['"1e2"', "!type_mismatch"],
    ['"0x10"', "!type_mismatch"],
    ['"5 0"', "!type_mismatch"],
    ['"- 5"', "!type_mismatch"],
    ['"--5"', "!type_mismatch"],
    ['"٣"', "!type_mismatch"],
    ['"abc"', "!type_mismatch"],
    ["true", "!type_mismatch"],
    ["[]", "!type_mismatch"],
    ["[5]", "!type_mismatch"],
    ["{}", "!type_mismatch"],
  ]);
  check({ type: "integer", multipleOf: 128 }, loose, [
    ["256", 256],
    ["200", "!out_of_range"],
  ]);
  check({ type: "integer", enum: [7, 14], minimum: 7, maximum: 14 }, loose, [
    ['"14"', 14],
    ["8", "!value_not_allowed"],
    ["6", "!value_not_allowed"],
    ["15", "!value_not_allowed"],
    ['"x"', "!type_mismatch"],
  ]);
});

test("boolean", () => {
  const yes = ["true", "1", "1.0", '"true"', '"True"', '" YES "', '"on"', '"1"'];
  const no = ["false", "0", "-0", '"FALSE"', '"no"', '"Off"', '"0"'];
  const bad = ["2", "0.5", '"y"', '"t"', '"2"', '"truee"', "[]", "[true]", "{}"];
  check({ type: "boolean" }, loose, [
    ...yes.map((given): Row => [given, true]),
    ...no.map((given): Row => [given, false]),
    ...bad.map((given): Row => [given, "!type_mismatch"]),
    ['""', undefined],
  ]);
});

test("text", () => {
  check(text(), loose, [
    ['"abc"', "abc"],
    ['""', ""],
    ["17", "17"],
    ["10.0", "10"],
    ["-0", "0"],
    ["1.50", "1.5"],
    ["1e3", "1000"],
    ["1e21", "1000000000000000000000"],
    ["1e-7", "0.0000001"],
    ["12345678901234567890", "12345678901234567890"],
    ["true", "true"],
    ["false", "false"],
    ["1e400", "!type_mismatch"],
    ["[]", "!type_mismatch"],
    ['["a"]', "!type_mismatch"],
    ["{}", "!type_mismatch"],
    [String.raw`"a\u0000"`, "!format_invalid"],
  ]);
});

test("text is trimmed and normalised to NFC, unless it is verbatim", () => {
  check(text(), loose, [
    [String.raw`" \t a b\n\u00a0"`, "a b"],
    [String.raw`"e\u0301"`, "\u00e9"],
    ['"  "', ""],
  ]);
  check(text({ "x-verbatim": true }), loose, [
    [String.raw`" \t a b\n"`, " \t a b\n"],
    [String.raw`"e\u0301"`, "e\u0301"],
    ['"  "', "  "],
    [String.raw`"\u0000"`, "!format_invalid"],
  ]);
});

test("long runs of combining marks, which make NFC slow, are rejected", () => {
  const convert = compileScalar({ type: "string" });
  assert.equal(convert(`a${"\u0316".repeat(30)}`, loose), `a${"\u0316".repeat(30)}`);
  const refused = convert(`a${"\u0301\u0316".repeat(200_000)}`, loose);
  assert.ok(typeof refused === "object" && refused.code === "format_invalid");
});

test("lengths count characters", () => {
  check(text({ minLength: 2, maxLength: 3 }), loose, [
    ['"a"', "!too_short"],
    ['"ab"', "ab"],
    ['"abc"', "abc"],
    ['"abcd"', "!too_long"],
    ['"😀"', "!too_short"],
    ['"😀😀😀"', "😀😀😀"],
    ['"😀😀😀😀"', "!too_long"],
    ['" abc "', "abc"],
    [String.raw`"e\u0301e\u0301e\u0301"`, "ééé"],
  ]);
});

test("patterns", () => {
  check(text({ pattern: "^[a-z]*$" }), loose, [
    ['"abc"', "abc"],
    ['"a1"', "!format_invalid"],
    ['"abc\\n1"', "!format_invalid"],
  ]);
});

test("word", () => {
  check(word(["SSD", "Sas"]), loose, [
    ['"SSD"', "SSD"],
    ['"ssd"', "SSD"],
    ['" sAS "', "Sas"],
    ['""', undefined],
    ['"ſsd"', "!value_not_allowed"],
    ['"other"', "!value_not_allowed"],
    ['"__proto__"', "!value_not_allowed"],
    ["1", "!value_not_allowed"],
    ["true", "!value_not_allowed"],
    ["[]", "!type_mismatch"],
    ["{}", "!type_mismatch"],
  ]);
  check(word(["1", "true"]), loose, [
    ["1", "1"],
    ["true", "true"],
  ]);
});

test("id", () => {
  const rows: Row[] = [
    ["3", 3],
    ['"3"', 3],
    ["2147483647", 2147483647],
    ["0", undefined],
    ['"0"', undefined],
    ["-1", "!out_of_range"],
    ["2147483648", "!out_of_range"],
    ["3.5", "!type_mismatch"],
  ];
  check({ ...id(), "x-id": true }, loose, rows);
  check({ ...id({ minimum: 0 }), "x-id": true }, loose, [["0", 0]]);
  check(integer(1, 9), loose, [["0", "!out_of_range"]]);
});

test("date", () => {
  check({ type: "string", format: "date-time" }, loose, [
    ['"2026-11-20T10:15:00+01:00"', "2026-11-20T09:15:00.000Z"],
    ['" 2026-11-20T09:15:00 "', "2026-11-20T09:15:00.000Z"],
    ['"2026-11-20"', "2026-11-20T00:00:00.000Z"],
    ['""', undefined],
    ['"tomorrow"', "!type_mismatch"],
    ["1763629200", "!type_mismatch"],
    ["[]", "!type_mismatch"],
  ]);
});

test("strict: values are not converted", () => {
  check(integer(1, 600), strict, [
    ["512", 512],
    ["601", "!out_of_range"],
    ["12345678901234567890", "!out_of_range"],
    ['"512"', "!type_mismatch"],
    ["10.0", "!type_mismatch"],
    ["1e2", "!type_mismatch"],
    ['""', "!type_mismatch"],
  ]);
  check({ type: "boolean" }, strict, [
    ["true", true],
    ["false", false],
    ["1", "!type_mismatch"],
    ['"true"', "!type_mismatch"],
    ['""', "!type_mismatch"],
  ]);
  check(text(), strict, [
    ['"a"', "a"],
    ["17", "!type_mismatch"],
    ["true", "!type_mismatch"],
  ]);
  check(word(["SSD"]), strict, [
    ['"SSD"', "SSD"],
    ['"ssd"', "!value_not_allowed"],
    ['" SSD"', "!value_not_allowed"],
    ["1", "!type_mismatch"],
  ]);
  check({ ...id(), "x-id": true }, strict, [["0", "!out_of_range"]]);
  check({ type: "string", format: "date-time" }, strict, [
    ['"2026-11-20T10:15:00+01:00"', "2026-11-20T09:15:00.000Z"],
    ['"2026-11-20T09:15:00"', "!type_mismatch"],
    ['"2026-11-20"', "!type_mismatch"],
  ]);
});

test("strict: a value may have the type of the response", () => {
  check(integer(0, 9, { "x-either": true }), strict, [
    ["7", 7],
    ['"7"', 7],
    ['"10"', "!out_of_range"],
    ['" 7"', "!type_mismatch"],
    ['""', "!type_mismatch"],
    ["true", "!type_mismatch"],
  ]);
  check(text({ "x-either": true }), strict, [
    ["7", "7"],
    ['"7"', "7"],
    ["7.5", "!type_mismatch"],
    ["7.0", "!type_mismatch"],
    ["true", "!type_mismatch"],
  ]);
  check(word(["SSD"]), strict, [['""', undefined]]);
});

test("strict: in a form, a text is parsed as the value that it spells", () => {
  check(integer(1, 600), strictForm, [
    ['"512"', 512],
    ['" 512"', "!type_mismatch"],
    ['"+512"', "!type_mismatch"],
    ['"007"', "!type_mismatch"],
  ]);
  check({ type: "boolean" }, strictForm, [
    ['"true"', true],
    ['"True"', "!type_mismatch"],
    ['"1"', "!type_mismatch"],
  ]);
});

test("an unknown schema is an internal error, not one of the client", () => {
  for (const schema of [{}, { type: "number" }, { type: "string", format: "email" }])
    assert.throws(() => compileScalar(schema), /is not supported in requests/);
});

test("converting any value does not throw, and the result is accepted again", () => {
  const schemas: Schema[] = [
    integer(-10, 10),
    { type: "boolean" },
    { type: "string", maxLength: 5 },
    word(["a", "B"]) as unknown as Schema,
    { type: "string", format: "date-time" },
  ];
  const given = fc.json({ stringUnit: "grapheme" }).map((json) => parseJson(json, false));
  fc.assert(
    fc.property(given, fc.constantFrom(...schemas), (value: Json | JsonObject, schema) => {
      if (value === null) return;
      const convert = compileScalar(schema);
      const result = convert(value, loose);
      if (result !== undefined && typeof result !== "object") assert.equal(convert(result, strict), result);
    }),
    { numRuns: 1000 },
  );
});
