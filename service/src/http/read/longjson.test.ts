/** Long JSON is parsed in parts: the result is that of `JSON.parse`, for valid and invalid texts. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { runInNewContext } from "node:vm";
import fc from "fast-check";
import { parseParts } from "./longjson.ts";

/** Returns the number of yields and the value. */
function run(text: string): { readonly yields: number; readonly value: unknown } {
  const work = parseParts(text);
  for (let yields = 0; ; yields++) {
    const { done, value } = work.next();
    if (done === true) return { yields, value };
  }
}

/** Returns the object of a text; undefined: it has none, or the parser leaves it to others. */
function expected(text: string): unknown {
  try {
    const value: unknown = JSON.parse(text);
    const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
    return isObject && !Object.hasOwn(value, "__proto__") ? value : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Compares also the order of the keys. `JSON.parse` of Node 24 takes a key with an escape for an earlier key that equals its raw text:
 * `{"a\"":1}` after `{"a\\":1}`. In a new context it has parsed no key.
 */
const same = (text: string): void => {
  const { value } = run(text);
  const printed = JSON.stringify(value);
  if (printed !== undefined && printed !== JSON.stringify(expected(text)))
    return assert.equal(printed, runInNewContext("JSON.stringify(JSON.parse(text))", { text }));
  assert.deepEqual(value, expected(text), text.slice(0, 200));
  assert.equal(JSON.stringify(value), JSON.stringify(expected(text)));
};

test("a long list is parsed with yields", () => {
  const Rules = Array.from({ length: 5000 }, (_, index) => ({
    Name: `rule "${index}", [}\\`,
    Ports: [index, { a: [] }],
  }));
  for (const text of [JSON.stringify({ Rules, Enabled: true }), JSON.stringify({ a: null, Rules }, null, 3)]) {
    const { yields, value } = run(text);
    assert.ok(yields > text.length / 20_000, `${yields} yields`);
    assert.deepEqual(value, JSON.parse(text));
  }
});

test("texts at the edges of the syntax are parsed as `JSON.parse` does", () => {
  const texts = {
    blank: ["", "{}", " {} ", "{ }", "[]", "1", "null", "{", "}", "{}}", "{},", "{},{}"],
    fields: [
      '{"a":1}',
      '{"a":1,}',
      '{,"a":1}',
      '{"a"}',
      '{"a":}',
      '{"a":1 "b":2}',
      '{"a":1,"a":2,"b":3}',
      "{a:1}",
      "{'a':1}",
    ],
    lists: [
      '{"a":[]}',
      '{"a":[ ]}',
      '{"a":[1,]}',
      '{"a":[,1]}',
      '{"a":[,]}',
      '{"a":[1,,2]}',
      '{"a":[1}}',
      '{"a":{]}',
      '{"a":[1]]}',
    ],
    strings: [
      '{"a":["]"]}',
      '{"a":["\\\\"]}',
      '{"a":["\\""]}',
      '{"a":["\\\\\\""]}',
      '{"a":"}',
      '{"a":["x]}',
      '{"\\u0061":"\\u00e9"}',
    ],
    keys: [
      '{"__proto__":1}',
      '{"\\u005f_proto__":1}',
      '{"a":{"__proto__":1}}',
      '{"2":1,"1":2,"a":3}',
      '{"a":[1] , "b" : [2]}\n',
    ],
    ends: [
      '\u00a0{"a":1}',
      '{"a":\u00a01}',
      '{"a":[1\u00a0]}',
      '{"a":01}',
      '{"a":[+1]}',
      '{"a":[1]x}',
      '{"a":[[[1]],[2]]}x',
    ],
  };
  for (const text of Object.values(texts).flat()) same(text);
});

test("a blank part of a long list is no item", () => {
  const items = "7,".repeat(20_000);
  for (const [before, after] of [
    ["", "7"],
    ["", ""],
    ["", " "],
    [",", "7"],
    ["", "7,"],
    ["", "7 , 8"],
  ])
    same(`{"a":[${before}${items}${after}]}`);
});

test("any object is parsed as `JSON.parse` does, also with a character too many or too few", () => {
  const object = fc.dictionary(fc.string(), fc.jsonValue());
  fc.assert(
    fc.property(
      object,
      fc.nat(),
      fc.constantFrom("", ",", '"', "[", "]", "{", "}", ":", "\\", " ", "1"),
      (value, place, mark) => {
        const text = JSON.stringify(value);
        same(text);
        const at = place % text.length;
        same(text.slice(0, at) + mark + text.slice(at));
        same(text.slice(0, at) + mark + text.slice(at + 1));
      },
    ),
    { numRuns: 500 },
  );
});
