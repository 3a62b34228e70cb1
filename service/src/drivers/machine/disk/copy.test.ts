import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { exec } from "../../exec.ts";
import { folderOf } from "../qemu/folder.ts";
import { pick, type Qmp, textAt } from "../qemu/qmp.ts";
import { createRuns } from "../qemu/run.ts";
import { freeze } from "./copy.ts";
import { createDisks, layerName } from "./disk.ts";

test("a guest that prints nothing is frozen during the snapshot", async (t) => {
  const root = mkdtempSync(join(tmpdir(), "brume-freeze-"));
  t.after(() => rmSync(root, { recursive: true }));
  const folder = folderOf(root, 7);
  const disk = folder.disk(1);
  for (const path of [folder.run, disk]) mkdirSync(path, { recursive: true });
  const header = Buffer.alloc(32);
  header.writeUInt32BE(0x514649fb);
  writeFileSync(join(disk, layerName(1)), header);

  const commands: string[] = [];
  const agent = createServer((socket) => {
    socket.setEncoding("latin1").on("error", () => {});
    socket.on("data", (chunk: string) => {
      for (const line of chunk.split("\n").filter(Boolean)) {
        const request = JSON.parse(line.replace("\u00ff", "")) as unknown;
        const command = textAt(request, "execute");
        if (command !== "guest-sync-delimited") commands.push(command);
        const id = pick(request, "arguments", "id") ?? 1;
        socket.write(`${JSON.stringify({ return: id })}\n`);
      }
    });
  });
  agent.listen(join(folder.run, "agent"));
  await once(agent, "listening");
  t.after(() => agent.close());
  const results: Readonly<Record<string, unknown>> = {
    "query-jobs": [],
    "query-block": [{ qdev: "root", inserted: { "node-name": "disk1", image: { "virtual-size": 2 ** 30 } } }],
  };
  const qmp: Qmp = {
    run(command) {
      if (command === "blockdev-snapshot") commands.push(command);
      return Promise.resolve(results[command] ?? {});
    },
    onEvent: () => () => {},
    closed: new Promise(() => {}),
    close() {},
  };
  const runs = createRuns({
    exec,
    now: () => 0,
    sync: () => 1,
    ended() {},
    publish() {},
    logError: (sentence, error) => assert.fail(`${sentence} ${String(error)}`),
  });
  const child = { pid: process.pid, born: 0 };
  const sizes = { maxCpus: 1, maxMemory: 128, share: 1, accelerator: "tcg" } as const;
  const run = runs.track(7, folder, child, qmp, {
    ...sizes,
    uuid: "b1a5b9f0-0000-4000-8000-000000000007",
    boot: 1,
    version: 1,
    startedAt: 0,
    child,
    host: "life",
    exit: null,
  });
  assert.equal(run.log.stage(), "starting");
  const disks = {
    ...createDisks(exec, root),
    addLayer: () => Promise.resolve(2),
    seal: () => Promise.resolve(),
  };
  let syncs = 0;
  assert.equal(await freeze({ disks, disk, uid: 0, sync: () => ++syncs }, run), 2);
  assert.deepEqual(commands, ["guest-ping", "guest-fsfreeze-freeze", "blockdev-snapshot", "guest-fsfreeze-thaw"]);
});
