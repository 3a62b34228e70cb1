/** A damaged database file, or a full disk: the service starts, serves what it can, and reports the problem. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { closeSync, mkdirSync, mkdtempSync, openSync, readSync, rmSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { ApiError } from "@brume/api/client.ts";
import { StorageError } from "../../service/src/store/db.ts";
import { connect, databaseName } from "../../service/src/store/sqlite.ts";
import { startDatabase } from "../support/databases.ts";
import { openDnsClient } from "../support/dnsclient.ts";
import { createProcess, type Process } from "../support/process.ts";
import { waitUntil } from "../support/waituntil.ts";
import { lookUp, lookUpSerial } from "./load.ts";

interface Ready {
  readonly Status: string;
  readonly Checks: readonly { readonly Name: string; readonly Ok: boolean; readonly Detail: string }[];
}

const ready = async (brume: Process): Promise<Ready> => (await fetch(`${brume.url}/readyz`)).json() as Promise<Ready>;
const detailOf = ({ Checks }: Ready, name: string): string => Checks.find(({ Name }) => Name === name)?.Detail ?? "";

/** Moves the log into the file: a page in the log would hide the damage of the file. */
function emptyLog(file: string): void {
  const connection = connect(file, { readOnly: false });
  assert.equal(connection.first("pragma wal_checkpoint(truncate)", [])?.["busy"], 0);
  connection.close();
}

/** Overwrites the first page of a table. */
function damage(file: string, table: string): void {
  emptyLog(file);
  const connection = connect(file, { readOnly: true });
  const page = Number(connection.first("select rootpage from sqlite_schema where name = ?", [table])?.["rootpage"]);
  const size = Number(connection.first("pragma page_size", [])?.["page_size"]);
  connection.close();
  const handle = openSync(file, "r+");
  writeSync(handle, Buffer.alloc(size, 0xff), 0, size, (page - 1) * size);
  closeSync(handle);
}

/** Overwrites the leaf pages `from` to before `to` of a table with two levels. */
function damageLeaves(file: string, table: string, from: number, to: number): void {
  const connection = connect(file, { readOnly: true });
  const root = Number(connection.first("select rootpage from sqlite_schema where name = ?", [table])?.["rootpage"]);
  const size = Number(connection.first("pragma page_size", [])?.["page_size"]);
  connection.close();
  const handle = openSync(file, "r+");
  const page = Buffer.alloc(size);
  readSync(handle, page, 0, size, (root - 1) * size);
  assert.equal(page[0], 5, "the root is an interior page of a table");
  const cells = Array.from({ length: page.readUInt16BE(3) }, (_, i) => page.readUInt16BE(12 + 2 * i));
  const leaves = [...cells.map((at) => page.readUInt32BE(at)), page.readUInt32BE(8)];
  assert.ok(leaves.length > to, `${leaves.length} leaves`);
  for (const leaf of leaves.slice(from, to)) writeSync(handle, Buffer.alloc(size, 0xff), 0, size, (leaf - 1) * size);
  closeSync(handle);
}

test("thousands of damaged rows in a row: all other zones are served", async () => {
  const brume = await createProcess("sqlite");
  const file = join(brume.folder, databaseName);
  const count = 4000;
  try {
    await brume.end("SIGTERM");
    await brume.query(`
      WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${count})
      INSERT INTO domain (project_id, name, ascii, subtree, serial, created)
      SELECT 1, 'd' || i || '.test', 'd' || i || '.test', 'test.d' || i || '.', 7, 1 FROM n;
      PRAGMA wal_checkpoint(TRUNCATE)`);
    damageLeaves(file, "domain", 3, 50);
    const connection = connect(file, { readOnly: true });
    const expected = new Map<string, number | null>();
    for (let i = 1; i <= count; i++) {
      let serial: number | null = null;
      try {
        serial = Number(connection.first("select serial from domain where id = ?", [i])?.["serial"]);
      } catch {
        // Its page is damaged.
      }
      expected.set(`d${i}.test`, serial);
    }
    connection.close();
    const lost = [...expected.values()].filter((serial) => serial === null).length;
    assert.ok(lost > 2000 && expected.get(`d${count}.test`) === 7, `${lost} rows are damaged`);
    await brume.start().catch(() => {});
    const dnsClient = await openDnsClient(brume.dns);
    const served = new Map<string, number | null>();
    const names = [...expected.keys()];
    for (let from = 0; from < names.length; from += 100)
      await Promise.all(
        names.slice(from, from + 100).map(async (name) => served.set(name, await lookUpSerial(dnsClient, name))),
      );
    dnsClient.close();
    assert.deepEqual(
      names.filter((name) => served.get(name) !== expected.get(name)),
      [],
    );
    assert.ok(brume.log.some(({ msg }) => msg === `${lost} zones are not served: their rows cannot be read.`));
  } finally {
    await brume.close();
  }
});

