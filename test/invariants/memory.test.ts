/** Calls that end leave nothing in memory while what they use stays open. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { Worker } from "node:worker_threads";
import { startDatabase } from "../support/databases.ts";
import type { Called } from "./memorycalls.ts";

async function checkCalls(workerData: Called): Promise<void> {
  const worker = new Worker(new URL("./memorycalls.ts", import.meta.url), { workerData });
  const [remaining] = (await once(worker, "message")) as [number];
  assert.ok(remaining < 500, `${remaining} promises remain`);
  await once(worker, "exit");
}

test("written parts of an upload leave nothing in memory while the stream is open", () =>
  checkCalls({ name: "upload" }));

test("calls of PostgreSQL leave nothing in memory while it responds", async () => {
  const { address, close } = await startDatabase("postgres");
  try {
    await checkCalls({ name: "database", url: address });
  } finally {
    await close();
  }
});
