/** From bytes to fields: docs/spec.md#reading-the-request-body, rules 1 to 7, and what docs/spec.md#strict-mode changes in them. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { Type } from "typebox";
import { ApiError } from "../../base/error.ts";
import { type BodyHeaders, decodeBody } from "./body.ts";
import { readFields } from "./fields.ts";

const encode = (text: string): Uint8Array => new TextEncoder().encode(text);
const field = Type.Object({ a: Type.Optional(Type.String()) });

/** The text of the one field `a`, or the code of the error. */
function read(body: string | Uint8Array, headers: BodyHeaders = {}, strict = false): string | undefined {
  try {
    const raw = decodeBody(typeof body === "string" ? encode(body) : body, headers, strict);
    return readFields(field, raw, { strict }).value.a;
  } catch (error) {
    assert.ok(error instanceof ApiError, String(error));
    assert.ok(error.message.length < 200 && !error.message.includes("\n"));
    return error.code;
  }
}

test("rule 2: no content encoding but identity", () => {
  for (const contentEncoding of ["identity", "Identity", "", undefined])
    assert.equal(read('{"a":"x"}', { contentEncoding }), "x");
  for (const contentEncoding of ["gzip", "identity, gzip", "x\r\ny"])
    assert.equal(read('{"a":"x"}', { contentEncoding }), "media_type_not_supported");
});

test("rule 3: UTF-8, a byte order mark, blank bodies", () => {
  assert.equal(read('\ufeff{"a":"é"}'), "é");
  for (const body of ["", " \r\n\t", "\ufeff", "\ufeff "]) assert.equal(read(body), undefined);
  for (const bytes of [[0x7b, 0xff, 0x7d], [0xc3], [0xed, 0xa0, 0x80], [0xc0, 0x80], [0xf4, 0x90, 0x80, 0x80]])
    assert.equal(read(Uint8Array.from(bytes)), "body_not_readable");
});

test("rule 4: media types", () => {
  const good = [
    "application/json",
    "APPLICATION/JSON; charset=utf-8",
    "text/json",
    "application/problem+json",
    "application/merge-patch+JSON ; a=b",
    "application/x-www-form-urlencoded",
    "text/plain",
    "",
    undefined,
  ];
  for (const contentType of good) {
    assert.equal(read('{"a":"x"}', { contentType }), "x", contentType);
    assert.equal(read("a=x", { contentType }), "x", contentType);
  }
  for (const contentType of [
    "multipart/form-data; boundary=x",
    "application/xml",
    "json",
    "application/octet-stream",
    "*/*",
  ]) {
    assert.equal(read('{"a":"x"}', { contentType }), "media_type_not_supported", contentType);
    assert.equal(read("", { contentType }), "media_type_not_supported", contentType);
  }
});

test("rule 4: the first visible character decides", () => {
  assert.equal(read(' \n{"a":"x"}', { contentType: "application/x-www-form-urlencoded" }), "x");
  assert.equal(read(' \n{"a":"x=y"}'), "x=y");
  assert.equal(read("{'a':'x'}", { contentType: "text/plain" }), "x");
  assert.equal(read("a=x", { contentType: "application/json" }), "x");
  assert.equal(read("{a=x}"), "body_not_readable");
  assert.equal(read('"a=x'), undefined);
});

test("rule 5: JSON nested at most 32 deep, in both parsers", () => {
  const nest = (levels: number, rest = ""): string =>
    `{"b":${"[".repeat(levels - 1)}${"]".repeat(levels - 1)},"a":"x"${rest}}`;
  assert.equal(read(nest(32)), "x");
  assert.equal(read(nest(33)), "body_not_readable");
  assert.equal(read(nest(32, ",'c':1")), "x");
  assert.equal(read(nest(33, ",'c':1")), "body_not_readable");
  assert.equal(read(nest(32, ',"c":"\\ud83d\\ude00"')), "x");
  assert.equal(read(nest(33, ',"c":"\\ud83d\\ude00"')), "body_not_readable");
  assert.equal(read(nest(500_000)), "body_not_readable");
});

test("rules 3 and 5: no lone surrogates in JSON", () => {
  assert.equal(read(String.raw`{"a":"\ud83d\ude00"}`), "😀");
  assert.equal(read(String.raw`{"a":"\ud83d"}`), "body_not_readable");
  assert.equal(read(String.raw`{"\uDC00":"x"}`), "body_not_readable");
});

test("rule 7: malformed bodies, and values that are not objects", () => {
  for (const body of ["{", '{"a":"x"', "null", "17", '"text"', "hello", "[1", "{}{}", "a=%zz"])
    assert.equal(read(body), "body_not_readable", body);
  for (const body of ["[]", '[{"a":"x"}]', "['a']"]) assert.equal(read(body), "body_not_object", body);
});

test("strict: the media type of the body decides", () => {
  const json = { contentType: "application/json" };
  const form = { contentType: "application/x-www-form-urlencoded" };
  assert.equal(read('{"a":"x"}', json, true), "x");
  assert.equal(read("a=x", form, true), "x");
  assert.equal(read("a=x", json, true), "body_not_readable");
  assert.equal(read('{"a":"x"}', form, true), "body_not_readable");
  assert.equal(read('{"a":"x"}', {}, true), "x");
  assert.equal(read("a=x", { contentType: "text/plain" }, true), "x");
  assert.equal(read("[]", json, true), "body_not_object");
  assert.equal(read("17", json, true), "body_not_object");
  assert.equal(read("", json, true), undefined);
});

test("strict: relaxed JSON is off", () => {
  for (const body of ["{'a':'x'}", '{"a":"x","b":True}', '{"a":"x","b":None}']) {
    assert.equal(read(body), "x", body);
    assert.equal(read(body, {}, true), "body_not_readable", body);
  }
});

test("for any bytes and headers, decoding throws only ApiError", () => {
  const type = fc.oneof(
    fc.constantFrom(undefined, "application/json", "application/x-www-form-urlencoded"),
    fc.string(),
  );
  const token = fc.constantFrom(
    '{"',
    '":',
    "{",
    "}",
    "[",
    "]",
    ",",
    '"',
    "'",
    "a",
    "=",
    "&",
    "1",
    "e999",
    "\\ud800",
    "%",
  );
  const text = fc.array(token).map((parts) => encode(parts.join("")));
  const bytes = fc.oneof(fc.uint8Array(), fc.json().map(encode), text);
  fc.assert(
    fc.property(bytes, type, fc.boolean(), (bytes, contentType, strict) => {
      try {
        decodeBody(bytes, { contentType }, strict);
      } catch (error) {
        assert.ok(error instanceof ApiError, String(error));
      }
    }),
    { numRuns: 1000 },
  );
});
