import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { Worker } from "node:worker_threads";
import { within } from "./within.ts";

test("the result of fast work, of work that takes too long, and of work that fails", async () => {
  assert.equal(await within(Promise.resolve(1), 1000, null), 1);
  assert.equal(await within(new Promise(() => {}), 1, null), null);
  await assert.rejects(within(Promise.reject(new Error("no")), 1000, null), /no/);
});

test("a result that arrived while the process could not execute counts", async () => {
  const posted = new Int32Array(new SharedArrayBuffer(4));
  const program = `
    const { parentPort, workerData } = require("node:worker_threads");
    parentPort.once("message", () => {
      parentPort.postMessage("arrived");
      Atomics.store(workerData, 0, 1);
      Atomics.notify(workerData, 0);
    });
    parentPort.postMessage("started");`;
  const worker = new Worker(program, { eval: true, workerData: posted });
  try {
    await once(worker, "message");
    // Timers follow immediates, and arrived messages follow timers.
    await setImmediate();
    const started = performance.now();
    const result = within(once(worker, "message"), 5, null);
    worker.postMessage("go");
    Atomics.wait(posted, 0, 0);
    while (performance.now() - started < 10);
    assert.deepEqual(await result, ["arrived"]);
  } finally {
    await worker.terminate();
  }
});
