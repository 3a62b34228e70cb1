/** Reconciler invariants for the reconcilers of servers, whose effect is a queued flow, queued once; results of backups and metrics that could not be stored. */
import assert from "node:assert/strict";
import { list } from "../../service/src/engine/task.ts";
import { rowTime } from "../../service/src/server/model/samples.ts";
import { createSampler } from "../../service/src/server/sampler.ts";
import { updateServer } from "../../service/src/server/table.ts";
import { invariant } from "../support/enginefixture.ts";
import { by, day, minute, serverInvariant } from "../support/serverenginefixture.ts";
import { listBackups, openServerFixture } from "../support/serverfixture.ts";
import { testReconciler } from "./reconciler-invariants.ts";

const time = Date.UTC(2026, 10, 20);

/** `work`: the flow that a reconciler queues for such a row. */
function testWith(name: string, work: string, spec: Parameters<typeof updateServer>[2]): void {
  testReconciler(name, async (store) => {
    const fixture = await openServerFixture(store, () => time);
    const server = await fixture.makeServer();
    await fixture.perform((tx) => fixture.servers.commands.power(tx, server, { Type: "PowerOff" }, null));
    const reconciler =
      fixture.servers.reconcilers.find((each) => each.name === name) ?? assert.fail(`there is no reconciler ${name}`);
    const ordered = async () =>
      (await list(store.read, { kind: "server", id: server.id }, 99)).filter((task) => task.name === work).length;
    let changes = 0;
    return {
      reconciler: {
        ...reconciler,
        async run(run) {
          const kept = await reconciler.run(run);
          changes = await ordered();
          return kept;
        },
      },
      subject: 0,
      spec: async (tx) => void (await updateServer(tx, server.id, spec)),
      observe: ordered,
      changes: () => changes,
      close: async () => fixture.servers.close(),
    };
  });
}

testWith("server.watch", "server.settle", { is_on: 1 });
testWith("server.backup", "server.turn", { is_backup_active: 1 });

serverInvariant(
  "the result of a backup is stored while its server is blocked",
  async ({ fixture, make, write, until, pass, server, alarm }, store) => {
    const { machines, servers } = fixture;
    const { id } = await make();
    const states = async () => (await listBackups(store.read)).map(({ state }) => state).join();
    machines.fail("ensureSnapshot", Infinity);
    await write((tx) => updateServer(tx, id, { is_backup_active: 1 }));
    await until(async () => (await states()) === "New");
    await write((tx) => servers.commands.block(tx, 1, by));
    await until(async () => (await states()) === "Failed");
    assert.equal((await server(id)).error, null);
    machines.fail("ensureSnapshot", 0);
    await write((tx) => servers.commands.unblock(tx, 1, by));
    await pass(11 * minute);
    assert.equal(await states(), "Active", "a new backup follows");

    machines.fail("ensureImage", Infinity);
    const error = JSON.stringify({ code: "backup_failed" });
    const failed = { backed_up: null, backup_failed: alarm.now() - day, error };
    await write((tx) => updateServer(tx, id, failed));
    await until(async () => (await states()).includes("New"));
    await write((tx) => servers.commands.block(tx, 1, by));
    machines.fail("ensureImage", 0);
    await until(async () => (await states()) === "Active,Active");
    const row = await server(id);
    assert.deepEqual([row.state, row.backup_failed, row.error], ["Blocked", null, null]);
  },
);

serverInvariant("metrics that could not be stored are written later", async ({ fixture, make }, store) => {
  const { id } = await make();
  let now = rowTime;
  const failures = [new Error("full")];
  const write: typeof store.write = (work, batched) => {
    const failure = failures.pop();
    return failure === undefined ? store.write(work, batched) : Promise.reject(failure);
  };
  const sampler = createSampler({
    store: { ...store, write },
    clock: { now: () => now },
    pruneTime: { read: async () => now, save: async () => {} },
    machines: fixture.servers.machineStatus,
    networks: fixture.router,
  });
  const run = () => sampler.reconciler.run({ subject: 0, attempt: 1, signal: new AbortController().signal });
  await run();
  now += rowTime;
  await assert.rejects(async () => run(), /full/);
  await run();
  await sampler.flush();
  const rows = store.read.selectFrom("sample").select("start").where("server_id", "=", id).orderBy("start");
  assert.deepEqual(await rows.execute(), [{ start: rowTime }, { start: 2 * rowTime }]);
});

invariant(
  "all VMs are observed for orphans only if the last check of servers is old or found one that is not known",
  async (store) => {
    let now = time;
    const fixture = await openServerFixture(store, () => now);
    try {
      const { id, boot } = await fixture.makeServer();
      const { observe } = fixture.machines;
      let count = 0;
      Object.assign(fixture.machines, {
        observe(only?: readonly number[]) {
          count += 1;
          return observe(only);
        },
      });
      const run = async (name: string): Promise<number> => {
        const reconciler = fixture.servers.reconcilers.find((each) => each.name === name) ?? assert.fail(name);
        const before = count;
        await reconciler.run({ subject: 0, attempt: 1, signal: new AbortController().signal });
        return count - before;
      };
      assert.deepEqual([await run("server.watch"), await run("server.orphan")], [1, 0]);
      now += 10_000;
      assert.equal(await run("server.orphan"), 1);
      await store.write((tx) => updateServer(tx, id, { boot: boot - 1 }));
      assert.deepEqual([await run("server.watch"), await run("server.orphan")], [1, 1]);
      assert.equal((await fixture.row(id)).boot, boot);
    } finally {
      fixture.servers.close();
    }
  },
);
