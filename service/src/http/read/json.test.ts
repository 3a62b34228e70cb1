/** The strict JSON reader: RFC 8259, the additions of relaxed JSON, and what `JSON.parse` does not check. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { ApiError } from "../../base/error.ts";
import { isWrittenNumber, type JsonObject, parseJson, repeatedKeys, textOf } from "./json.ts";

/** Anything that a string can hold, halves of surrogate pairs too. */
const unit = fc.oneof(fc.nat(0x7f), fc.nat(0xffff)).map((code) => String.fromCharCode(code));

function isRefused(error: unknown): boolean {
  assert.ok(error instanceof ApiError, String(error));
  assert.equal(error.code, "body_not_readable");
  return true;
}

/** As `JSON.parse` would give it. */
function plain(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value, (_, item: unknown) => (isWrittenNumber(item) ? Number(textOf(item)) : item)));
}

test("texts that both parsers accept", () => {
  const rows = [
    "{}",
    "[]",
    ' \t\r\n{ "a" : [ 1 , -2.5 , 3e2 , 4E-1 , true , false , null , "x" ] } ',
    '{"":{"a":{}}}',
    String.raw`["\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00"]`,
    '"é😀\u2028"',
    "0",
    "-0.0",
    '["\u007f"]',
  ];
  for (const text of rows)
    for (const relaxed of [false, true])
      assert.deepEqual(plain(parseJson(text, relaxed)), plain(JSON.parse(text)), text);
});

test("texts that both parsers reject", () => {
  const rows = [
    "",
    "{",
    "[",
    "{]",
    "[1,]",
    '{"a":1,}',
    "{a:1}",
    '{"a"}',
    '{"a":}',
    '{"a" 1}',
    "{1:2}",
    "[1 2]",
    "[01]",
    "[+1]",
    "[.5]",
    "[1.]",
    "[1e]",
    "[0x1]",
    "[NaN]",
    "[Infinity]",
    "[undefined]",
    "[TRUE]",
    "[none]",
    '"',
    '["a\nb"]',
    '["\u0001"]',
    String.raw`["\x41"]`,
    String.raw`["\'"]`,
    String.raw`["\u12g4"]`,
    String.raw`["\u12"]`,
    "[1]x",
    "[1]//",
    "/**/[1]",
    "[`a`]",
    "\u00a0[]",
    "[(1)]",
    'u"a"',
  ];
  for (const text of rows)
    for (const relaxed of [false, true]) assert.throws(() => parseJson(text, relaxed), isRefused, JSON.stringify(text));
});

test("texts that only relaxed JSON accepts", () => {
  const rows: [string, unknown][] = [
    ["{'a': 'b'}", { a: "b" }],
    ["['it\\'s', '\"', \"'\"]", ["it's", '"', "'"]],
    ["[True, False, None]", [true, false, null]],
    [String.raw`['\u00e9\n']`, ["é\n"]],
  ];
  for (const [text, value] of rows) {
    assert.deepEqual(plain(parseJson(text, true)), value);
    assert.throws(() => parseJson(text, false), isRefused);
  }
});

test("a lone surrogate is rejected", () => {
  for (const text of [
    String.raw`"\ud800"`,
    String.raw`"\udc00\ud800"`,
    String.raw`{"\ud800":1}`,
    String.raw`"\ud83dx\ude00"`,
  ])
    assert.throws(() => parseJson(text, true), isRefused);
});

test("32 levels are accepted, 33 are not", () => {
  const nest = (levels: number): string => "[".repeat(levels) + "]".repeat(levels);
  parseJson(nest(32), false);
  assert.throws(() => parseJson(nest(33), false), isRefused);
  assert.throws(() => parseJson("[".repeat(1_000_000), false), isRefused);
  assert.throws(() => parseJson('{"a":'.repeat(33), true), isRefused);
});

test("duplicate keys are recorded, and the last one counts", () => {
  const object = parseJson('{"a":1,"b":2,"a":3,"c":{"a":1}}', false) as JsonObject;
  assert.deepEqual(
    Object.entries(object).map(([key, value]) => [key, typeof value === "object" ? "…" : value]),
    [
      ["b", 2],
      ["a", 3],
      ["c", "…"],
    ],
  );
  assert.deepEqual([...repeatedKeys(object)], ["a"]);
  assert.equal(repeatedKeys(object["c"] as JsonObject).size, 0);
});

test("names of JavaScript properties are ordinary keys", () => {
  const object = parseJson('{"__proto__":{"x":1},"constructor":2,"__proto__":3}', false) as JsonObject;
  assert.deepEqual(Object.keys(object), ["constructor", "__proto__"]);
  assert.deepEqual([...repeatedKeys(object)], ["__proto__"]);
  assert.equal(({} as Record<string, unknown>)["x"], undefined);
});

test("numbers that a double cannot represent keep their text", () => {
  for (const text of ["10.0", "1e3", "-0", "12345678901234567890", "0.10", "1E400"]) {
    const value = parseJson(text, false);
    assert.ok(isWrittenNumber(value), text);
    assert.equal(textOf(value), text);
  }
  for (const text of ["0", "-1", "10.5", "2147483647", "1e+21"]) assert.equal(parseJson(text, false), Number(text));
});

test("every JSON value is parsed as JSON.parse does", () => {
  fc.assert(
    fc.property(fc.json({ stringUnit: "grapheme" }), (text) => {
      const expected: unknown = JSON.parse(text);
      if (!JSON.stringify(expected).includes("\\ud")) assert.deepEqual(plain(parseJson(text, false)), plain(expected));
    }),
  );
});

test("any text is parsed or throws body_not_readable", () => {
  const token = fc.constantFrom(
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    '"',
    "'",
    "\\",
    "u",
    "d800",
    "1",
    "-",
    ".",
    "e",
    "true",
    "None",
    " ",
  );
  const text = fc.oneof(
    fc.string({ unit }),
    fc.array(token).map((parts) => parts.join("")),
  );
  fc.assert(
    fc.property(text, fc.boolean(), (text, relaxed) => {
      try {
        parseJson(text, relaxed);
      } catch (error) {
        isRefused(error);
      }
    }),
    { numRuns: 1000 },
  );
});
