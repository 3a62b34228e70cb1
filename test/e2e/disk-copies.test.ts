/** Disk copies, from which a backup takes servers' disks: asked for by an operator, of servers of any project. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { onSqlite, refused } from "../support/harness.ts";
import { createServerScene } from "../support/serverservice.ts";

onSqlite("disk copies", (stage) => {
  const scene = createServerScene(stage);

  test("are made of a server that is on or off, and removed together", async () => {
    const { ID: ServerID } = await scene.server();
    // A simulated server has no folder.
    assert.deepEqual(await stage.client.createDiskCopy({ body: { ServerID } }), { ServerID, Folder: null });
    await scene.act(ServerID, { Type: "PowerOff" });
    assert.deepEqual(await stage.client.createDiskCopy({ body: { ServerID } }), { ServerID, Folder: null });
    await stage.client.deleteDiskCopies({});
    const rows = await stage.client.listAudit({ query: { limit: 10 } });
    assert.ok(rows.some(({ Operation }) => Operation === "createDiskCopy"));
  });

  test("need a server that is there, machines that answer, and the scope", async () => {
    await refused(stage.client.createDiskCopy({ body: { ServerID: 99_999 } }), "server_not_found");
    const { ID: ServerID } = await scene.server();
    const somebody = await stage.as(["server:write", "server:read"]);
    await refused(somebody.client.createDiskCopy({ body: { ServerID } }), "scope_missing");
    await refused(somebody.client.deleteDiskCopies({}), "scope_missing");
    stage.world.machines.fail("holdDisks", 1);
    // Nothing is made by a question whether it would be.
    await stage.client.createDiskCopy({ body: { ServerID } }, { dryRun: true });
    const response = await stage.ask("POST /disk-copy", { ServerID });
    assert.equal(response.status, 500);
  });
});
