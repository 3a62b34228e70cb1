/** A long body is read in slices: reading yields after each element of a list, and gives the same result as reading at once. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { list, text } from "@brume/api/common.ts";
import { Type } from "typebox";
import { decodeInTurns, type RawFields } from "./body.ts";
import { readFields, readInTurns } from "./fields.ts";

const schema = Type.Object({
  Rules: Type.Optional(list(Type.Object({ Name: Type.Optional(text({ maxLength: 8 })) }))),
  Names: Type.Optional(list(text({ maxLength: 32 }))),
});
const count = 500;

function bodyOf(names: readonly string[]): RawFields {
  return { kind: "json", fields: { Rules: names.map((Name) => ({ Name })) }, text: null };
}

/** Returns the number of yields and the result. */
function run<T>(work: Generator<void, T>): { readonly yields: number; readonly value: T } {
  for (let yields = 0; ; yields++) {
    const { done, value } = work.next();
    if (done === true) return { yields, value };
  }
}

test("reading yields after each element of a list", () => {
  const body = bodyOf(Array.from({ length: count }, (_, index) => `n${index}`));
  const { yields, value } = run(readInTurns(schema, body, { strict: false }));
  assert.ok(yields >= count, `${yields} yields`);
  assert.deepEqual(value, readFields(schema, body, { strict: false }));
});

test("the errors of a list have the same order in slices", () => {
  const body = bodyOf(["one", "too long for it", "two", "too long as well"]);
  const { value } = run(readInTurns(schema, body, { strict: true }));
  assert.deepEqual(
    value.errors.map(({ pointer }) => pointer),
    ["/Rules/1/Name", "/Rules/3/Name"],
  );
});

/** Decodes and reads a body. Returns the number of yields and the value. */
function readAll(body: string, strict = false) {
  const decoded = run(decodeInTurns(Buffer.from(body), {}, strict));
  const { yields, value } = run(readInTurns(schema, decoded.value, { strict }));
  return { decodes: decoded.yields, reads: yields, value };
}

/** Returns the texts of `unit` with the numbers below `times`, joined. */
const repeat = (times: number, unit: (index: number) => string, between = "&"): string =>
  Array.from({ length: times }, (_, index) => unit(index)).join(between);

test("a form is decoded and read with a yield after each pair and each name", () => {
  const rules = repeat(count, (index) => `Rules[${index}][Name]=n${index}`);
  const same = repeat(count, () => "a=1");
  const unknown = repeat(count, (index) => `a${index}=1`);
  for (const strict of [false, true]) {
    const { decodes, reads, value } = readAll(rules, strict);
    assert.ok(decodes >= count && reads >= count, `${decodes} and ${reads} yields`);
    assert.equal((value.value as { Rules: unknown[] }).Rules.length, count);
    assert.ok(readAll(same, strict).decodes >= count);
    assert.ok(readAll(unknown, strict).reads >= count);
  }
  assert.ok(readAll(repeat(count, () => "Names=1")).reads >= count);
});

test("a text with commas is read with a yield after each part", () => {
  const { reads, value } = readAll(JSON.stringify({ Names: repeat(count, String, ",") }));
  assert.ok(reads >= count, `${reads} yields`);
  assert.equal((value.value as { Names: unknown[] }).Names.length, count);
});

test("an object with many fields is read with a yield after each field, also in a list", () => {
  const fields = repeat(count, (index) => `"a${index}":1`, ",");
  for (const body of [`{${fields}}`, `{"Rules":[{${fields}}]}`]) {
    const { reads } = readAll(body);
    assert.ok(reads >= count, `${reads} yields`);
    assert.ok(readAll(body, true).decodes >= count);
  }
});

