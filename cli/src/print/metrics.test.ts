import assert from "node:assert/strict";
import { test } from "node:test";
import { chart, formatMetrics } from "./metrics.ts";

test("a chart has one character per step, and a blank where nothing was measured", () => {
  assert.equal(chart([0, 50, null, 100]), "▁▅ █");
  assert.equal(chart([0, 0]), "▁▁");
  assert.equal(chart([null]), " ");
  assert.equal(chart([0, 100, 100, 100, null, null], 3), "▅█ ");
});

test("each series of a server is one line with its last value, mean and maximum", () => {
  const none = [null, null, null];
  const lines = formatMetrics({
    Step: 60,
    Times: ["2026-11-20T09:18:00.000Z", "2026-11-20T09:19:00.000Z", "2026-11-20T09:20:00.000Z"],
    Series: {
      Cpu: [2, 4, null],
      MemoryUsed: [61, 61, 61],
      DiskRead: [0, 1500, 0],
      DiskWrite: none,
      NetIn: none,
      NetOut: none,
    },
  });
  assert.deepEqual(lines, [
    "2026-11-20 09:18 to 2026-11-20 09:20 UTC, one value per 60 s",
    "SERIES  LAST   MEAN     MAXIMUM   CHART",
    "CPU     4 %    3 %      4 %       ▅█",
    "MEMORY  61 MB  61 MB    61 MB     ███",
    "READ    0 B/s  500 B/s  1.5 kB/s  ▁█▁",
    "WRITE   -      -        -",
    "IN      -      -        -",
    "OUT     -      -        -",
  ]);
});
