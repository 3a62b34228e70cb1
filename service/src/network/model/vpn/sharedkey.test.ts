/** Keys of the right length from the right letters, each as likely as any other. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import { createSharedKey } from "./sharedkey.ts";

test("a key is 32 letters and digits", () => {
  for (let i = 0; i < 100; i++) assert.match(createSharedKey(randomBytes), /^[A-Za-z0-9]{32}$/);
});

test("bytes that would make some letters likelier are passed over", () => {
  let next = 247;
  const key = createSharedKey((bytes) => Uint8Array.from({ length: bytes }, () => next++ % 256));
  assert.equal(key, "9ABCDEFGHIJKLMNOPQRSTUVWXYZabcde");
});
