/** TXT: the request form, the answer form, the wire, and that they agree. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { checkText, printText, readStrings, readText, showText, stringsOf } from "./text.ts";

test("quoted strings stay separate and are unescaped; other texts are unchanged", () => {
  const cases: [string, string][] = [
    ["abc", "abc"],
    ['"abc"', "abc"],
    ['"abc" ', "abc"],
    ['"abc" "def"', "abc\u001fdef"],
    ['"abc"\t  "def"  ', "abc\u001fdef"],
    ['"abc""def"', "abc\u001fdef"],
    ['""', ""],
    ['"" ""', "\u001f"],
    [`"${"x".repeat(255)}" "y"`, `${"x".repeat(255)}y`],
    [`"${"x".repeat(256)}"`, "x".repeat(256)],
    [`"${"x".repeat(256)}" "y"`, `${"x".repeat(255)}\u001fx\u001fy`],
    ['"a\\"b"', 'a"b'],
    ['"a\\\\b"', "a\\b"],
    ['"\\065\\066"', "AB"],
    ['"\\195\\169"', "é"],
    ['"\\195" "\\169"', "é"],
    ['"a\\bc"', "a\\bc"],
    ['"\\999"', "\\999"],
    ['"\\1" "23"', "\\1\u001f23"],
    ['"a\\\\" "b"', "a\\\u001fb"],
    [' "abc"', ' "abc"'],
    ['"abc" x', '"abc" x'],
    ['"abc', '"abc'],
    ['"abc\\"', '"abc\\"'],
    ['abc"', 'abc"'],
    ["a\\065", "a\\065"],
    [" a b ", " a b "],
    ["a\tb", "a\tb"],
    ["v=spf1 -all; é", "v=spf1 -all; é"],
  ];
  for (const [given, text] of cases) assert.equal(readText(given), text, given);
});

test("invalid texts", () => {
  const code = (text: string) => (readText(text) as { code?: string }).code;
  for (const bad of ["a\u0000b", "a\nb", "a\u007fb", "a\u0085b", '"\\000"', '"\\255"', '"\\010"', "\ud800"])
    assert.equal(code(bad), "format_invalid", JSON.stringify(bad));
  assert.equal(code(""), "too_short");
  assert.equal(code('"" '.repeat(1001)), "too_long");
  assert.equal(code("a\u001fb"), "format_invalid");
  assert.equal(readText("x".repeat(4096)), "x".repeat(4096));
  assert.equal(code("x".repeat(4097)), "too_long");
  assert.equal(code("é".repeat(2049)), "too_long");
  assert.equal(code(`"${"\\065".repeat(4097)}"`), "too_long");
  assert.deepEqual(checkText(null), { code: "format_invalid", reason: "must be UTF-8, and some bytes are not" });
});

test("the response form", () => {
  assert.equal(showText("abc"), '"abc" ');
  assert.equal(showText('a"b\\c'), '"a\\"b\\\\c" ');
  assert.equal(showText("x".repeat(256)), `"${"x".repeat(255)}" "x" `);
  assert.equal(showText(`${"x".repeat(254)}é`), `"${"x".repeat(254)}" "é" `);
  assert.equal(showText(`${"x".repeat(252)}😀!`), `"${"x".repeat(252)}" "😀!" `);
});

const anyText = fc
  .string({
    unit: fc.oneof(
      fc.constantFrom(...Array.from('"\\; \t0é😀日')),
      fc.string({ unit: "grapheme", minLength: 1, maxLength: 1 }),
    ),
    minLength: 1,
    maxLength: 700,
  })
  .filter((text) => typeof checkText(text) === "string");

test("property: a shown, printed or split text is parsed again unchanged", () => {
  fc.assert(
    fc.property(anyText, (text) => {
      assert.equal(readText(showText(text)), text);
      assert.match(printText(text), /^[ -~]+$/);
      assert.equal(readText(printText(text)), text);
      const strings = stringsOf(text);
      assert.equal(strings.join(""), text);
      for (const string of strings) {
        assert.ok(Buffer.byteLength(string) <= 255);
        assert.ok(string.isWellFormed());
      }
    }),
    { numRuns: 500 },
  );
});

test("property: shown or printed strings are parsed again unchanged", () => {
  fc.assert(
    fc.property(fc.array(fc.oneof(anyText, fc.constant("")), { minLength: 1, maxLength: 4 }), (strings) => {
      const quoted = strings.map((one) => `"${one.replace(/["\\]/g, "\\$&")}"`).join(" ");
      const value = readText(quoted) as string;
      assert.equal(typeof value, "string");
      assert.equal(stringsOf(value).join(""), strings.join(""));
      if (strings.length > 1 && strings.every((one) => Buffer.byteLength(one) <= 200))
        assert.deepEqual(stringsOf(value), strings);
      assert.equal(readText(showText(value)), value);
      assert.equal(readText(printText(value)), value);
    }),
    { numRuns: 500 },
  );
});

test("property: any text is parsed again unchanged, or rejected", () => {
  const hostile = fc.string({ unit: fc.constantFrom(...Array.from('"\\ 0129a\té\u0007\ud800')), maxLength: 40 });
  fc.assert(
    fc.property(hostile, (given) => {
      const text = readText(given);
      if (typeof text === "string") assert.equal(readText(showText(text)), text);
      else assert.match(text.reason, /^must /);
    }),
    { numRuns: 3000 },
  );
});

test("all escapes of zone file strings are decoded", () => {
  assert.equal(readStrings(["a\\;b\\x\\065"], true), "a;bxA");
  assert.equal(readStrings(["\\195", "\\169"], true), "é");
  assert.equal(readStrings(["a=1", "b=2"], true), "a=1\u001fb=2");
  for (const bad of ["\\256", "\\1", "\\12x", "\\195"]) assert.equal(typeof readStrings([bad], true), "object", bad);
});
