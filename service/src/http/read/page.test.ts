/** Cursors and links between pages. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { ApiError } from "../../base/error.ts";
import { decodeCursor, encodeCursor, linkNext } from "./page.ts";

/** Anything that a string can hold, halves of surrogate pairs too. */
const unit = fc.oneof(fc.nat(0x7f), fc.nat(0xffff)).map((code) => String.fromCharCode(code));

function isRefused(error: unknown): boolean {
  assert.ok(error instanceof ApiError);
  assert.equal(error.code, "query_invalid");
  assert.equal(error.errors[0]?.pointer, "?cursor");
  return true;
}

const pack = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString("base64url");

test("a cursor is parsed as it was created", () => {
  fc.assert(fc.property(fc.maxSafeNat(), (id) => assert.deepEqual(decodeCursor(encodeCursor({ id })), { id })));
});

test("any other text is rejected", () => {
  const rows = ["", "17", "null", pack(null), pack([]), pack({ id: 1 }), pack({ v: 2, id: 1 }), pack({ v: 1, id: -1 })];
  rows.push(pack({ v: 1, id: 1.5 }), pack({ v: 1, id: "1" }), pack({ id: 1, v: 1 }), `${encodeCursor({ id: 1 })}=`);
  rows.push(pack({ v: 1, id: 2 ** 53 }), "A".repeat(100_000));
  for (const text of rows) assert.throws(() => decodeCursor(text), isRefused, text.slice(0, 80));
  fc.assert(fc.property(fc.string({ unit }), (text) => assert.throws(() => decodeCursor(text), isRefused)));
});

test("a link repeats every filter and replaces the cursor", () => {
  const rows: [string, string, string][] = [
    ["/dns", "", '</dns?cursor=abc>; rel="next"'],
    ["/dns", "limit=10&name=*.com", '</dns?limit=10&name=*.com&cursor=abc>; rel="next"'],
    ["/dns", "CURSOR=old&limit=10&c%75rsor=older", '</dns?limit=10&cursor=abc>; rel="next"'],
    ["/dns", "label=a%20in%20(b,c)&label=!d&&flag", '</dns?label=a%20in%20(b,c)&label=!d&flag&cursor=abc>; rel="next"'],
    ["/dns", 'name=\u00c3\u00a9">,\r\n', '</dns?name=%C3%A9%22%3E,%0D%0A&cursor=abc>; rel="next"'],
  ];
  for (const [path, query, link] of rows) assert.equal(linkNext(path, query, "abc"), link);
});

test("for any query, the link is one header line", () => {
  fc.assert(
    fc.property(fc.string({ unit }), (query) =>
      assert.match(linkNext("/dns", query, "abc"), /^<\/dns\?[\x21\x23-\x3b\x3d\x3f-\x7e]*cursor=abc>; rel="next"$/),
    ),
  );
});
