/** Stored responses: what is read back is the response, also if an earlier release stored it. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { deflateRawSync } from "node:zlib";
import { createPieces } from "../base/pieces.ts";
import { runAtOnce } from "../base/turn.ts";
import { fingerprint, packInTurns, type StoredResponse, unpack } from "./idempotency.ts";

const pack = (response: StoredResponse): string => runAtOnce(packInTurns(response));

const responseOf = (body: string) => ({
  fingerprint: "f".repeat(64),
  reply: { status: 200, type: "application/json", body, headers: ["ETag", '"domain-1-2"'] },
  tasks: [7],
});

const bodies = [
  "",
  "{}",
  JSON.stringify({ Text: "a\nb" }),
  "x".repeat(4000),
  '"\\n"\n\n'.repeat(2000),
  "é€𝄞".repeat(3000),
];

test("a response is read as it was stored", () => {
  for (const body of bodies) assert.deepEqual(unpack(pack(responseOf(body))), responseOf(body));
});

test("a response that is not there yet is read as none", () => {
  const response = { ...responseOf(""), reply: null };
  assert.deepEqual(unpack(pack(response)), response);
});

test("a response in pieces is read as a text", () => {
  const response = responseOf("");
  const collected = createPieces();
  for (const body of bodies) collected.add(body);
  const pieces = collected.pieces();
  const reply = { ...response.reply, pieces };
  assert.deepEqual(unpack(pack({ ...response, reply })), responseOf(bodies.join("")));
  assert.equal(pieces.bytes, Buffer.byteLength(bodies.join("")));
});

test("a response that an earlier release has compressed is read", () => {
  for (const body of bodies) {
    const text = deflateRawSync(JSON.stringify(responseOf(body)), { level: 1 }).toString("base64");
    assert.deepEqual(unpack(text), responseOf(body));
  }
});

test("a long body is compressed", () => {
  assert.ok(pack(responseOf(JSON.stringify(Array.from({ length: 1000 }, () => "record")))).length < 1000);
});

test("a fingerprint does not depend on the order of labels", () => {
  const bodyOf = (Labels: object) => ({ value: { Name: "one", Labels, Others: [{ Labels }] } });
  assert.equal(fingerprint("PUT", bodyOf({ a: "1", b: "2" })), fingerprint("PUT", bodyOf({ b: "2", a: "1" })));
  assert.notEqual(fingerprint("PUT", bodyOf({ a: "1" })), fingerprint("PUT", bodyOf({ a: "2" })));
  assert.notEqual(fingerprint("PUT", { Name: "one" }), fingerprint("PUT", { Name: "two" }));
});
