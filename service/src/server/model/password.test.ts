import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import { createPassword } from "./password.ts";

test("a password has 16 letters and digits, and all differ", () => {
  const made = Array.from({ length: 1000 }, () => createPassword(randomBytes));
  for (const password of made) assert.match(password, /^[A-Za-z0-9]{16}$/);
  assert.equal(new Set(made).size, made.length);
});

test("bytes that would make some letters more likely are rejected", () => {
  const rounds = [new Uint8Array(16).fill(248), Uint8Array.from({ length: 16 }, (_, index) => 240 + index)];
  let round = 0;
  const random = () => rounds[round++] ?? new Uint8Array(16);
  assert.equal(createPassword(random), "23456789AAAAAAAA");
  assert.equal(round, 3);
});

test("all letters and digits occur", () => {
  const seen = new Set(Array.from({ length: 200 }, () => createPassword(randomBytes)).join(""));
  assert.equal(seen.size, 62);
});
