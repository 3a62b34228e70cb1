import assert from "node:assert/strict";
import { test } from "node:test";
import { inOrder, isolate, isolated, visible } from "./isolate.ts";

test("a name that changes the direction is isolated, and loses the characters that do so", () => {
  assert.equal(isolate("web-1"), "web-1");
  assert.equal(isolate("שרת"), "\u2068שרת\u2069");
  assert.equal(isolate("abc\u202efdp.exe\u2069"), "\u2068abcfdp.exe\u2069");
});

test("a line that is reviewed reads in its order", () => {
  assert.equal(inOrder('@ TXT "a\u202eb"'), '@ TXT "a\\u{202e}b"');
  assert.equal(inOrder("שרת \u{1f680}"), "שרת \u{1f680}");
});

test("what a user sees of a name can be typed", () => {
  assert.equal(visible("team \u200fשרת \u{1f680}"), visible("team שרת \u{1f680}"));
  assert.equal(visible(isolate("שרת")), "שרת");
  assert.equal(visible(" a\u00a0 b\u200b"), "a b");
  assert.equal(visible("e\u0301"), "\u00e9");
  assert.notEqual(visible("web-1"), visible("Web-1"));
});

test("texts keep their form; only their functions change", () => {
  const texts = isolated({
    plain: "a",
    names: ["b"],
    deep: { of: (name: string, count: number) => `${name}: ${count}` },
  });
  assert.equal(texts.plain, "a");
  assert.deepEqual(texts.names, ["b"]);
  assert.equal(texts.deep.of("x", 2), "x: 2");
  assert.equal(texts.deep.of("\u202ex", 2), "\u2068x\u2069: 2");
});
