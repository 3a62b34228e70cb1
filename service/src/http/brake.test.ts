import assert from "node:assert/strict";
import { test } from "node:test";
import { createBrake } from "./brake.ts";

const limits = { burst: 3, pace: 10, longest: 50 };

test("the first rejections are sent at once, later ones one by one within the limit", () => {
  const brake = createBrake(limits);
  const waits = Array.from({ length: 12 }, () => brake("192.0.2.1", 1000));
  assert.deepEqual(waits, [0, 0, 0, 10, 20, 30, 40, 50, 50, 50, 50, 50]);
});

test("a network without rejections for a while counts as a new one", () => {
  const brake = createBrake(limits);
  for (let i = 0; i < 100; i++) brake("192.0.2.1", 1000);
  assert.equal(brake("192.0.2.1", 1040), 10);
  assert.equal(brake("192.0.2.1", 1200), 0);
});

test("addresses of one network share one rate, other networks have their own", () => {
  const brake = createBrake(limits);
  for (let i = 0; i < 100; i++) brake(`192.0.2.${i}`, 1000);
  for (let i = 0; i < 100; i++) brake(`2001:db8:1:1::${i.toString(16)}`, 1000);
  assert.equal(brake("192.0.2.200", 1000), 50);
  assert.equal(brake("2001:db8:1:1::ffff", 1000), 50);
  assert.equal(brake("198.51.100.1", 1000), 0);
  assert.equal(brake("2001:db8:2:1::1", 1000), 0);
});

test("the number of stored networks is limited", () => {
  const brake = createBrake(limits);
  for (let i = 0; i < 100_000; i++) brake(`10.${i >> 16}.${(i >> 8) & 255}.${i & 255}`, i * 100);
  assert.equal(brake("10.0.0.0", 100_000_000), 0);
});
