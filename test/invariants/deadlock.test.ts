/** Two writers that wait for the lock of each other: the database ends one of them, and the store runs it again. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { sql } from "kysely";
import { lock, type Store } from "../../service/src/store/db.ts";
import { databases, startDatabase } from "../support/databases.ts";
import { insertEvent } from "../support/writer.ts";

for (const kind of databases)
  test(`${kind}: writers in a deadlock both succeed`, async () => {
    const database = await startDatabase(kind);
    try {
      const { store } = database;
      const other = kind === "postgres" ? await database.open() : store;
      const bothHold = Promise.withResolvers<void>();
      let holders = 0;
      let tries = 0;
      const work = (at: Store, keys: readonly [string, string]): Promise<unknown> =>
        at.write(async (tx) => {
          tries += 1;
          await lock(tx, keys[0]);
          // SQLite has a single writer, which gets both locks.
          if (kind === "postgres") {
            // The lock is held when the next statement has ended. Then this writer waits for the first lock of the other one.
            await sql`select 1`.execute(tx);
            holders += 1;
            if (holders === 2) bothHold.resolve();
            await bothHold.promise;
          }
          await lock(tx, keys[1]);
          await insertEvent(tx, 1);
        });
      await Promise.all([work(store, ["a", "b"]), work(other, ["b", "a"])]);
      assert.equal(tries, kind === "postgres" ? 3 : 2);
      const rows = await store.read.selectFrom("event").select("resource_id").execute();
      assert.deepEqual(
        rows.map((row) => row.resource_id),
        [1, 1],
      );
    } finally {
      await database.close();
    }
  });
