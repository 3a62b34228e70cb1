/** A database file that is damaged, or on a disk without room: the service starts, serves what it can, and says what is wrong. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { closeSync, mkdirSync, mkdtempSync, openSync, rmSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { ApiError } from "@brume/api/client.ts";
import { connect, databaseName } from "../../service/src/store/sqlite.ts";
import { openAsker } from "../dns/ask.ts";
import { createProcess, type Process } from "../process.ts";
import { lookUp } from "./load.ts";

interface Ready {
  readonly Status: string;
  readonly Checks: readonly { readonly Name: string; readonly Ok: boolean; readonly Detail: string }[];
}

const ready = async (brume: Process): Promise<Ready> => (await fetch(`${brume.url}/readyz`)).json() as Promise<Ready>;
const detailOf = ({ Checks }: Ready, name: string): string => Checks.find(({ Name }) => Name === name)?.Detail ?? "";

/** Overwrites the first page of a table. */
function damage(file: string, table: string): void {
  const connection = connect(file, { readOnly: true });
  const page = Number(connection.first("select rootpage from sqlite_schema where name = ?", [table])?.["rootpage"]);
  const size = Number(connection.first("pragma page_size", [])?.["page_size"]);
  connection.close();
  const handle = openSync(file, "r+");
  writeSync(handle, Buffer.alloc(size, 0xff), 0, size, (page - 1) * size);
  closeSync(handle);
}

for (const table of ["event", "domain"])
  test(`a damaged page of ${table}: what can be read is served`, { timeout: 120_000 }, async () => {
    const brume = await createProcess("sqlite");
    const file = join(brume.folder, databaseName);
    try {
      await brume.client.createDomain({ body: { Name: "damage.test", Ip: "192.0.2.7" } });
      await brume.end("SIGTERM");
      damage(file, table);
      // By the time it is ready it may have seen the damage or not.
      await brume.start().catch(() => {});
      let state = await ready(brume);
      while (!detailOf(state, "database").includes(`table ${table}`)) {
        await sleep(50);
        state = await ready(brume);
      }
      assert.equal(state.Status, "failing");
      assert.match(detailOf(state, "database"), /^damaged: table .*Backup and restore/);
      assert.ok(detailOf(state, "database").includes(file), "the file is named");
      assert.equal((await brume.client.listSshKeys({})).length, 0);
      if (table === "event") {
        assert.equal((await brume.client.listDomains({})).length, 1);
        const asker = await openAsker(brume.dns);
        assert.deepEqual(await lookUp(asker, "damage.test"), ["192.0.2.7"]);
        asker.close();
      }
      const reading = table === "event" ? brume.client.listEvents({}) : brume.client.listDomains({});
      await assert.rejects(reading, (error) => error instanceof ApiError && error.code === "storage_unavailable");
      const lines = brume.log.filter(({ msg }) => msg.includes("damaged"));
      assert.ok(lines.length <= 3, `${lines.length} lines about the damage`);
    } finally {
      await brume.close();
    }
  });

test("a start on a disk without room: reads and DNS go on, and it says so", { timeout: 120_000 }, async (context) => {
  if (process.getuid?.() !== 0) return context.skip("only root may mount a small file system");
  const folder = mkdtempSync(join(tmpdir(), "brume-full-"));
  execFileSync("mount", ["-t", "tmpfs", "-o", "size=6m,mode=700", "brume-test", folder]);
  const data = join(folder, "data");
  mkdirSync(data);
  const brume = await createProcess("sqlite", { folder: data });
  const filler = join(folder, "filler");
  try {
    await brume.client.createDomain({ body: { Name: "full.test", Ip: "192.0.2.7" } });
    await brume.end("SIGTERM");
    const handle = openSync(filler, "w");
    for (const size of [65_536, 4096, 1])
      try {
        for (;;) writeSync(handle, Buffer.alloc(size));
      } catch (error) {
        assert.equal((error as NodeJS.ErrnoException).code, "ENOSPC");
      }
    closeSync(handle);
    await brume.start();
    assert.equal((await brume.client.listDomains({})).length, 1);
    const asker = await openAsker(brume.dns);
    assert.deepEqual(await lookUp(asker, "full.test"), ["192.0.2.7"]);
    asker.close();
    const create = (Name: string) => brume.client.createDomain({ body: { Name } });
    for (let round = 0; round < 30; round++)
      await assert.rejects(
        create("no.test"),
        (error) => error instanceof ApiError && error.code === "storage_unavailable",
      );
    assert.match(detailOf(await ready(brume), "disk"), /is full|low: /);
    assert.ok(brume.log.length < 12, brume.log.map(({ msg }) => msg).join("\n"));
    assert.ok(
      brume.log.some(({ msg }) => msg.includes(join(data, databaseName))),
      "the file is named",
    );
    const metrics = await brume.client.readMetrics({});
    assert.match(metrics, /brume_disk_low 1/);
    rmSync(filler);
    for (;;) {
      const made = await create("yes.test").catch((error: unknown) => error);
      if (!(made instanceof ApiError)) break;
      assert.equal(made.code, "storage_unavailable");
      await sleep(100);
    }
    assert.equal(await brume.end("SIGTERM"), 0);
  } finally {
    await brume.close();
    execFileSync("umount", [folder]);
    rmSync(folder, { recursive: true });
  }
});
