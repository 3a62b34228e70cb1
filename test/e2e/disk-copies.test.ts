/** Disk copies for backups of servers: an operator creates them for servers of any project. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { onSqlite, refused } from "../support/harness.ts";
import { createServerApiFixture } from "../support/serverapifixture.ts";

onSqlite("disk copies", (harness) => {
  const fixture = createServerApiFixture(harness);

  test("can be created of a server that is on or off, and removed; the audit has each request", async () => {
    const { ID: ServerID } = await fixture.server();
    // A simulated server has no folder.
    assert.deepEqual(await harness.client.createDiskCopy({ body: { ServerID } }), { ServerID, Folder: null });
    await fixture.act(ServerID, { Type: "PowerOff" });
    assert.deepEqual(await harness.client.createDiskCopy({ body: { ServerID } }), { ServerID, Folder: null });
    await harness.client.deleteDiskCopies({});
    const audit = await harness.client.listAudit({ query: { limit: 10 } });
    const own = audit.filter(({ Operation }) => Operation.includes("DiskCop"));
    assert.deepEqual(
      own.map(({ Operation, Status }) => `${Operation} ${Status}`),
      ["deleteDiskCopies 200", "createDiskCopy 200", "createDiskCopy 200"],
    );
  });

  test("need an existing server, a working driver and the scope", async () => {
    await refused(harness.client.createDiskCopy({ body: { ServerID: 99_999 } }), "server_not_found");
    const { ID: ServerID } = await fixture.server();
    const withoutAdmin = await harness.as(["server:write", "server:read"]);
    await refused(withoutAdmin.client.createDiskCopy({ body: { ServerID } }), "scope_missing");
    await refused(withoutAdmin.client.deleteDiskCopies({}), "scope_missing");
    harness.brume.machines.fail("holdDisks", 1);
    // A dry run creates nothing.
    await harness.client.createDiskCopy({ body: { ServerID } }, { dryRun: true });
    const response = await harness.request("POST /disk-copy", { ServerID });
    assert.equal(response.code, "engine_unavailable", response.text);
    harness.brume.machines.fail("releaseDisks", 1);
    await harness.client.deleteDiskCopies({}, { dryRun: true });
    await refused(harness.client.deleteDiskCopies({}), "engine_unavailable");
  });
});
