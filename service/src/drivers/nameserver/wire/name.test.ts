import assert from "node:assert/strict";
import { test } from "node:test";
import { labelStarts, lowerCase, nameOf, parentOf, relativeTo, textOf, writeName } from "./name.ts";

test("names go to the wire form and back", () => {
  assert.equal(nameOf("www.example.com"), "\x03www\x07example\x03com");
  assert.equal(nameOf(""), "");
  for (const text of ["", "a", "_x._tcp.example.com", "*.a.b", `${"a".repeat(63)}.com`])
    assert.equal(textOf(nameOf(text)), text);
  assert.equal(nameOf("WWW.Example.COM"), nameOf("www.example.com"));
  assert.equal(nameOf("a\\046b.\\032\\255.0/25"), "\x03a.b\x02 \xff\x040/25");
  const bytes = Buffer.alloc(9);
  assert.equal(bytes.toString("latin1", 0, writeName(bytes, 0, "WwW.eX")), "\x03WwW\x02eX");
});

test("an invalid name is rejected with the reason", () => {
  for (const [text, reason] of [
    ["a..b", /empty label/],
    [".", /empty label/],
    ["a.", /empty label/],
    [".a", /empty label/],
    [`${"a".repeat(64)}.com`, /more than 63/],
    [`${`${"a".repeat(49)}.`.repeat(5)}aaaa`, /longer than 255/],
    ["a b", /printable/],
    ["grün.de", /printable/],
    ["a\\", /open escape/],
    ["a\\.b", /escape/],
    ["a\\256", /escape/],
  ] as const) {
    assert.throws(() => nameOf(text), reason, text);
  }
  assert.equal(nameOf(`${`${"a".repeat(49)}.`.repeat(5)}aaa`).length, 254);
});

test("bytes that are not printable ASCII are written as decimal escapes", () => {
  assert.equal(textOf("\x04a.\x00\xff\x01b"), "a\\046\\000\\255.b");
});

test("a name is in a zone only by complete labels", () => {
  const zone = nameOf("example.com");
  assert.equal(relativeTo(zone, zone), "");
  assert.equal(relativeTo(nameOf("a.b.example.com"), zone), "\x01a\x01b");
  assert.equal(relativeTo(nameOf("xexample.com"), zone), null);
  assert.equal(relativeTo(nameOf("com"), zone), null);
  assert.equal(relativeTo(`\x0dab\x07example\x03com`.slice(0, 14), zone), null);
  // One label that contains the bytes of the zone's name.
  assert.equal(relativeTo("\x0ex\x07example\x03comx", "\x07example\x03comx"), null);
  assert.equal(relativeTo(nameOf("a.b"), ""), nameOf("a.b"));
});

test("labels and parents", () => {
  assert.deepEqual(labelStarts(nameOf("a.bc.d")), [0, 2, 5]);
  assert.equal(parentOf(nameOf("a.bc.d")), nameOf("bc.d"));
  assert.equal(parentOf(nameOf("a")), "");
});

test("lower case is of ASCII letters only", () => {
  assert.equal(lowerCase("\x03WwW\x02\xc4Z"), "\x03www\x02\xc4z");
});
