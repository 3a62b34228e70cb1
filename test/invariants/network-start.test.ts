/** A start of the service applies all networks: those that did not change cost no write, and none of them counts as drift. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { sql } from "kysely";
import { silentLog } from "../../service/src/base/log.ts";
import { createSim } from "../../service/src/drivers/router/sim/sim.ts";
import { createDueTasks } from "../../service/src/engine/lease.ts";
import { requestReconcile } from "../../service/src/engine/task.ts";
import { driftReconciler } from "../../service/src/network/drift.ts";
import { createNetworkStatusCache } from "../../service/src/network/statuscache.ts";
import { findNetwork } from "../../service/src/network/table.ts";
import { startDatabase } from "../support/databases.ts";
import { openServerFixture } from "../support/serverfixture.ts";

const now = () => Date.UTC(2026, 10, 20);
const run = { attempt: 1, signal: new AbortController().signal };

test("an unchanged network is applied without a write, and is no drift before that", async () => {
  const database = await startDatabase("sqlite");
  const { store } = database;
  const fixture = await openServerFixture(store, now);
  try {
    const id = fixture.networks[1]?.id ?? 0;
    const apply = async () => {
      const result = await fixture.apply.run({ ...run, subject: id });
      await store.write(async (tx) => result?.save?.(tx));
      return result?.save !== undefined;
    };
    const applied = async () => {
      const row = await findNetwork(store.read, id);
      return [row?.applied, row?.error];
    };
    assert.equal(await apply(), true);
    const before = await applied();
    // As after a start: nothing is known about the router, which has no network.
    const router = createSim(now);
    const drift = driftReconciler({
      store,
      clock: { now },
      log: silentLog,
      router,
      live: createNetworkStatusCache(router),
      apply: fixture.apply,
      nat: "never",
    });
    fixture.apply.changes.forget(id);
    await drift.run({ ...run, subject: 0 });
    assert.deepEqual(await applied(), before);
    assert.equal(await apply(), false);
    assert.deepEqual(await applied(), before);
    await drift.run({ ...run, subject: 0 });
    assert.equal((await applied())[0], 0);
  } finally {
    await fixture.close();
    await database.close();
  }
});

test("the next of other tasks is found without those that wait for a limited reconciler", async () => {
  const database = await startDatabase("sqlite");
  const { store } = database;
  const fixture = await openServerFixture(store, now);
  try {
    await store.write((tx) => requestReconcile(tx, fixture.apply, 7));
    const { name } = fixture.apply;
    const [own, others] = [createDueTasks(name, []), createDueTasks(null, [name])];
    assert.equal((await own.next(store.read, [name]))?.name, name);
    assert.equal(await others.next(store.read, [name, "server.Create"]), undefined);
    const planOf = async (condition: string) => {
      const text = `explain query plan select name from task where due_at is not null and ${condition} order by due_at limit 1`;
      const { rows } = await sql.raw<{ detail: string }>(text).execute(store.read);
      return rows.map(({ detail }) => detail).join();
    };
    assert.match(await planOf(`name = '${name}' and name in ('${name}')`), /task_due_network/);
    assert.match(await planOf(`true and name <> '${name}' and name in ('a', 'b')`), /task_due_other/);
  } finally {
    await fixture.close();
    await database.close();
  }
});
