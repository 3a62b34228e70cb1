/** The boot queue: servers wait for their slot, and one that is canceled or deleted frees its place. */
import assert from "node:assert/strict";
import { cancel, find } from "../../service/src/engine/task.ts";
import { findBatch, insertBatch } from "../../service/src/server/table.ts";
import { by, eventsOf, minute, type ServerEngineFixture, serverInvariant } from "../support/serverenginefixture.ts";

const slow = { boots: 2, bootTime: minute };

/** Orders so many at once. */
const orderMany = ({ fixture, write }: ServerEngineFixture, count: number) =>
  write(async (tx) => {
    const batch = await insertBatch(tx, { project_id: 1, policy: "Atomic", state: "New", errors: "[]", created: 0 });
    const made = [];
    for (let n = 1; n <= count; n++)
      made.push(
        await fixture.servers.commands.create(tx, {
          project: 1,
          batch: batch.id,
          spec: fixture.spec({ name: `node-${n}` }),
          by,
        }),
      );
    return { batch, made };
  });

serverInvariant(
  "a group boots two servers at a time, and waiting ones show their position",
  async (it, store) => {
    const { batch, made } = await orderMany(it, 8);
    const begun = it.alarm.now();
    const bootOf = async (id: number) =>
      (await find(store.read, id))?.steps.find(({ name }) => name === "Boot") ?? assert.fail();
    // Tasks that were started together run in any order.
    const details = () => Promise.all(made.map(async ({ task }) => (await bootOf(task.id)).detail));
    await it.until(async () => (await details()).includes("waits in the boot queue, 5 before it"));
    const last = made[(await details()).indexOf("waits in the boot queue, 5 before it")]?.task.id ?? assert.fail();
    assert.equal((await bootOf(last)).state, "InProgress");
    const on = [];
    for (const { server } of made) if (await it.isOn(server.id)) on.push(server.id);
    assert.equal(on.length, 2);
    await it.until(async () => (await findBatch(store.read, 1, batch.id))?.state !== "New");
    assert.equal((await findBatch(store.read, 1, batch.id))?.state, "Active");
    assert.ok(it.alarm.now() - begun >= 3 * minute, "later than the two minutes of a step");
    assert.equal((await bootOf(last)).detail, "power on");
    const { length } = await eventsOf(store, "action", last);
    assert.ok(length < 20, `${length} events`);
  },
  slow,
);

serverInvariant(
  "the timeout of a start begins when it gets its slot",
  async (it) => {
    const { made } = await orderMany(it, 7);
    const last = made.at(-1) ?? assert.fail();
    await it.pass(2.9 * minute);
    // It gets its turn when three minutes are over, and then has its five tries.
    it.fixture.machines.fail("ensureRunning", 4);
    assert.equal((await it.end(last.task)).state, "Completed");
  },
  slow,
);

serverInvariant(
  "a waiting server that is canceled or deleted leaves the queue at once",
  async (it, store) => {
    const one = await it.make();
    const two = await it.make({ name: "web-2" });
    assert.ok((await it.isOn(one.id)) && (await it.isOn(two.id)));
    const order = (name: string) =>
      it.write((tx) =>
        it.fixture.servers.commands.create(tx, { project: 1, batch: null, spec: it.fixture.spec({ name }), by }),
      );
    const waiting = async ({ task }: Awaited<ReturnType<typeof order>>, before: number) =>
      it.until(
        async () =>
          (await find(store.read, task.id))?.steps.some(
            ({ detail }) => detail === `waits in the boot queue, ${before} before it`,
          ) === true,
      );
    const canceled = await order("canceled");
    await waiting(canceled, 0);
    const deleted = await order("deleted");
    await waiting(deleted, 1);
    const last = await order("last");
    await waiting(last, 2);
    const begun = it.alarm.now();
    const why = { code: "superseded", title: "", detail: "" } as const;
    await it.write((tx) => cancel(tx, { kind: "server", id: canceled.server.id }, why, it.alarm.now()));
    await it.write((tx) => it.fixture.servers.commands.delete(tx, deleted.server, by));
    assert.equal((await it.end(canceled.task)).state, "Canceled");
    await it.until(async () => !(await it.machines()).includes(deleted.server.id));
    await waiting(last, 0);
    assert.ok(it.alarm.now() - begun < minute / 2);
    assert.equal((await it.end(last.task)).state, "Completed");
  },
  slow,
);

serverInvariant(
  "after a host reboot all servers that were on boot through the queue",
  async (it) => {
    const { made } = await orderMany(it, 8);
    for (const { task } of made) assert.equal((await it.end(task)).state, "Completed");
    const begun = it.alarm.now();
    for (const { server } of made) it.fixture.machines.kill(server.id, "host");
    for (const { server } of made) await it.until(() => it.isOn(server.id));
    assert.ok(it.alarm.now() - begun >= 3 * minute);
  },
  slow,
);
