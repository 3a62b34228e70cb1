/**
 * docs/spec.md#acknowledged-changes-survive at a power cut, simulated: the database log is cut where it was synced when a response was
 * sent, followed by garbage like a torn write. Every change confirmed by then must exist completely.
 */
import assert from "node:assert/strict";
import { copyFileSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { sql } from "kysely";
import { silentLog } from "../../service/src/base/log.ts";
import { allowLoss, type Reader, StorageError, type Store } from "../../service/src/store/db.ts";
import { databaseName, openSqlite } from "../../service/src/store/sqlite.ts";
import { createProcess } from "../support/process.ts";
import { withSeed } from "../support/random.ts";
import { waitUntil } from "../support/waituntil.ts";

interface Answered {
  readonly name: string;
  /** Bytes of the log when the response arrived. */
  readonly bytes: number;
}

const writers = 8;
const writes = 240;
const cuts = 12;

test("every confirmed change survives a power cut, and no change is incomplete", () =>
  withSeed(async (random) => {
    const folder = mkdtempSync(join(tmpdir(), "brume-power-"));
    const brume = await createProcess("sqlite", { folder });
    const database = join(folder, databaseName);
    try {
      const { ID } = await brume.client.createDomain({ body: { Name: "power.example" } });
      const before = statSync(database).size;
      const answered: Answered[] = [];
      let next = 0;
      const write = async (): Promise<void> => {
        while (next < writes) {
          const name = `n${next++}`;
          await brume.client.createRecordA({ body: { DomainId: ID, Name: name, IP: "192.0.2.1" } });
          answered.push({ name, bytes: statSync(`${database}-wal`).size });
        }
      };
      await Promise.all(Array.from({ length: writers }, write));
      await brume.end("SIGKILL");
      assert.equal(
        statSync(database).size,
        before,
        "the log was moved into the database: fewer writes are needed here",
      );

      for (let cut = 0; cut < cuts; cut++) {
        const moment = answered[random.below(answered.length)];
        assert.ok(moment !== undefined);
        const after = mkdtempSync(join(tmpdir(), "brume-power-after-"));
        try {
          copyFileSync(database, join(after, databaseName));
          const log = readFileSync(`${database}-wal`).subarray(0, moment.bytes);
          const randomBytes = Buffer.from(Array.from({ length: random.below(9000) }, () => random.below(256)));
          writeFileSync(join(after, `${databaseName}-wal`), Buffer.concat([log, randomBytes]));
          await inspect(join(after, databaseName), answered, moment.bytes);
        } finally {
          rmSync(after, { recursive: true });
        }
      }
    } finally {
      await brume.close();
      rmSync(folder, { recursive: true, force: true });
    }
  }));

async function inspect(file: string, answered: readonly Answered[], bytes: number): Promise<void> {
  const store = await openSqlite(file, { log: silentLog });
  await store.close();
  const database = new DatabaseSync(file, { readOnly: true });
  const column = (sql: string): unknown[] =>
    database
      .prepare(sql)
      .all()
      .flatMap((row) => Object.values(row));
  try {
    assert.deepEqual(column("PRAGMA integrity_check"), ["ok"]);
    const owners = new Set(column("SELECT owner FROM record"));
    const lost = answered.filter((one) => one.bytes <= bytes && !owners.has(one.name));
    assert.deepEqual(lost, [], "confirmed changes that are lost");
    const [counted] = column("SELECT record_count FROM domain");
    assert.equal(counted, owners.size);
    const [events] = column("SELECT count(*) FROM event WHERE type = 'record.created'");
    assert.equal(events, owners.size);
    const [audited] = column("SELECT count(*) FROM audit WHERE operation = 'createRecordA'");
    assert.equal(audited, owners.size);
  } finally {
    database.close();
  }
}

/** Opens a database. Its first sync ends at once; later ones end when the test calls the functions of `open`: without an error, or with this one. */
async function openGated(
  prove: (store: Store, open: ((error?: Error) => void)[], file: string) => Promise<void>,
): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "brume-power-"));
  const open: ((error?: Error) => void)[] = [];
  const opening = openSqlite(join(folder, databaseName), {
    log: silentLog,
    sync: () => new Promise((resolve, reject) => open.push((error) => (error ? reject(error) : resolve()))),
  });
  open.shift()?.();
  const store = await opening;
  try {
    await prove(store, open, join(folder, databaseName));
  } finally {
    for (const end of open) end();
    await store.close();
    rmSync(folder, { recursive: true });
  }
}

