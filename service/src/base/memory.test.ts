import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
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

test("the space of new objects stays small under load", () => {
  // In a process of its own, because the limit is one of the process.
  const program = `
    import { getHeapSpaceStatistics } from "node:v8";
    import { limitNewSpace } from ${JSON.stringify(new URL("memory.ts", import.meta.url).href)};
    if (process.argv[1] === "limited") limitNewSpace();
    const kept = [];
    for (let round = 0; round < 40; round++) {
      kept.length = 0;
      for (let i = 0; i < 100_000; i++) kept.push({ i, list: [i] });
      await new Promise((resolve) => setTimeout(resolve, round % 10 === 0 ? 60 : 0));
    }
    console.log(getHeapSpaceStatistics().find(({ space_name }) => space_name === "new_space").space_size / 2 ** 20);
  `;
  const run = (mode: string): number =>
    Number(execFileSync(process.execPath, ["--input-type=module", "--eval", program, mode], { encoding: "utf8" }));
  const [free, limited] = [run("free"), run("limited")];
  assert.ok(limited <= 64 && limited < free, `${limited} MB of ${free} MB`);
});
