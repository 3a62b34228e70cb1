import assert from "node:assert/strict";
import { test } from "node:test";
import { networkAt, networkOf, parseAddress, plainAddress } from "../../../base/address.ts";
import { createLimiter, isLoopback } from "./ratelimit.ts";

test("over the rate every second response is truncated and the others dropped; the rate recovers with time", () => {
  let time = 1000;
  const limiter = createLimiter(5, () => time, 42);
  const verdicts = (count: number): string[] =>
    Array.from({ length: count }, () => limiter.admit(networkOf("192.0.2.1"), 7));
  assert.deepEqual(verdicts(9), ["send", "send", "send", "send", "send", "drop", "slip", "drop", "slip"]);
  time += 400;
  assert.deepEqual(verdicts(4), ["send", "send", "drop", "slip"]);
  time += 3_600_000;
  assert.deepEqual(verdicts(6), ["send", "send", "send", "send", "send", "drop"], "saved up to one second, not more");
});

test("addresses of a network share a rate, other networks and other responses have their own", () => {
  const limiter = createLimiter(1, () => 1000, 42);
  assert.equal(limiter.admit(networkOf("192.0.2.1"), 7), "send");
  assert.notEqual(limiter.admit(networkOf("192.0.2.200"), 7), "send");
  assert.equal(limiter.admit(networkOf("192.0.3.1"), 7), "send");
  assert.equal(limiter.admit(networkOf("192.0.2.1"), 8), "send");
  assert.equal(limiter.admit(networkOf("2001:db8:0:100::1"), 7), "send");
  assert.notEqual(limiter.admit(networkOf("2001:db8:0:1ff:5::1"), 7), "send");
  assert.equal(limiter.admit(networkOf("2001:db8:0:200::1"), 7), "send");
});

test("every spelling of an address has the same network", () => {
  assert.equal(networkOf("::ffff:192.0.2.1"), networkOf("192.0.2.77"));
  assert.equal(networkOf("::1"), networkOf("::2:0:0:0"));
  assert.equal(networkOf("1::5:6:7:8"), networkOf("1:0:0:ff:9:9:9:9"));
  assert.equal(networkOf("1::3:4:5:6:7:8"), networkOf("1:0:3:4::"));
  assert.notEqual(networkOf("1::3:4:5:6:7:8"), networkOf("1:0:4:4::"));
  assert.equal(networkOf("fe80::1%eth0"), networkOf("fe80::2"));
});

test("an address in bytes has the same network as its text", () => {
  for (const address of ["192.0.2.1", "0.0.0.0", "255.254.253.252", "2001:db8:1:2ff::9", "::1", "fe80::1"]) {
    const { family, value } = parseAddress(address);
    const bytes = Buffer.from(value.toString(16).padStart(family === 4 ? 8 : 32, "0"), "hex");
    assert.equal(networkAt(Buffer.concat([Buffer.alloc(3), bytes]), 3, family), networkOf(address), address);
  }
});

test("the share of truncated responses over a rate can be set", () => {
  const limiter = createLimiter(1, () => 1000, 42, 4);
  const verdicts = Array.from({ length: 9 }, () => limiter.admit(1, 0));
  assert.deepEqual(verdicts, ["send", "drop", "drop", "drop", "slip", "drop", "drop", "drop", "slip"]);
});

test("loopback is recognised in both families", () => {
  for (const address of ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"]) assert.ok(isLoopback(address), address);
  for (const address of ["128.0.0.1", "::2", "::ffff:10.0.0.1", "2001:db8::127"])
    assert.ok(!isLoopback(address), address);
  assert.equal(plainAddress("::ffff:c000:201"), "::ffff:c000:201");
});
