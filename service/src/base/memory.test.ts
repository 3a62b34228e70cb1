import assert from "node:assert/strict";
import { test } from "node:test";
import { releaseMemory } from "./memory.ts";

test("memory that is no longer used goes back to the system", () => {
  const megabytes = (): number => process.memoryUsage().heapTotal / 2 ** 20;
  const waste: { text: string }[][] = [];
  for (let i = 0; i < 18; i++) waste.push(Array.from({ length: 100_000 }, (_, j) => ({ text: `${i} ${j}` })));
  const full = megabytes();
  assert.ok(full > 110, `${full} MB`);
  waste.length = 0;
  releaseMemory();
  assert.ok(megabytes() < full / 2, `${megabytes()} of ${full} MB`);
});
