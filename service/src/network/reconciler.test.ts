import assert from "node:assert/strict";
import { test } from "node:test";
import { comparePeriod } from "./reconciler.ts";

test("few networks are compared each minute, more of them at the same rate, and all within ten minutes", () => {
  const minutes = [1, 16, 32, 160, 5000, 100_000].map((networks) => comparePeriod(networks) / 60_000);
  assert.deepEqual(minutes, [1, 1, 2, 10, 10, 10]);
});
