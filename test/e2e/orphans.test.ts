/**
 * Orphans: servers, images and snapshots on the host that the database does not contain, as after a restore. They are kept and switched
 * off, and their ids are not used again, until an operator adopts or removes them.
 */
import assert from "node:assert/strict";
import { before, describe, test } from "node:test";
import type { Orphan } from "@brume/api/orphan.ts";
import { deleteLink, listLinksOfServer } from "../../service/src/network/linktable.ts";
import { deleteServer, findAnyServer } from "../../service/src/server/table.ts";
import { onEveryDatabase, refused } from "../support/harness.ts";
import { machine } from "../support/machinelab.ts";
import { createServerApiFixture, type ServerApiFixture } from "../support/serverapifixture.ts";
import { tiny } from "../support/testservice.ts";
import { until } from "../support/waituntil.ts";

onEveryDatabase("orphans", (harness) => {
  let fixture: ServerApiFixture;
  before(() => {
    fixture = createServerApiFixture(harness);
  });
  const statusOf = async (id: number) => (await harness.brume.machines.observe()).machines.find((one) => one.id === id);
  const orphanOf = async (number: number, kind: Orphan["Kind"] = "Server") =>
    (await harness.client.listOrphans()).find((one) => one.Kind === kind && one.Number === number);
  const found = (number: number, kind: Orphan["Kind"] = "Server") =>
    harness.client
      .waitFor(
        "listOrphans",
        {},
        { until: (all) => all.some((one) => one.Kind === kind && one.Number === number), timeout: 120_000 },
      )
      .then(() => orphanOf(number, kind))
      .then((one) => one ?? assert.fail("it is not listed"));
  const gone = (id: number) =>
    harness.client.waitFor("listOrphans", {}, { until: (all) => all.every(({ ID }) => ID !== id), timeout: 120_000 });
  /** Deletes the rows of a server, as after a restore of an earlier state. */
  const forget = (id: number) =>
    harness.brume.store.write(async (tx) => {
      for (const link of await listLinksOfServer(tx, id)) await deleteLink(tx, link.id);
      await tx.deleteFrom("task").where("subject", "=", "server").where("subject_id", "=", id).execute();
      await deleteServer(tx, id);
    });

  describe("a running server without a row", () => {
    let orphan: Orphan;
    let number: number;
    test("is kept, switched off and reported", async () => {
      const made = await fixture.server({ Name: "precious", CPU: 2, RAM: 1024, HDD: 20 });
      number = made.ID;
      harness.brume.machines.write(number, "all that there is");
      await fixture.newEvents();
      await forget(number);
      orphan = await found(number);
      const { CPU, RAM, HDD, Name, State } = orphan;
      assert.deepEqual([Name, CPU, RAM, HDD, State], ["precious", 2, 1024, 20, "Held"]);
      assert.deepEqual(await harness.client.readOrphan({ path: { id: orphan.ID } }), orphan);
      assert.ok(
        (await fixture.newEvents()).some(
          ({ Type, Data }) => Type === "orphan.created" && (Data as Orphan).Number === number,
        ),
      );
      await harness.client.waitFor(
        "readReadiness",
        {},
        {
          until: ({ Checks }) => Checks.some(({ Name, Detail }) => Name === "machine" && /1 on the host/.test(Detail)),
          timeout: 120_000,
        },
      );
      assert.match(await harness.client.readMetrics(), /^brume_orphans\{kind="Server"\} 1$/m);
      await until("it is off", async () => (await statusOf(number))?.power === "off");
      assert.equal(harness.brume.machines.read(number), "all that there is");
    });

    test("keeps its id reserved, also after a restart of the service", async () => {
      await harness.brume.restart();
      const next = await fixture.server();
      assert.ok(next.ID > number);
      assert.equal(harness.brume.machines.read(next.ID), "");
      // A folder that appears while the service is stopped.
      const far = machine({ id: next.ID + 1, name: "left behind" });
      await harness.brume.machines.ensureDisk(far, { image: tiny.name });
      harness.brume.machines.write(far.id, "of another");
      await harness.brume.restart();
      const after = await fixture.server();
      assert.ok(after.ID > far.id, `${after.ID} is given away`);
      assert.equal(harness.brume.machines.read(far.id), "of another");
    });

    test("is adopted with its id and its disk", async () => {
      const answer = await harness.client.adoptOrphan({ path: { id: orphan.ID }, body: {} });
      assert.deepEqual(answer, { ServerID: number, ImageID: null });
      await refused(harness.client.readOrphan({ path: { id: orphan.ID } }), "orphan_not_found");
      const server = await fixture.read(number);
      assert.deepEqual(
        [server.Name, server.State, server.IsPowerOn, server.CPU, server.RAM, server.HDD],
        ["precious", "Active", false, 2, 1024, 20],
      );
      assert.equal((await fixture.act(number, { Type: "PowerOn" })).State, "Completed");
      assert.equal(harness.brume.machines.read(number), "all that there is");
      assert.notEqual(server.AdminPassword, "");
      await fixture.remove(number);
      assert.equal(await statusOf(number), undefined);
    });
  });

  test("an orphan is removed on request, with its disk", async () => {
    const { ID: number } = await fixture.server();
    await forget(number);
    const orphan = await found(number);
    await harness.client.deleteOrphan({ path: { id: orphan.ID } });
    await gone(orphan.ID);
    assert.equal(await statusOf(number), undefined);
    await refused(harness.client.deleteOrphan({ path: { id: orphan.ID } }), "orphan_not_found");
  });

  test("an orphan that cannot be removed keeps no other waiting", async () => {
    const stuck = (await fixture.server()).ID;
    const other = (await fixture.server()).ID;
    for (const number of [stuck, other]) await forget(number);
    const [first, second] = [await found(stuck), await found(other)];
    harness.brume.machines.fail("remove", 1_000_000, "before", stuck);
    for (const { ID } of [first, second]) await harness.client.deleteOrphan({ path: { id: ID } });
    await gone(second.ID);
    assert.equal((await orphanOf(stuck))?.State, "Removing");
    harness.brume.machines.fail("remove", 0);
    await gone(first.ID);
  });

  test("a server that this database deleted is removed, but no other server with that id", async () => {
    const made = await fixture.server();
    const status = await statusOf(made.ID);
    const uuid = status?.label?.uuid ?? assert.fail("it has no label");
    await fixture.remove(made.ID);
    assert.equal(await findAnyServer(harness.brume.store.read, made.ID), undefined);
    const { machines } = harness.brume;
    // Restored with a backup of the disks.
    await machines.ensureDisk(machine({ id: made.ID, uuid }), { image: tiny.name });
    await until("it is removed", async () => (await statusOf(made.ID)) === undefined);
    await machines.ensureDisk(machine({ id: made.ID }), { image: tiny.name });
    const orphan = await found(made.ID);
    assert.equal(orphan.State, "Held");
    await harness.client.deleteOrphan({ path: { id: orphan.ID } });
    await gone(orphan.ID);
  });

  test("images and snapshots are found", async () => {
    const source = await fixture.server();
    const { machines, store } = harness.brume;
    machines.write(source.ID, "gold");
    const image = await harness.client.createImage({ body: { Name: "gold", ServerID: source.ID } }, { wait: 60 });
    await store.write((tx) => tx.deleteFrom("image").where("id", "=", image.ID).execute());
    await machines.ensureSnapshot(source.ID, "own-4000");
    const [whole, half] = [await found(image.ID, "Image"), await found(4000, "Snapshot")];
    assert.equal(machines.images().length, 2);
    await refused(harness.client.adoptOrphan({ path: { id: half.ID }, body: {} }), "action_not_allowed");
    await harness.client.deleteOrphan({ path: { id: half.ID } });
    await gone(half.ID);
    const adopted = await harness.client.adoptOrphan({ path: { id: whole.ID }, body: { Name: "gold again" } });
    assert.deepEqual(adopted, { ServerID: null, ImageID: image.ID });
    const made = await fixture.server({ ImageID: image.ID });
    assert.equal(machines.read(made.ID), "gold");
    const next = await harness.client.createImage({ body: { Name: "next", ServerID: source.ID } }, { wait: 60 });
    assert.ok(next.ID > 4000, `${next.ID} is given away`);
  });

  test("an orphan that exceeds quotas or capacity, or has no image, is not adopted", async () => {
    const { client, brume } = harness;
    const made = await fixture.server({ Name: "large", CPU: 4, RAM: 2048, HDD: 20 });
    await forget(made.ID);
    const orphan = await found(made.ID);
    const { ID: project } = await client.createProject({ body: { Name: "adopts", Quotas: { Servers: 0, Images: 0 } } });
    const path = { id: orphan.ID };
    const adopt = (more: object = {}) => client.adoptOrphan({ path, body: { ProjectID: project, ...more } });
    const allow = (Quotas: object) => client.updateProject({ path: { id: project }, body: { Quotas } });
    const detailOf = async (asked: Promise<unknown>, code: Parameters<typeof refused>[1]) => {
      const { detail } = await refused(asked, code);
      assert.deepEqual(await client.readOrphan({ path }), orphan, "it is as it was");
      return detail;
    };
    assert.match(await detailOf(adopt(), "quota_exceeded"), /^Servers: wanted 1, free 0, limit 0\.$/);
    await allow({ Servers: 1, RAM: 1024 });
    assert.match(await detailOf(adopt(), "quota_exceeded"), /^RAM: wanted 2048, free 1024, limit 1024\.$/);
    await allow({ Servers: 1, RAM: 4096 });

    brume.machines.leave(0);
    await until("the service sees it", async () => (await client.listLocations())[0]?.Capacity.FreeHDD === 0);
    assert.match(await detailOf(adopt(), "no_capacity"), /^HDD \(GB\): wanted 20, free 0/);
    brume.machines.leave(65_536);
    await until("the service sees it", async () => (await client.listLocations())[0]?.Capacity.FreeHDD !== 0);

    await brume.store.write((tx) =>
      tx.updateTable("orphan").set({ image: "own-4711" }).where("id", "=", orphan.ID).execute(),
    );
    await refused(adopt(), "validation_failed", { "/ImageID": "field_required" });
    await refused(adopt({ ImageID: 4711 }), "validation_failed", { "/ImageID": "unknown_reference" });
    const [stock] = await client.listImages();
    const answer = await adopt({ ImageID: stock?.ID });
    assert.deepEqual(answer, { ServerID: made.ID, ImageID: null });
    const row = await findAnyServer(brume.store.read, made.ID);
    assert.deepEqual([row?.project_id, row?.image_id, row?.guest], [project, stock?.ID, null]);

    const source = await fixture.server();
    const image = await client.createImage({ body: { Name: "gold", ServerID: source.ID } }, { wait: 60 });
    await brume.store.write((tx) => tx.deleteFrom("image").where("id", "=", image.ID).execute());
    const lost = await found(image.ID, "Image");
    await refused(client.adoptOrphan({ path: { id: lost.ID }, body: { ProjectID: project } }), "quota_exceeded");
    await client.deleteOrphan({ path: { id: lost.ID } });
    await gone(lost.ID);
  });

  test("an orphan cannot be adopted into an unknown project", async () => {
    const { ID: number } = await fixture.server();
    await forget(number);
    const orphan = await found(number);
    await refused(
      harness.client.adoptOrphan({ path: { id: orphan.ID }, body: { ProjectID: 9999 } }),
      "validation_failed",
      { "/ProjectID": "unknown_reference" },
    );
    await harness.client.deleteOrphan({ path: { id: orphan.ID } });
    await gone(orphan.ID);
  });
});