test("a body with two spellings of a name is parsed again with yields", () => {
  const rules = repeat(count, (index) => `{"Name":"n${index}"}`, ",");
  const { reads, value } = readAll(`{"Rules":[${rules}],"rules":[${rules}]}`);
  // Each of the two lists is parsed again, and one of them is read twice.
  assert.ok(reads >= 4 * count, `${reads} yields`);
  assert.equal((value.value as { Rules: unknown[] }).Rules.length, count);
});

test("a long list or object inside a list is decoded with yields", () => {
  const fields = repeat(9000, (index) => `"a${index}":1`, ",");
  for (const body of [`{"Rules":[{${fields}}]}`, `{"Others":{"a":[${repeat(40_000, String, ",")}]}}`]) {
    const { decodes } = readAll(body);
    assert.ok(decodes >= 9000, `${decodes} yields`);
  }
});

test("a long text is searched for numbers in parts", () => {
  const body = `{"a":"${"123456789012345 ".repeat(50_000)}"}`;
  assert.ok(readAll(body).decodes >= 12);
  // A number across the end of a part is not overlooked.
  for (let shift = 0; shift < 20; shift++) {
    const text = `{"a":"${" ".repeat(65_536 - 10 - shift)}","Names":[12345678901234567890]}`;
    assert.deepEqual(readAll(text).value.value, { Names: ["12345678901234567890"] });
  }
});

test("an object with more than 100,000 fields, or a form with as many names, is not readable", () => {
  const json = repeat(100_001, (index) => `"a${index}":1`, ",");
  const form = (name: (index: number) => string) => repeat(100_001, (index) => `${name(index)}=1`);
  const bodies = [
    `{${json}}`,
    `{"Rules":[{${json}}]}`,
    form((index) => `a${index}`),
    form((index) => `Rules[${index}]`),
    form((index) => `Rules[0][a${index}]`),
  ];
  for (const body of bodies) assert.throws(() => readAll(body), /more than 100000/);
  assert.throws(() => readAll(`{${json}}`, true), /more than 100000/);
  assert.throws(() => readAll(`a${".b".repeat(100_000)}=1`), /more than 32 levels/);
});

test("decoding a body yields: after each element of a list in strict mode, and around `JSON.parse` otherwise", () => {
  const text = JSON.stringify({ Rules: Array.from({ length: count }, (_, index) => ({ Name: `n${index}` })) });
  for (const [strict, least] of [
    [true, count],
    [false, 3],
  ] as const) {
    const { yields, value } = run(decodeInTurns(Buffer.from(text), { contentType: "application/json" }, strict));
    assert.ok(yields >= least, `${yields} yields`);
    assert.deepEqual(JSON.parse(JSON.stringify(value.fields)), JSON.parse(text));
  }
});

test("decoding a long body yields after each part of its lists, with the same result", () => {
  const Rules = Array.from({ length: 20_000 }, (_, index) => ({ Name: `n${index}` }));
  const text = JSON.stringify({ Rules, Enabled: true });
  const { yields, value } = run(decodeInTurns(Buffer.from(text), { contentType: "application/json" }, false));
  assert.ok(yields > Rules.length, `${yields} yields`);
  assert.ok(value.kind === "json" && value.text === text);
  assert.deepEqual(value.fields, JSON.parse(text));
  const deep = `{"Rules":[${"[".repeat(40)}${"]".repeat(40)},"${"x".repeat(70_000)}"]}`;
  assert.throws(
    () => run(decodeInTurns(Buffer.from(deep), { contentType: "application/json" }, false)),
    /more than 32 levels/,
  );
});

test("decoding a long object yields twice for each field: when it is parsed, and when its depth is checked", () => {
  const fields = Object.fromEntries(Array.from({ length: 10_000 }, (_, index) => [`n${index}`, index]));
  const text = JSON.stringify(fields);
  const { yields, value } = run(decodeInTurns(Buffer.from(text), { contentType: "application/json" }, false));
  assert.ok(yields > 20_000, `${yields} yields`);
  assert.deepEqual(value.fields, fields);
});
