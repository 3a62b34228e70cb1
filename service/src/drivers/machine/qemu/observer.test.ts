import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { folderOf } from "./folder.ts";
import { createUnresponsive, type ObserverOptions, observeMachines } from "./observer.ts";

test("one VM with a run is observed without a search for the processes and devices of all", async () => {
  const servers = mkdtempSync(join(tmpdir(), "observer-"));
  try {
    let scans = 0;
    const folder = folderOf(servers, 7);
    const state = { id: 7, boot: 3, version: 1, startedAt: 0 };
    const run = { id: 7, folder, state, qmp: {}, log: { stage: () => "starting" }, respondedAt: performance.now() };
    const count = () => {
      scans += 1;
      return [];
    };
    const options = {
      servers,
      tag: "abc",
      firstUid: 1,
      accelerator: "emulated",
      exec: { list: count, find: () => null },
      runs: { all: new Map([[7, run]]) },
      taps: { owners: () => new Set(count()) },
      unresponsive: createUnresponsive(async () => {}),
    } as unknown as ObserverOptions;
    const { machines } = await observeMachines(options, [7, 7]);
    assert.deepEqual(
      machines.map(({ id, power, stage }) => [id, power, stage]),
      [[7, "running", "starting"]],
    );
    assert.equal(scans, 0);
    // Without a run, a process or device may be left.
    assert.deepEqual((await observeMachines(options, [8])).machines, []);
    assert.notEqual(scans, 0);
  } finally {
    rmSync(servers, { recursive: true });
  }
});
