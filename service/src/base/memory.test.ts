import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";

test("an idle thread gives the memory of a burst of work back", () => {
  const program = `
    import { limitHeap, releaseWhenIdle } from ${JSON.stringify(new URL("./memory.ts", import.meta.url))};
    limitHeap();
    releaseWhenIdle(50);
    let kept = Array.from({ length: 2_000_000 }, (_, index) => ({ index }));
    const most = process.memoryUsage().heapTotal;
    kept = null;
    // Ends when the memory is back; otherwise the test kills it.
    setInterval(() => {
      if (process.memoryUsage().heapTotal < most / 2) process.exit(0);
    }, 20);
  `;
  const { status, stderr } = spawnSync(process.execPath, ["--input-type=module", "--eval", program], {
    timeout: 60_000,
  });
  assert.equal(status, 0, String(stderr));
});

test("an idle thread gives the memory back that native code has freed between blocks in use", () => {
  const program = `
    import { releaseWhenIdle } from ${JSON.stringify(new URL("./memory.ts", import.meta.url))};
    releaseWhenIdle(50);
    await new Promise((resolve) => setTimeout(resolve, 200));
    let all = Array.from({ length: 4000 }, () => Buffer.alloc(64 * 1024, 1));
    const most = process.memoryUsage.rss();
    globalThis.used = all.filter((_, index) => index % 40 === 0);
    all = null;
    gc();
    // Ends when the memory is back; otherwise the test kills it.
    setInterval(() => {
      if (process.memoryUsage.rss() < most / 2) process.exit(0);
    }, 20);
  `;
  const { status, stderr } = spawnSync(process.execPath, ["--expose-gc", "--input-type=module", "--eval", program], {
    timeout: 60_000,
  });
  assert.equal(status, 0, String(stderr));
});

test("the space of new objects stays small while a large response is created, and may grow afterwards", () => {
  const program = `
    import { getHeapSpaceStatistics } from "node:v8";
    import { endLarge, limitHeap, limitLarge } from ${JSON.stringify(new URL("./memory.ts", import.meta.url))};
    const size = () => getHeapSpaceStatistics().find(({ space_name }) => space_name === "new_space").space_size / 2 ** 20;
    limitHeap();
    // The newest megabyte of objects is in use at each collection, so V8 takes more space for new objects if it may.
    const pages = Array.from({ length: 20 });
    const work = (index) => {
      pages[index % pages.length] = Array.from({ length: 500 }, (_, record) => ({ index, record, text: \`record \${record}\` }));
    };
    let most = 0;
    for (let index = 0; index < 20_000; index++) {
      limitLarge();
      work(index);
      most = Math.max(most, size());
    }
    if (most > 8) throw new Error(most + " MB while limited");
    endLarge();
    // Ends when the space has grown; otherwise the test kills it.
    for (let index = 0; size() <= 8; index++) work(index);
  `;
  const { status, stderr } = spawnSync(process.execPath, ["--input-type=module", "--eval", program], {
    timeout: 60_000,
  });
  assert.equal(status, 0, String(stderr));
});

test("the space of new objects does not pass its limit from a size between two doublings", () => {
  const program = `
    import { getHeapSpaceStatistics } from "node:v8";
    import { setTimeout } from "node:timers/promises";
    import { limitHeap } from ${JSON.stringify(new URL("./memory.ts", import.meta.url))};
    const size = () => getHeapSpaceStatistics().find(({ space_name }) => space_name === "new_space").space_size / 2 ** 20;
    limitHeap();
    // Some of the newest objects are in use at each collection, so V8 takes more space for new objects if it may.
    const kept = Array.from({ length: 100_000 });
    for (let round = 0; round < 10; round++) {
      await setTimeout(60);
      for (let index = 0; index < 500_000; index++) kept[index % kept.length] = { index };
    }
    if (size() > 32) throw new Error(size() + " MB");
  `;
  const { status, stderr } = spawnSync(
    process.execPath,
    ["--min-semi-space-size=13", "--max-semi-space-size=64", "--input-type=module", "--eval", program],
    { timeout: 60_000 },
  );
  assert.equal(status, 0, String(stderr));
});
