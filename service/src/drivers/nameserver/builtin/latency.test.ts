import assert from "node:assert/strict";
import { test } from "node:test";
import { createLatency } from "./latency.ts";

test("p99 is of the last minute and within a quarter", () => {
  const latency = createLatency();
  assert.equal(latency.p99(0), 0);
  for (let i = 0; i < 980; i++) latency.add(10, 5_000);
  for (let i = 0; i < 20; i++) latency.add(900, 15_000);
  const p99 = latency.p99(20_000);
  assert.ok(p99 >= 900 && p99 <= 900 * 1.25, `${p99}`);
  assert.ok(latency.p99(59_000) >= 900);
  for (let i = 0; i < 10; i++) latency.add(10, 76_000);
  assert.ok(latency.p99(76_000) <= 13, "the slow ones are older than a minute");
  assert.equal(latency.p99(200_000), 0);
});

test("under load every sixteenth response is measured", () => {
  const latency = createLatency();
  let measured = 0;
  for (let i = 0; i < 17_000; i++) {
    if (!latency.due()) continue;
    latency.add(1, 1000);
    measured++;
  }
  assert.equal(measured, 2000);
});

test("every duration is counted, however short or long", () => {
  const latency = createLatency();
  for (const duration of [0, 0.01, 1, 1e9]) latency.add(duration, 1000);
  assert.ok(latency.p99(1000) > 1e6);
});