const turns = async (count: number): Promise<void> => {
  for (let turn = 0; turn < count; turn++) await new Promise((resolve) => void setImmediate(resolve));
};
/** Waits until the store waits for a sync. */
const untilSyncing = async (open: readonly unknown[]): Promise<void> => {
  await waitUntil(
    "a sync",
    () => open.length,
    (count) => count > 0,
    0,
  );
};
const insert = (store: Store, value: number): Promise<unknown> =>
  store.write((tx) => sql`insert into t values (${sql.lit(value)})`.execute(tx));
const valuesIn = async (db: Reader): Promise<unknown[]> =>
  (await sql<{ a: number }>`select a from t order by a`.execute(db)).rows.map(({ a }) => a);

/** Creates the table `t`. */
async function createTable(store: Store, open: ((error?: Error) => void)[]): Promise<void> {
  const created = store.write((tx) => sql`create table t (a integer) strict`.execute(tx));
  await untilSyncing(open);
  open.shift()?.();
  await created;
}

test("a change is confirmed and shown only when the log is synced, and reads do not wait for it", () =>
  openGated(async (store, open) => {
    await createTable(store, open);
    let isConfirmed = false;
    const written = insert(store, 1).then(() => (isConfirmed = true));
    await untilSyncing(open);
    let hasSnapshot = false;
    const snapshot = store.snapshot().then((opened) => ((hasSnapshot = true), opened));
    await turns(10);
    assert.equal(open.length, 1);
    assert.equal(isConfirmed, false);
    assert.equal(hasSnapshot, false);
    assert.deepEqual(await valuesIn(store.read), []);
    open.shift()?.();
    await written;
    assert.deepEqual(await valuesIn(store.read), [1]);
    const { read, close } = await snapshot;
    assert.deepEqual(await valuesIn(read), [1]);
    await close();
  }));

test("a database is opened only when the log that an earlier process left is synced", async () => {
  const folder = mkdtempSync(join(tmpdir(), "brume-power-"));
  const end = Promise.withResolvers<void>();
  let isOpen = false;
  const opening = openSqlite(join(folder, databaseName), { log: silentLog, sync: () => end.promise });
  const opened = opening.then(() => (isOpen = true));
  await turns(10);
  assert.equal(isOpen, false);
  end.resolve();
  await opened;
  await (await opening).close();
  rmSync(folder, { recursive: true });
});

test("a change that may be lost does not wait for the disk, unless it shares the commit of another one", () =>
  openGated(async (store, open) => {
    await createTable(store, open);
    const insertLosable = (value: number) =>
      store.write((tx) => {
        allowLoss(tx);
        return sql`insert into t values (${sql.lit(value)})`.execute(tx);
      });
    await insertLosable(1);
    await assert.rejects(
      store.write(() => Promise.reject(new Error("rejected"))),
      /rejected/,
    );
    assert.equal(open.length, 0);
    let isConfirmed = false;
    const both = Promise.all([insert(store, 2), insertLosable(3)]).then(() => (isConfirmed = true));
    await untilSyncing(open);
    await turns(10);
    assert.equal(open.length, 1);
    assert.equal(isConfirmed, false);
    assert.deepEqual(await valuesIn(store.read), [1]);
    open.shift()?.();
    await both;
    assert.deepEqual(await valuesIn(store.read), [1, 2, 3]);
  }));

test("after a failed sync, the next change first replaces the log, which may be incomplete on the disk", () =>
  openGated(async (store, open, file) => {
    await createTable(store, open);
    const [logBytes, foreign] = [statSync(`${file}-wal`).size, store.foreignWrites()];
    const failed = insert(store, 1);
    await untilSyncing(open);
    open.shift()?.(new Error("EIO"));
    await assert.rejects(failed, StorageError);
    assert.notEqual(store.foreignWrites(), foreign, "responses before it are not valid any more");
    const next = insert(store, 2);
    await untilSyncing(open);
    assert.ok(statSync(`${file}-wal`).size < logBytes);
    open.shift()?.();
    await next;
    assert.ok((await valuesIn(store.read)).includes(2));
  }));

test("the log does not grow beyond its limit under constant writes", async () => {
  const folder = mkdtempSync(join(tmpdir(), "brume-power-"));
  const warnings: string[] = [];
  const file = join(folder, databaseName);
  const store = await openSqlite(file, { log: (_, text) => void warnings.push(text) });
  try {
    await store.write((tx) => sql`create table t (a text) strict`.execute(tx));
    const text = "x".repeat(2_000_000);
    for (let write = 0; write < 60; write++) await store.write((tx) => sql`insert into t values (${text})`.execute(tx));
    assert.ok(statSync(`${file}-wal`).size < 48e6, `${statSync(`${file}-wal`).size} bytes`);
    assert.deepEqual(warnings, []);
  } finally {
    await store.close();
    rmSync(folder, { recursive: true });
  }
});
