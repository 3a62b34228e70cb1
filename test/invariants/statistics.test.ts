/** The statistics of PostgreSQL follow a table that grows: a query that was prepared for an empty one then uses its indexes. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { sql } from "kysely";
import { openPostgres } from "../../service/src/store/postgres.ts";
import { startDatabase } from "../support/databases.ts";
import { insertEvent } from "../support/writer.ts";

test("a service refreshes the statistics of a table that has grown by half", async () => {
  const database = await startDatabase("postgres");
  const store = await openPostgres(database.address, { log: () => {}, exclusive: true });
  try {
    await store.write(async (tx) => {
      for (let index = 0; index < 600; index++) await insertEvent(tx, index, null);
    });
    for (;;) {
      const { rows } = await sql<{ rows: number }>`
        select reltuples::int as rows from pg_class where relname = 'event'`.execute(store.read);
      if (rows[0]?.rows === 600) break;
      assert.ok(rows.length === 1);
      await sleep(100);
    }
  } finally {
    await store.close();
    await database.close();
  }
});
