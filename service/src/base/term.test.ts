/** Terms of the index of names and labels. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { endOfPrefix, termsOf } from "./term.ts";

test("an object has a term for its name, without letter case, and one for each label", () => {
  const labels = JSON.stringify({ env: "prod", "example.com/team": "" });
  assert.deepEqual(termsOf({ name: "Straße-é", labels }), ["nSTRASSE-É", "lenv=prod", "lexample.com/team="]);
});

test("a prefix ends before the next text that does not begin with it", () => {
  assert.deepEqual(["a", "ab", "z", "a\u{d7ff}", "a\u{10ffff}"].map(endOfPrefix), ["b", "ac", "{", "a\u{e000}", "b"]);
  // Both databases compare UTF-8 byte by byte.
  const compare = (one: string, other: string) => Buffer.compare(Buffer.from(one), Buffer.from(other));
  const text = fc.string({ unit: "binary" });
  const prefix = text.map((more) => `n${more}`);
  fc.assert(fc.property(prefix, text, (head, tail) => compare(`${head}${tail}`, endOfPrefix(head)) < 0));
  fc.assert(
    fc.property(prefix, prefix, (head, other) =>
      compare(other, head) < 0 || other.startsWith(head) ? true : compare(other, endOfPrefix(head)) >= 0,
    ),
  );
});
