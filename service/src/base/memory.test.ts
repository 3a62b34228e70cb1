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
