import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { databases, startDatabase } from "../../../test/support/databases.ts";
import { keyRow, serverRow } from "../../../test/support/rows.ts";
import type { Store } from "../store/db.ts";
import { recountServers, sumAll, sumProject } from "./sumtable.ts";
import * as table from "./table.ts";

const newRow = (more: Partial<table.ServerRow> = {}) => {
  const { id: _, ...row } = serverRow(0, more);
  return row;
};

/** One test per kind of database. */
function onEach(name: string, prove: (store: Store) => Promise<void>): void {
  for (const kind of databases)
    test(`${kind}: ${name}`, async () => {
      const database = await startDatabase(kind);
      try {
        const project = { quotas: "{}", created: 0, is_blocked: 0, labels: "{}", version: 1 };
        await database.store.write((tx) =>
          tx
            .insertInto("project")
            .values([
              { ...project, name: "one" },
              { ...project, name: "two" },
            ])
            .execute(),
        );
        await prove(database.store);
      } finally {
        await database.close();
      }
    });
}

onEach("what servers hold is summed by project and for the host, failed ones hold nothing", async (store) => {
  assert.deepEqual(await sumProject(store.read, 1), { Servers: 0, CPU: 0, RAM: 0, HDD: 0 });
  await store.write(async (tx) => {
    await table.insertServer(tx, newRow({ held_cpu: 2, held_ram: 1024, held_hdd: 20 }));
    await table.insertServer(tx, newRow({ location: "Far" }));
    await table.insertServer(tx, newRow({ project_id: 2 }));
    for (const state of ["Failed", "Deleting"] as const)
      await table.insertServer(tx, newRow({ state, held_cpu: 0, held_ram: 0, held_hdd: 0 }));
  });
  assert.deepEqual(await sumProject(store.read, 1), { Servers: 2, CPU: 3, RAM: 1536, HDD: 30 });
  assert.deepEqual(await sumAll(store.read), { Servers: 3, CPU: 4, RAM: 2048, HDD: 40 });
});

onEach("sums stay those of all servers after any changes", async (store) => {
  const sums = () =>
    store.read.selectFrom("server_sum").selectAll().where("servers", ">", 0).orderBy("project_id").execute();
  const size = fc.nat(8);
  const change = fc.oneof(
    fc.record({ do: fc.constant("insert" as const), project: fc.constantFrom(1, 2), held: size }),
    fc.record({ do: fc.constant("update" as const), at: fc.nat(), held: size }),
    fc.record({ do: fc.constant("edit" as const), at: fc.nat() }),
    fc.record({ do: fc.constant("delete" as const), at: fc.nat() }),
  );
  const heldOf = (held: number) => ({ held_cpu: held, held_ram: held * 128, held_hdd: held * 10 });
  const run = async (changes: readonly (typeof change extends fc.Arbitrary<infer T> ? T : never)[], ids: number[]) => {
    for (const one of changes)
      await store.write(async (tx) => {
        const place = "at" in one ? one.at % Math.max(1, ids.length) : 0;
        const id = ids[place] ?? 0;
        if (one.do === "insert")
          ids.push((await table.insertServer(tx, newRow({ project_id: one.project, ...heldOf(one.held) }))).id);
        else if (ids.length === 0) return;
        else if (one.do === "update") await table.updateServer(tx, id, heldOf(one.held));
        else if (one.do === "edit") await table.updateServer(tx, id, { name: "other" });
        else await table.deleteServer(tx, ids.splice(place, 1)[0] ?? 0);
      });
    const kept = await sums();
    await store.write(recountServers);
    assert.deepEqual(kept, await sums());
  };
  const ids: number[] = [];
  await fc.assert(
    fc.asyncProperty(fc.array(change, { maxLength: 20 }), (changes) => run(changes, ids)),
    { numRuns: 10 },
  );
});

onEach("the keys of a server are those that were put in, in their order, and go with it", async (store) => {
  const keys = [keyRow(8, { labels: '{"a":"b"}' }), keyRow(7)];
  const { id } = await store.write(async (tx) => {
    const server = await table.insertServer(tx, newRow());
    table.setServerKeys(tx, server.id, [keyRow(9), keyRow(8), keyRow(7)]);
    table.setServerKeys(tx, server.id, keys);
    await table.insertServer(tx, newRow());
    return server;
  });
  assert.deepEqual(await table.listServerKeys(store.read, id), keys);
  assert.deepEqual([...(await table.listProjectKeys(store.read, 1))], [[id, keys]]);
  await store.write((tx) => table.deleteServer(tx, id));
  assert.deepEqual([...(await table.listProjectKeys(store.read, 1))], []);
});

onEach("a project sees its own servers and groups only", async (store) => {
  const { server, batch } = await store.write(async (tx) => {
    const group = await table.insertBatch(tx, {
      project_id: 1,
      policy: "Atomic",
      state: "New",
      errors: "[]",
      created: 0,
    });
    const row = await table.insertServer(tx, newRow({ batch_id: group.id, user_data: new Uint8Array([1, 2]) }));
    return { server: row, batch: group };
  });
  assert.deepEqual(await table.findServer(store.read, 1, server.id), server);
  assert.equal(await table.findServer(store.read, 2, server.id), undefined);
  assert.deepEqual(await table.findBatch(store.read, 1, batch.id), batch);
  assert.equal(await table.findBatch(store.read, 2, batch.id), undefined);
  assert.deepEqual(await table.listMembers(store.read, batch.id), [server]);
  assert.deepEqual([...(server.user_data ?? [])], [1, 2]);
  await store.write(async (tx) => {
    assert.equal((await table.updateBatch(tx, batch.id, { state: "Active" })).state, "Active");
    assert.equal((await table.updateServer(tx, server.id, { state: "Active", boot: 2 })).boot, 2);
    await table.deleteServer(tx, server.id);
    await table.deleteBatch(tx, batch.id);
  });
  assert.deepEqual(await table.listServers(store.read, 1), []);
});