test("damage that the read of a snapshot finds is reported", async () => {
  const database = await startDatabase("sqlite");
  try {
    await database.store.close();
    damage(database.address, "event");
    const store = await database.open();
    const { read, close } = await store.snapshot();
    assert.equal(store.unavailable(), null);
    await assert.rejects(read.selectFrom("event").selectAll().execute(), StorageError);
    assert.match(store.unavailable() ?? "", /^damaged: /);
    await close();
  } finally {
    await database.close();
  }
});

test("a file that SQLite cannot open: the start ends with the way to restore", async () => {
  const brume = await createProcess("sqlite");
  try {
    await brume.end("SIGTERM");
    const file = openSync(join(brume.folder, databaseName), "r+");
    writeSync(file, Buffer.alloc(100, 0xff), 0, 100, 0);
    closeSync(file);
    await assert.rejects(brume.start(), /brume\.db is damaged .*\. Restore a backup: "Backup and restore" in docs/);
    await brume.end();
  } finally {
    await brume.close();
  }
});

for (const table of ["event", "domain", "server"] as const)
  test(`a damaged page of ${table}: all readable data is served`, async () => {
    const brume = await createProcess("sqlite");
    const file = join(brume.folder, databaseName);
    try {
      await brume.client.createDomain({ body: { Name: "damage.test", Ip: "192.0.2.7" } });
      await brume.client.createServer({ body: { Name: "damage", RAM: 256, HDD: 1 } });
      assert.equal(await brume.end("SIGTERM"), 0);
      damage(file, table);
      // The service may read the damaged page before or after it is ready.
      await brume.start().catch(() => {});
      const end = performance.now() + 120_000;
      let state = await ready(brume);
      while (!detailOf(state, "database").includes(`table ${table}`)) {
        assert.ok(performance.now() < end, `${JSON.stringify(state)}\n${JSON.stringify(brume.log)}`);
        await sleep(50);
        state = await ready(brume);
      }
      assert.equal(state.Status, "failing");
      assert.match(detailOf(state, "database"), /^damaged: table .*Backup and restore/);
      assert.ok(detailOf(state, "database").includes(file), "the file is named");
      assert.equal((await brume.client.listSshKeys({})).length, 0);
      if (table !== "domain") {
        assert.equal((await brume.client.listDomains({})).length, 1);
        const dnsClient = await openDnsClient(brume.dns);
        assert.deepEqual(await lookUp(dnsClient, "damage.test"), ["192.0.2.7"]);
        dnsClient.close();
      }
      const { client } = brume;
      const read = {
        event: () => client.listEvents({}),
        domain: () => client.listDomains({}),
        server: () => client.listServers({}),
      };
      await assert.rejects(read[table](), (error) => error instanceof ApiError && error.code === "storage_unavailable");
      const lines = brume.log.filter(({ msg }) => msg.includes("damaged"));
      assert.ok(lines.length <= 3, `${lines.length} lines about the damage`);
    } finally {
      await brume.close();
    }
  });

test("a start on a full disk: reads and DNS work, and the log reports it", async (context) => {
  if (process.getuid?.() !== 0) return context.skip("only root may mount a small file system");
  const folder = mkdtempSync(join(tmpdir(), "brume-full-"));
  execFileSync("mount", ["-t", "tmpfs", "-o", "size=6m,mode=700", "brume-test", folder]);
  const data = join(folder, "data");
  mkdirSync(data);
  const brume = await createProcess("sqlite", { folder: data });
  const filler = join(folder, "filler");
  try {
    await brume.client.createDomain({ body: { Name: "full.test", Ip: "192.0.2.7" } });
    await brume.client.createServer({ body: { Name: "full", RAM: 256, HDD: 1 } });
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
    assert.equal((await brume.client.listServers({})).length, 1);
    const dnsClient = await openDnsClient(brume.dns);
    assert.deepEqual(await lookUp(dnsClient, "full.test"), ["192.0.2.7"]);
    dnsClient.close();
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
    const tryCreate = async () => {
      const made: unknown = await create("yes.test").catch((error: unknown) => error);
      if (made instanceof ApiError) assert.equal(made.code, "storage_unavailable");
      return made;
    };
    await waitUntil("a change that is stored", tryCreate, (made) => !(made instanceof ApiError), 100);
    assert.equal(await brume.end("SIGTERM"), 0);
  } finally {
    await brume.close();
    execFileSync("umount", [folder]);
    rmSync(folder, { recursive: true });
  }
});
