import assert from "node:assert/strict";
import { test } from "node:test";
import { quote, quoteShell } from "./quote.ts";

test("a quoted text is one short line without control characters", () => {
  assert.equal(quote('a "b"'), '"a \\"b\\""');
  assert.equal(quote("a\u0007b\u202ec\n"), '"a\\u0007b\\u{202e}c\\n"');
  assert.equal(quote("x".repeat(64)), `"${"x".repeat(64)}"`);
  assert.equal(quote("x".repeat(65)), `"${"x".repeat(64)}…"`);
  assert.equal(quote("😀".repeat(50), { longest: 40 }), `"${"😀".repeat(40)}…"`);
  assert.equal(quote("größe", { escape: /[^ -~…]/gu }), '"gr\\u{f6}\\u{df}e"');
});

test("a quoted shell word is read back unchanged", () => {
  assert.equal(quoteShell("it's $HOME"), "'it'\\''s $HOME'");
});
