import assert from "node:assert/strict";
import { test } from "node:test";
import { parseQuery } from "../wire/message.ts";
import { createKey, sign, TSIG_ERROR, verify } from "./tsig.ts";

const NOW = 1_800_000_000;
const key = createKey({ name: "Transfer.Brume.", algorithm: "hmac-sha256", secret: "c2VjcmV0" });
const keys = new Map([[key.name, key]]);
const message = Buffer.from("\x12\x34\0\0\0\x01\0\0\0\0\0\0\x07example\x03com\0\0\x06\0\x01", "latin1");

const check = (packet: Buffer, now = NOW, prior: Buffer | null = null) =>
  verify(packet, parseQuery(packet)?.tsig ?? 0, keys, now, prior);

test("a signed message verifies in time, also under another message id", () => {
  const { bytes, mac } = sign(message, { key, prior: null }, NOW);
  const verdict = check(bytes, NOW + 300);
  assert.equal(verdict.state, "good");
  assert.deepEqual(verdict.state === "good" && verdict.signer.prior, mac);
  const forwarded = Buffer.from(bytes);
  forwarded.writeUInt16BE(0x9999, 0);
  assert.equal(check(forwarded).state, "good");
});

test("the signature of a response covers its request", () => {
  const request = sign(message, { key, prior: null }, NOW);
  const answer = sign(message, { key, prior: request.mac }, NOW).bytes;
  assert.equal(check(answer, NOW, request.mac).state, "good");
  assert.equal(check(answer, NOW, Buffer.alloc(32)).state, "bad");
  assert.equal(check(answer).state, "bad");
});

test("every changed byte is detected", () => {
  const { bytes } = sign(message, { key, prior: null }, NOW);
  for (let at = 2; at < bytes.length; at++) {
    const copy = Buffer.from(bytes);
    copy[at] = (copy[at] as number) ^ 1;
    const query = parseQuery(copy);
    if (query === null || query.tsig === 0) continue;
    const verdict = verify(copy, query.tsig, keys, NOW);
    assert.notEqual(verdict.state, "good", `byte ${at}`);
  }
});

test("errors are distinguished", () => {
  const unknown = createKey({ name: "nobody", algorithm: "hmac-sha256", secret: "c2VjcmV0" });
  const weaker = createKey({ name: "transfer.brume", algorithm: "hmac-sha1", secret: "c2VjcmV0" });
  const wrong = createKey({ name: "transfer.brume", algorithm: "hmac-sha256", secret: "b3RoZXI=" });
  for (const [signer, now, error] of [
    [unknown, NOW, TSIG_ERROR.BADKEY],
    [weaker, NOW, TSIG_ERROR.BADKEY],
    [wrong, NOW, TSIG_ERROR.BADSIG],
    [wrong, NOW - 1000, TSIG_ERROR.BADSIG],
    [key, NOW - 301, TSIG_ERROR.BADTIME],
    [key, NOW + 301, TSIG_ERROR.BADTIME],
  ] as const) {
    const verdict = check(sign(message, { key: signer, prior: null }, now).bytes);
    assert.equal(verdict.state === "bad" && verdict.error, error);
  }
});

test("keys from configuration are checked", () => {
  assert.throws(() => createKey({ name: "k", algorithm: "hmac-md5", secret: "c2VjcmV0" }), /must be one of/);
  assert.throws(() => createKey({ name: "k", algorithm: "hmac-sha256", secret: "" }), /no secret/);
  assert.throws(() => createKey({ name: "a..b", algorithm: "hmac-sha256", secret: "c2VjcmV0" }), /empty label/);
});
