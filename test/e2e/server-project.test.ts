/** Projects with servers (docs/spec.md#account-and-project): blocking, unblocking, and no deletion while objects exist. */
import assert from "node:assert/strict";
import { before, test } from "node:test";
import type { Server } from "@brume/api/server.ts";
import { type Caller, onSqlite, refused } from "../support/harness.ts";
import { createServerApiFixture, type ServerApiFixture } from "../support/serverapifixture.ts";

onSqlite("projects with servers", (harness) => {
  let theirs: Caller & { readonly project: number };
  let fixture: ServerApiFixture;
  before(async () => {
    theirs = await harness.neighbour();
    fixture = createServerApiFixture({ ...harness, client: theirs.client, brume: harness.brume });
  });
  const block = (IsBlocked: boolean) =>
    harness.client.updateProject({ path: { id: theirs.project }, body: { IsBlocked } });

  test("blocking a project powers its servers off, and unblocking restores their power state", async () => {
    const on = await fixture.server();
    const off = await fixture.server();
    await fixture.act(off.ID, { Type: "PowerOff" });
    const release = harness.brume.machines.hold("apply");
    const running = await theirs.client.updateServer({ path: { id: on.ID }, body: { HDD: 20 } });
    const waiting = await fixture.order(on.ID, { Type: "PowerOff" });
    await block(true);
    release();
    const canceled = await fixture.ended(waiting);
    assert.deepEqual([canceled.State, canceled.Error?.code], ["Canceled", "superseded"]);
    assert.equal((await fixture.ended(running)).State, "Completed");
    const blocked = await fixture.read(on.ID, ({ IsPowerOn }) => !IsPowerOn);
    assert.deepEqual([blocked.State, (await fixture.read(off.ID)).State], ["Blocked", "Blocked"]);
    await refused(fixture.order(on.ID, { Type: "PowerOn" }), "project_blocked");
    await refused(theirs.client.createServer({ body: { Name: "x" } }), "project_blocked");
    const events = await theirs.client.listEvents({
      query: { type: "server.changed", resource: `server:${on.ID}`, limit: 1000 },
    });
    assert.ok(events.some(({ Data }) => (Data as Server).State === "Blocked"));
    await block(false);
    const again = await fixture.read(on.ID, ({ IsPowerOn }) => IsPowerOn);
    assert.deepEqual([again.State, again.IP], ["Active", on.IP]);
    const still = await fixture.read(off.ID, ({ State }) => State === "Active");
    assert.equal(still.IsPowerOn, false);
  });

  test("a server that is created while its project is blocked ends blocked", async () => {
    const release = harness.brume.machines.hold("ensureDisk");
    const made = await theirs.client.createServer({ body: { Name: "late" } });
    await block(true);
    release();
    const blocked = await fixture.read(made.ID, ({ State }) => State !== "New");
    assert.equal(blocked.State, "Blocked");
    await fixture.read(made.ID, ({ IsPowerOn }) => !IsPowerOn);
    // Objects of a blocked project can be deleted.
    await fixture.remove(made.ID);
    await block(false);
  });

  test("a project with any object cannot be deleted, also with failed ones", async () => {
    const remove = () => harness.client.deleteProject({ path: { id: theirs.project } });
    for (const { ID } of await theirs.client.listServers()) await fixture.remove(ID);
    const made = await fixture.server();
    const { detail } = await refused(remove(), "project_in_use");
    assert.match(detail, /1 Servers/);
    await fixture.remove(made.ID);
    const release = harness.brume.machines.hold("ensureDisk");
    const failed = await theirs.client.createServer({ body: { Name: "failed" } });
    const [create] = await fixture.actions(failed.ID);
    await theirs.client.cancelAction({ path: { id: failed.ID, actionID: create?.ID ?? 0 } });
    release();
    await fixture.read(failed.ID, ({ State }) => State === "Failed");
    assert.equal((await theirs.client.readOwnProject()).Usage.Servers, 0);
    await refused(remove(), "project_in_use");
    await fixture.remove(failed.ID);
    await remove();
  });
});
