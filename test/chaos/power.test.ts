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
import { databaseName, openSqlite } from "../../service/src/store/sqlite.ts";
import { createProcess } from "../support/process.ts";
import { withSeed } from "../support/random.ts";

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

test("the database syncs the disk at every commit", async () => {
  const folder = mkdtempSync(join(tmpdir(), "brume-power-"));
  const store = await openSqlite(join(folder, databaseName), { log: silentLog });
  try {
    const readPragma = (pragma: string): Promise<unknown> =>
      store.write(async (tx) => {
        const { rows } = await sql.raw<Record<string, unknown>>(`PRAGMA ${pragma}`).execute(tx);
        return rows[0]?.[pragma];
      });
    assert.equal(await readPragma("journal_mode"), "wal");
    assert.equal(await readPragma("synchronous"), 2, "FULL: the log is synced before a commit is answered");
  } finally {
    await store.close();
    rmSync(folder, { recursive: true });
  }
});
