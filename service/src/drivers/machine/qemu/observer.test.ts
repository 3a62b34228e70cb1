import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { listFileCalls } from "../../../../../test/support/filecalls.ts";
import { stateOf } from "../../../../../test/support/runstate.ts";
import { folderOf, writeState } from "./folder.ts";
import { createUnresponsive, type ObserverOptions, observeMachines } from "./observer.ts";

test("one VM with a run is observed without a search for the processes and devices of all", async () => {
  const servers = mkdtempSync(join(tmpdir(), "observer-"));
  try {
    let scans = 0;
    const folder = folderOf(servers, 7);
    mkdirSync(folder.run, { recursive: true });
    const logs = [folder.console, folder.output];
    for (const log of logs) writeFileSync(log, "x".repeat(9 * 2 ** 20));
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
    for (const log of logs) assert.ok(statSync(log).size < 2 * 2 ** 20, "a guest cannot fill the disk with messages");
    // Without a run, a process or device may be left.
    assert.deepEqual((await observeMachines(options, [8])).machines, []);
    assert.notEqual(scans, 0);
  } finally {
    rmSync(servers, { recursive: true });
  }
});

test("servers without a run are observed without a search for the processes and devices of all", async () => {
  const servers = mkdtempSync(join(tmpdir(), "observer-"));
  try {
    for (const id of [7, 8, 9]) mkdirSync(folderOf(servers, id).root);
    const exit = { reason: "guest", at: 5, detail: "" } as const;
    await writeState(folderOf(servers, 7), stateOf({ exit, child: { pid: process.pid, born: 1 } }));
    const options = {
      servers,
      tag: "abc",
      firstUid: 1,
      accelerator: "tcg",
      exec: { find: () => assert.fail("no process has the name of a server") },
      runs: { all: new Map() },
      taps: { owners: () => new Set(readdirSync("/sys/class/net").map(() => 0)) },
      unresponsive: createUnresponsive(async () => {}),
    } as unknown as ObserverOptions;
    const searches = ["readdirSync /proc", `readdirSync ${servers}`, "readdirSync /sys/class/net"];
    /** Observes these servers, and returns the searches meanwhile. */
    const observe = async (...only: number[]): Promise<string[]> => {
      const calls = await listFileCalls(async () => {
        const { machines } = await observeMachines(options, only);
        seen = machines.map(({ id, power, boot, exit }) => [id, power, boot, exit?.reason]);
      });
      return calls.filter((call) => searches.includes(call));
    };
    let seen: unknown[] = [];
    assert.deepEqual(await observe(7, 8), []);
    assert.deepEqual(seen, [
      [7, "off", 3, "guest"],
      [8, "off", 0, undefined],
    ]);
    assert.deepEqual(await observe(6), searches, "its folder is missing");
    options.unresponsive.retry(7);
    assert.deepEqual(await observe(7), searches, "its process may be in no state file");
    assert.deepEqual(await observe(7), [], "it had no process any more");
  } finally {
    rmSync(servers, { recursive: true });
  }
});
