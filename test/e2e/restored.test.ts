/** A restored database is older than the VMs and disks on the host, which have changed since the backup. */
import assert from "node:assert/strict";
import { before, test } from "node:test";
import { findAnyServer, type ServerRow, updateServer } from "../../service/src/server/table.ts";
import { onSqliteFirst } from "../support/harness.ts";
import { createServerApiFixture, type ServerApiFixture } from "../support/serverapifixture.ts";
import { until } from "../support/waituntil.ts";

onSqliteFirst("a database that is older than the host", (harness) => {
  let fixture: ServerApiFixture;
  before(() => {
    fixture = createServerApiFixture(harness);
  });
  const rowOf = async (id: number): Promise<ServerRow> =>
    (await findAnyServer(harness.brume.store.read, id)) ?? assert.fail("it has no row");
  const statusOf = async (id: number) =>
    (await harness.brume.machines.observe()).machines.find((one) => one.id === id) ?? assert.fail("it has no VM");
  const versionsOf = async (id: number) => (await statusOf(id)).disks.map(({ version }) => version);
  /** Restores the numbers of the row from a backup while the service is stopped. */
  const restore = ({ id, boot, disk_version }: ServerRow) =>
    harness.brume.restart((store) => store.write((tx) => updateServer(tx, id, { boot, disk_version })));
  async function rebuild(id: number): Promise<void> {
    const { ID } = await harness.client.rebuildServer({ path: { id }, body: {} }, { wait: 120 });
    assert.equal(ID, id);
    assert.deepEqual((await fixture.actions(id))[0]?.State, "Completed");
    await until("only the new disk exists", async () => (await versionsOf(id)).length === 1);
  }

  test("restarts a VM that was restarted since, and notes the end of its guest", async () => {
    const { ID } = await fixture.server();
    const backup = await rowOf(ID);
    for (let times = 0; times < 3; times++) await fixture.act(ID, { Type: "PowerReboot" });
    const { boot } = await statusOf(ID);
    await restore(backup);
    assert.equal((await statusOf(ID)).boot, boot, "the restore restarts nothing");
    assert.equal((await fixture.act(ID, { Type: "PowerReboot" })).State, "Completed");
    assert.equal((await statusOf(ID)).boot, boot + 1);
    await restore(backup);
    harness.brume.machines.switchOff(ID);
    await fixture.read(ID, ({ IsPowerOn }) => !IsPowerOn);
    await until("its row is off", async () => (await rowOf(ID)).is_on === 0);
    assert.equal((await statusOf(ID)).boot, boot + 1);
  });

  test("starts a server that was rebuilt since from its present disk, and rebuilds it anew", async () => {
    const { ID } = await fixture.server();
    const backup = await rowOf(ID);
    await rebuild(ID);
    harness.brume.machines.write(ID, "written since the rebuild");
    await restore(backup);
    assert.equal((await rowOf(ID)).disk_version, 2);
    for (const Type of ["PowerOff", "PowerOn"] as const)
      assert.equal((await fixture.act(ID, { Type })).State, "Completed");
    assert.equal(harness.brume.machines.read(ID), "written since the rebuild");
    await restore(backup);
    await rebuild(ID);
    assert.deepEqual(await versionsOf(ID), [3]);
    assert.equal(harness.brume.machines.read(ID), "");
  });

  test("leaves a VM alone that a step has started, but not stored yet", async () => {
    const { ID } = await fixture.server();
    const { boot } = await rowOf(ID);
    harness.brume.machines.fail("ensureRunning", Infinity, "after", ID);
    const action = await fixture.order(ID, { Type: "PowerReboot" });
    await until("the VM runs anew", async () => (await statusOf(ID)).boot === boot + 1);
    await harness.brume.restart();
    assert.equal((await rowOf(ID)).boot, boot);
    harness.brume.machines.fail("ensureRunning", 0);
    assert.equal((await fixture.ended(action)).State, "Completed");
    assert.deepEqual([(await statusOf(ID)).boot, (await rowOf(ID)).boot], [boot + 1, boot + 1]);
  });

  test("changes nothing while a host is as the database describes it", async () => {
    const { ID } = await fixture.server();
    await fixture.act(ID, { Type: "PowerReboot" });
    const row = await rowOf(ID);
    await harness.brume.restart();
    assert.deepEqual(await rowOf(ID), row);
  });
});
