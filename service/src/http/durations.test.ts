import assert from "node:assert/strict";
import { test } from "node:test";
import { Registry } from "prom-client";
import { createDurations } from "./durations.ts";

test("prints as a Prometheus histogram: cumulative buckets, sum and count", async () => {
  const registry = new Registry();
  const { metric, series } = createDurations("x_seconds", "How long.");
  registry.registerMetric(metric);
  const observe = series({ operation: "readX" });
  for (const seconds of [0.0001, 0.0005, 0.3, 100]) observe(seconds);
  const text = await registry.metrics();
  assert.match(text, /^# HELP x_seconds How long\.\n# TYPE x_seconds histogram\n/);
  for (const line of [
    'x_seconds_bucket{le="0.0005",operation="readX"} 2',
    'x_seconds_bucket{le="0.25",operation="readX"} 2',
    'x_seconds_bucket{le="0.5",operation="readX"} 3',
    'x_seconds_bucket{le="60",operation="readX"} 3',
    'x_seconds_bucket{le="+Inf",operation="readX"} 4',
    'x_seconds_sum{operation="readX"} 100.3006',
    'x_seconds_count{operation="readX"} 4',
  ])
    assert.ok(text.includes(`${line}\n`), line);
});
