import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { ApiError } from "../base/error.ts";
import {
  accepts,
  createHeadReader,
  hasBody,
  isAmbiguous,
  matchesTag,
  readBearer,
  readHead,
  readIdempotencyKey,
  readPreferences,
  readRequestId,
} from "./head.ts";

describe("the head", () => {
  test("finds the used fields in any letter case, and counts the bytes of all fields", () => {
    const head = readHead([
      "Host",
      "x",
      "AUTHORIZATION",
      "Bearer a",
      "x-request-id",
      "r",
      "PREFER",
      "wait=1",
      "prefer",
      "b",
    ]);
    assert.equal(head.authorization, "Bearer a");
    assert.equal(head.requestId, "r");
    assert.equal(head.prefer, "wait=1, b");
    assert.equal(
      head.size,
      "Host: x\r\nAUTHORIZATION: Bearer a\r\nx-request-id: r\r\nPREFER: wait=1\r\nprefer: b\r\n".length,
    );
    assert.equal(head.expect, undefined);
  });

  test("is parsed once while a connection sends the same fields, and again when they change", () => {
    const readNext = createHeadReader();
    const read = (...raw: string[]) => readNext(raw);
    assert.equal(read().size, 0);
    const first = read("Prefer", "a", "Accept", "b");
    assert.equal(read("Prefer", "a", "Accept", "b"), first);
    assert.equal(read("Prefer", "a", "Accept", "c").accept, "c");
    assert.equal(read("Prefer", "d", "Accept", "c").prefer, "d");
    assert.equal(read("Expect", "d", "Accept", "c").prefer, undefined);
    assert.equal(read("Expect", "d").accept, undefined);
    assert.equal(read("Expect", "d", "Accept", "c").accept, "c");
    assert.equal(read().size, 0);
  });

  test("knows whether a body follows, and whether it has two lengths", () => {
    assert.equal(hasBody(readHead([])), false);
    assert.equal(hasBody(readHead(["Content-Length", "0"])), false);
    assert.equal(hasBody(readHead(["Content-Length", "1"])), true);
    assert.equal(hasBody(readHead(["Transfer-Encoding", "chunked"])), true);
    assert.equal(isAmbiguous(readHead(["Transfer-Encoding", "chunked", "Content-Length", "1"])), true);
    assert.equal(isAmbiguous(readHead(["Transfer-Encoding", "chunked"])), false);
  });

  for (const [sent, token] of [
    [undefined, null],
    ["", null],
    ["Bearer", null],
    ["Bearer ", ""],
    ["Basic abc", null],
    ["Bearer abc", "abc"],
    ["bEaReR   abc ", "abc"],
    ["Bearer:abc", null],
  ] as const)
    test(`Authorization ${JSON.stringify(sent)} holds ${JSON.stringify(token)}`, () =>
      assert.equal(readBearer(sent), token));

  for (const [sent, strict, wait] of [
    [undefined, false, null],
    ["handling=strict", true, null],
    ["Handling = Strict", true, null],
    ['handling="strict"', true, null],
    ["handling=lenient, handling=strict", false, null],
    ["respond-async, wait=5; x=1, handling=strict", true, 5],
    ["wait=61", false, 60],
    ["wait=99999999999", false, null],
    ["wait=1.5", false, null],
    ["wait", false, null],
    [",,;=, wait=2", false, 2],
  ] as const)
    test(`Prefer ${JSON.stringify(sent)}`, () => assert.deepEqual(readPreferences(sent), { strict, wait }));

  for (const [sent, taken] of [
    [undefined, false],
    ["*/*", false],
    ["text/dns", true],
    ["application/json, TEXT/DNS ; charset=utf-8", true],
    ["text/dns;q=0", false],
    ["text/dns;q=0.000", false],
    ["text/dns;q=0.1", true],
    ["text/dnsx", false],
  ] as const)
    test(`Accept ${JSON.stringify(sent)}`, () => assert.equal(accepts(sent, "text/dns"), taken));

  test("tags are compared strongly", () => {
    assert.equal(matchesTag('"a-1"', "a-1"), true);
    assert.equal(matchesTag('"b", "a-1"', "a-1"), true);
    assert.equal(matchesTag("*", "a-1"), true);
    assert.equal(matchesTag('W/"a-1"', "a-1"), false);
    assert.equal(matchesTag("a-1", "a-1"), false);
    assert.equal(matchesTag("", "a-1"), false);
  });

  test("keys lose one pair of outer quotes", () => {
    assert.equal(readIdempotencyKey('"k"'), "k");
    assert.equal(readIdempotencyKey('""k""'), '"k"');
    assert.equal(readIdempotencyKey('"'), '"');
    assert.equal(readIdempotencyKey("x".repeat(255)).length, 255);
    for (const bad of ["", '""', "a b", "a\t", "ü", "x".repeat(256)])
      assert.throws(
        () => readIdempotencyKey(bad),
        (error) => error instanceof ApiError && error.code === "idempotency_key_invalid",
      );
  });

  test("no input causes an unexpected exception", () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.constantFrom("Prefer", "Accept", "If-Match", "X"), fc.string())), (pairs) => {
        const head = readHead(pairs.flat());
        readPreferences(head.prefer);
        accepts(head.accept, "text/dns");
        readRequestId(head.ifMatch);
        readBearer(head.prefer);
      }),
    );
  });
});
