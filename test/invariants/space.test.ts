/** A SQLite file returns the space of deleted rows to the disk, in slices, during writes. */
import assert from "node:assert/strict";
import { statSync } from "node:fs";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { sql } from "kysely";
import { startDatabase } from "../support/databases.ts";
import { insertEvent } from "../support/writer.ts";

test("a SQLite file returns the space of deleted rows", async () => {
  const database = await startDatabase("sqlite");
  const { store, address } = database;
  try {
    for (let group = 0; group < 20; group++)
      await store.write(async (tx) => {
        for (let row = 0; row < 100; row++) await insertEvent(tx, row, "x".repeat(10_000));
      });
    await store.write((tx) => tx.deleteFrom("event").execute());
    const pages = async (): Promise<number> =>
      (await sql<{ page_count: number }>`pragma page_count`.execute(store.read)).rows[0]?.page_count ?? 0;
    assert.ok((await pages()) > 4000, "the file has grown");
    for (let row = 0; (await pages()) > 1200; row++) {
      await store.write((tx) => insertEvent(tx, row));
      await sleep(50);
    }
    await store.close();
    assert.ok(statSync(address).size < 8e6, `${statSync(address).size} bytes`);
  } finally {
    await database.close();
  }
});
