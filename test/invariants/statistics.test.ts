/** The statistics of PostgreSQL follow a table that grows: a query that was prepared for an empty one then uses its indexes. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { sql } from "kysely";
import pg from "pg";
import type { Store } from "../../service/src/store/db.ts";
import { openPostgres } from "../../service/src/store/postgres.ts";
import { startDatabase } from "../support/databases.ts";
import { insertEvent } from "../support/writer.ts";

/** Stores enough events for a refresh. */
const grow = (store: Store): Promise<void> =>
  store.write(async (tx) => {
    for (let index = 0; index < 600; index++) await insertEvent(tx, index, null);
  });

/** Resolves when the statistics contain all events. */
async function awaitRefresh(store: Store): Promise<void> {
  for (;;) {
    const { rows } = await sql<{ rows: number }>`
      select reltuples::int as rows from pg_class where relname = 'event'`.execute(store.read);
    if (rows[0]?.rows === 600) return;
    assert.ok(rows.length === 1);
    await sleep(100);
  }
}

test("a service refreshes the statistics of a table that has grown by half", async () => {
  const database = await startDatabase("postgres");
  const store = await openPostgres(database.address, { log: () => {}, exclusive: true });
  try {
    await grow(store);
    await awaitRefresh(store);
  } finally {
    await store.close();
    await database.close();
  }
});

test("a refresh of the statistics that fails does not disturb reads", async () => {
  const database = await startDatabase("postgres");
  const other = new pg.Client({ connectionString: database.address });
  await other.connect();
  await other.query(`alter database "${other.database}" set lock_timeout = 50`);
  let hasFailed = (): void => {};
  const failed = new Promise<void>((resolve) => {
    hasFailed = resolve;
  });
  const store = await openPostgres(database.address, {
    log: (_, message) => message.startsWith("Could not refresh the statistics") && hasFailed(),
    exclusive: true,
  });
  try {
    await other.query("begin; lock table event in share update exclusive mode");
    await grow(store);
    await failed;
    for (let index = 0; index < 10; index++) {
      const rows = await store.read.selectFrom("event").select("id").limit(1).execute();
      assert.equal(rows.length, 1);
    }
    await other.query("commit");
    await awaitRefresh(store);
  } finally {
    await other.end();
    await store.close();
    await database.close();
  }
});
