/** Snapshots of PostgreSQL, each with a connection of its own, share few of them: the others are left for requests. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { openPostgresSnapshot } from "../../service/src/store/postgres.ts";
import { startDatabase } from "../support/databases.ts";

test("eight snapshots are open at once, and further ones wait", async () => {
  const { store, address, close: remove } = await startDatabase("postgres");
  const first = Promise.withResolvers<void>();
  const end = Promise.withResolvers<void>();
  const readIds = (read: typeof store.read) => read.selectFrom("event").select("id").execute();
  let opened = 0;
  const snapshots = Array.from({ length: 20 }, async () => {
    const { read, close } = await store.snapshot();
    if (++opened === 8) first.resolve();
    await end.promise;
    await readIds(read);
    await close();
  });
  try {
    await first.promise;
    assert.deepEqual(await readIds(store.read), []);
    // Connections that were requested later are open.
    for (let count = 0; count < 3; count++) await (await openPostgresSnapshot(address)).close();
    assert.equal(opened, 8);
    end.resolve();
    await Promise.all(snapshots);
    assert.equal(opened, 20);
  } finally {
    end.resolve();
    await Promise.allSettled(snapshots);
    await remove();
  }
});
