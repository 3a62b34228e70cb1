import assert from "node:assert/strict";
import { test } from "node:test";
import { createOverload } from "./overload.ts";

test("a thread is overloaded from 512 datagrams in a row until the socket is empty", () => {
  const overload = createOverload();
  for (let i = 0; i < 16; i++) overload.received(32, false, i, () => 1e6);
  assert.equal(overload.isActive, false);
  overload.received(32, false, 16, () => 1e6);
  assert.equal(overload.isActive, true);
  overload.received(5, true, 17, () => 1e6);
  assert.equal(overload.isActive, false);
  overload.received(32, false, 18, () => 1e6);
  assert.equal(overload.isActive, false, "the next row begins with the next datagram");
});

test("an overload drops what one client sends beyond its share, and nothing of clients with few datagrams", () => {
  const overload = createOverload();
  for (let i = 0; i < 17; i++) overload.received(32, false, 0, () => 1e6);
  const flood = Array.from({ length: 1000 }, () => overload.drops(0x12345678));
  assert.equal(flood.filter((isDropped) => !isDropped).length, 16);
  assert.equal(overload.dropped, 984);
  for (let client = 1; client < 100; client++) assert.equal(overload.drops(client << 5), false);
  overload.received(32, false, 100, () => 1e6);
  assert.equal(overload.drops(0x12345678), false, "the share comes back with time");
});

test("a full server with a short queue is not overloaded", () => {
  const overload = createOverload();
  for (let i = 0; i < 1000; i++) overload.received(32, false, i, () => 150_000);
  assert.equal(overload.isActive, false);
});
