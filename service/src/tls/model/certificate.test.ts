import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { test } from "node:test";
import { covers, pauseAfter, readPair, renewalOf } from "./certificate.ts";

const folder = resolve(import.meta.dirname, "../../../../test/chaos/tls");
const read = (name: string): string => readFileSync(resolve(folder, name), "utf8");
const day = 86_400_000;

test("a certificate is renewed when a third of its time is left", () => {
  const info = { names: [], notBefore: 100 * day, notAfter: 190 * day };
  assert.equal(renewalOf(info), 160 * day);
  assert.equal(renewalOf({ ...info, notAfter: 106 * day }), 104 * day);
});

test("pauses grow with failures up to half a day", () => {
  const minutes = [1, 2, 3, 8, 100].map((failures) => pauseAfter(failures, 0) / 60_000);
  assert.deepEqual(minutes, [1, 15, 30, 720, 720]);
  assert.ok(pauseAfter(1, 0.99) > 60_000 && pauseAfter(1, 0.99) < 66_000);
});

test("a pair is read only if the key is that of the certificate", () => {
  const certificate = read("certificate.pem");
  const info = readPair({ certificate, key: read("key.pem") });
  assert.ok(info.notAfter > info.notBefore);
  assert.ok(covers(info, info.names));
  assert.ok(!covers(info, [...info.names, "other.example"]));
  assert.throws(() => readPair({ certificate, key: certificate }));
  assert.throws(() => readPair({ certificate: "none", key: read("key.pem") }));
});
