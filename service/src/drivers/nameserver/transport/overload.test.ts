import assert from "node:assert/strict";
import { test } from "node:test";
import { createOverload } from "./overload.ts";

const long = { waiting: 1e6, buffer: 8 << 20 };
const short = { waiting: 150_000, buffer: 8 << 20 };

test("a thread is overloaded from 512 datagrams in a row until the socket is empty", () => {
  const overload = createOverload();
  for (let i = 0; i < 16; i++) overload.received(32, false, i, () => long);
  assert.equal(overload.isActive, false);
  overload.received(32, false, 16, () => long);
  assert.equal(overload.isActive, true);
  overload.received(5, true, 17, () => long);
  assert.equal(overload.isActive, false);
  overload.received(32, false, 18, () => long);
  assert.equal(overload.isActive, false, "the next row begins with the next datagram");
});

test("an overload drops what one client sends beyond its share, and nothing of clients with few datagrams", () => {
  const overload = createOverload();
  for (let i = 0; i < 17; i++) overload.received(32, false, 0, () => long);
  const flood = Array.from({ length: 1000 }, () => overload.drops(0x12345678));
  assert.equal(flood.filter((isDropped) => !isDropped).length, 16);
  assert.equal(overload.dropped, 984);
  for (let client = 1; client < 100; client++) assert.equal(overload.drops(client << 5), false);
  overload.received(32, false, 100, () => long);
  assert.equal(overload.drops(0x12345678), false, "the share comes back with time");
});

test("a full server with a short queue is not overloaded", () => {
  const overload = createOverload();
  for (let i = 0; i < 1000; i++) overload.received(32, false, i, () => short);
  assert.equal(overload.isActive, false);
});

test("a small receive buffer that is half full counts as a long queue", () => {
  // What a host with the default of net.core.rmem_max gives.
  const buffer = 425_984;
  const after = (waiting: number): boolean => {
    const overload = createOverload();
    for (let i = 0; i < 17; i++) overload.received(32, false, i, () => ({ waiting, buffer }));
    return overload.isActive;
  };
  assert.deepEqual([after(200_000), after(220_000)], [false, true]);
});
