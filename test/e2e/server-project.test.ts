/** Projects with servers (docs/spec.md#account-and-project): blocked and free again, and not deleted while anything is left. */
import assert from "node:assert/strict";
import { before, test } from "node:test";
import type { Server } from "@brume/api/server.ts";
import { onSqlite, refused, type Voice } from "../support/harness.ts";
import { createServerScene, type ServerScene } from "../support/serverservice.ts";

onSqlite("projects with servers", (stage) => {
  let theirs: Voice & { readonly project: number };
  let scene: ServerScene;
  before(async () => {
    theirs = await stage.neighbour();
    scene = createServerScene({ ...stage, client: theirs.client, world: stage.world });
  });
  const block = (IsBlocked: boolean) =>
    stage.client.updateProject({ path: { id: theirs.project }, body: { IsBlocked } });

  test("a blocked project's servers are off, and come back as they were", async () => {
    const on = await scene.server();
    const off = await scene.server();
    await scene.act(off.ID, { Type: "PowerOff" });
    stage.world.machines.delay("apply", 200);
    const running = await theirs.client.updateServer({ path: { id: on.ID }, body: { HDD: 20 } });
    const waiting = await scene.order(on.ID, { Type: "PowerOff" });
    await block(true);
    stage.world.machines.delay("apply", 0);
    const canceled = await scene.ended(waiting);
    assert.deepEqual([canceled.State, canceled.Error?.code], ["Canceled", "superseded"]);
    assert.equal((await scene.ended(running)).State, "Completed");
    const blocked = await scene.read(on.ID, ({ IsPowerOn }) => !IsPowerOn);
    assert.deepEqual([blocked.State, (await scene.read(off.ID)).State], ["Blocked", "Blocked"]);
    await refused(scene.order(on.ID, { Type: "PowerOn" }), "project_blocked");
    await refused(theirs.client.createServer({ body: { Name: "x" } }), "project_blocked");
    const events = await theirs.client.listEvents({
      query: { type: "server.changed", resource: `server:${on.ID}`, limit: 1000 },
    });
    assert.ok(events.some(({ Data }) => (Data as Server).State === "Blocked"));
    await block(false);
    const again = await scene.read(on.ID, ({ IsPowerOn }) => IsPowerOn);
    assert.deepEqual([again.State, again.IP], ["Active", on.IP]);
    const still = await scene.read(off.ID, ({ State }) => State === "Active");
    assert.equal(still.IsPowerOn, false);
  });

  test("one that is being made when its project is blocked is blocked when it is there", async () => {
    stage.world.machines.delay("ensureDisk", 200);
    const made = await theirs.client.createServer({ body: { Name: "late" } });
    await block(true);
    stage.world.machines.delay("ensureDisk", 0);
    const there = await scene.read(made.ID, ({ State }) => State !== "New");
    assert.equal(there.State, "Blocked");
    await scene.read(made.ID, ({ IsPowerOn }) => !IsPowerOn);
    // What a blocked project still may: to be cleared.
    await scene.remove(made.ID);
    await block(false);
  });

  test("a project that owns anything stays, also what has failed", async () => {
    const remove = () => stage.client.deleteProject({ path: { id: theirs.project } });
    for (const { ID } of await theirs.client.listServers()) await scene.remove(ID);
    const made = await scene.server();
    const { detail } = await refused(remove(), "project_in_use");
    assert.match(detail, /1 Servers/);
    await scene.remove(made.ID);
    stage.world.machines.delay("ensureDisk", 200);
    const failed = await theirs.client.createServer({ body: { Name: "failed" } });
    const [create] = await scene.actions(failed.ID);
    await theirs.client.cancelAction({ path: { id: failed.ID, actionID: create?.ID ?? 0 } }, { wait: 30 });
    stage.world.machines.delay("ensureDisk", 0);
    assert.equal((await scene.read(failed.ID)).State, "Failed");
    assert.equal((await theirs.client.readOwnProject()).Usage.Servers, 0);
    await refused(remove(), "project_in_use");
    await scene.remove(failed.ID);
    await remove();
  });
});
