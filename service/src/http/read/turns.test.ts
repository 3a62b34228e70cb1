/** A long body is read in slices: reading yields after each element of a list, and gives the same result as reading at once. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { list, text } from "@brume/api/common.ts";
import { Type } from "typebox";
import { decodeInTurns, type RawFields } from "./body.ts";
import { readFields, readInTurns } from "./fields.ts";

const schema = Type.Object({ Rules: list(Type.Object({ Name: text({ maxLength: 8 }) })) });
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
