/**
 * Groups of servers (docs/spec.md#server-group, #server-group-states, #server-endpoints, #atomic-groups-are-all-or-none), and many at once
 * (docs/spec.md#addresses-are-unique, #quotas-hold-under-concurrency).
 */
import assert from "node:assert/strict";
import { before, describe, test } from "node:test";
import type { Batch } from "@brume/api/batch.ts";
import type { Problem } from "@brume/api/errors.ts";
import { onEveryDatabase, refused } from "../support/harness.ts";
import { createMovableClock } from "../support/networkfixture.ts";
import { runsOf } from "../support/random.ts";
import { createServerApiFixture, pass, type ServerApiFixture, tracesOf } from "../support/serverapifixture.ts";

const clock = createMovableClock();

onEveryDatabase(
  "groups",
  (harness) => {
    let fixture: ServerApiFixture;
    before(() => {
      fixture = createServerApiFixture(harness);
    });
    const make = (body: object) => harness.client.createBatch({ body }, { wait: 60 });
    const namesOf = ({ Servers }: Batch) => Servers.map(({ Name, HostName }) => `${Name} ${HostName}`);

    describe("creation", () => {
      test("by number, by names, one by one", async () => {
        const counted = await make({
          Name: "node-{n}",
          HostName: "n{n}",
          Count: 2,
          RAM: 256,
          HDD: 2,
          Labels: { a: "b" },
        });
        assert.deepEqual([counted.State, counted.Policy, counted.Errors], ["Active", "Atomic", []]);
        assert.deepEqual(namesOf(counted), ["node-1 n1", "node-2 n2"]);
        assert.ok(
          counted.Servers.every((one) => one.BatchID === counted.ID && one.State === "Active" && one.RAM === 256),
        );
        assert.deepEqual(counted.Servers[0]?.Labels, { a: "b" });
        assert.deepEqual(namesOf(await make({ Name: "plain", Count: 2 })), ["plain-1 plain-1", "plain-2 plain-2"]);
        assert.deepEqual(namesOf(await make({ Names: ["x", "y"] })), ["x x", "y y"]);
        const single = await make({ RAM: 128, Servers: [{ Name: "a" }, { Name: "b", RAM: 256 }] });
        assert.deepEqual(
          single.Servers.map(({ RAM }) => RAM),
          [128, 256],
        );
        const listed = await harness.client.listServers({ query: { batch: counted.ID } });
        assert.deepEqual(
          listed.map(({ ID }) => ID),
          counted.Servers.map(({ ID }) => ID),
        );
      });

      test("errors name the element, and nothing is created", async () => {
        const before = (await harness.client.listServers()).length;
        await refused(make({ Names: ["a"], Count: 1 }), "batch_form_invalid");
        await refused(make({ Name: "a" }), "batch_form_invalid");
        await refused(
          make({ Servers: [{ Name: "a" }, { CPU: 1 }, { Name: "c", ImageID: "none" }] }),
          "validation_failed",
          {
            "/Servers/1/Name": "field_required",
          },
        );
        await refused(make({ Servers: [{ Name: "a" }, { Name: "c", ImageID: "none" }] }), "validation_failed", {
          "/Servers/1/ImageID": "unknown_reference",
        });
        await refused(make({ Name: "many", Count: 100, CPU: 64 }), "quota_exceeded");
        assert.equal((await harness.client.listServers()).length, before);
      });

      test("addresses and capacity are checked for the network as a whole", async () => {
        const network = await harness.client.createPublicNetwork({ body: { Name: "small" } }, { wait: 60 });
        const NetworkID = network.Id;
        const NetworkIP = network.CIDR.replace(/\d+\/\d+$/, (end) => String(Number.parseInt(end, 10) + 5));
        const detailOf = async (body: object) => {
          const response = await harness.request("POST /server-batch", { Name: "p", NetworkID, ...body });
          return (response.json as Problem).detail;
        };
        assert.equal(
          await detailOf({ Count: 2, NetworkIP }),
          `More than one server of the group requests ${NetworkIP}.`,
        );
        const full = (wanted: number, free: number) =>
          `Addresses in network ${NetworkID} (${network.CIDR}): requested ${wanted}, free ${free}, limit 5.`;
        assert.equal(await detailOf({ Count: 6 }), full(6, 5));
        const { Servers } = await make({ Name: "p", NetworkID, NetworkIP, Count: 1 });
        assert.equal(
          await detailOf({ Count: 1, NetworkIP }),
          `${NetworkIP} is already used by another server in network ${NetworkID}.`,
        );
        assert.equal(await detailOf({ Count: 5 }), full(5, 4));
        await harness.client.deleteBatch({ body: { ServerIDs: Servers.map(({ ID }) => ID) } }, { wait: 60 });
        await harness.client.deletePublicNetwork({ path: { id: NetworkID } }, { wait: 60 });
      });

      test("with BestEffort each server succeeds or fails alone", async () => {
        const [first] = await harness.client.listServers();
        const made = await make({
          Policy: "BestEffort",
          Servers: [
            { Name: "good" },
            { Name: "bad", ImageID: "none" },
            { Name: "taken", NetworkIP: first?.IP ?? "" },
            { Name: "vast", CPU: 64, RAM: 262_144 },
            { Name: "fine" },
            { Name: "odd", CPU: 99, HostName: "-" },
          ],
        });
        assert.deepEqual([made.State, namesOf(made)], ["Active", ["good good", "fine fine"]]);
        assert.deepEqual(
          made.Errors.map(({ Index, Error }) => [Index, (Error as Problem).code]),
          [
            [1, "validation_failed"],
            [2, "address_taken"],
            [3, "quota_exceeded"],
            [5, "validation_failed"],
          ],
        );
        assert.deepEqual(
          (made.Errors[3]?.Error as Problem | undefined)?.errors.map(({ pointer }) => pointer),
          ["/Servers/5/CPU", "/Servers/5/HostName"],
        );
        const invalid = (more: object) =>
          make({ Policy: "BestEffort", Servers: [{ Name: "x" }, { CPU: 99 }], ...more });
        await refused(invalid({ RAM: "much" }), "validation_failed", {
          "/RAM": "type_mismatch",
          "/Servers/1/CPU": "out_of_range",
          "/Servers/1/Name": "field_required",
        });
        await refused(invalid({ Policy: "Atomic" }), "validation_failed", {
          "/Servers/1/CPU": "out_of_range",
          "/Servers/1/Name": "field_required",
        });
        await refused(make({ Policy: "BestEffort", Servers: [{ Name: "x", ImageID: "none" }] }), "validation_failed");
        const rows = await harness.brume.store.read
          .selectFrom("server")
          .select("id")
          .where("name", "=", "taken")
          .execute();
        assert.deepEqual(rows, []);
      });

      test("a dry run returns them without ids", async () => {
        const dry = await harness.client.createBatch({ body: { Name: "dry", Count: 2 } }, { dryRun: true });
        assert.deepEqual(
          [dry.ID, dry.Servers.map(({ ID, BatchID }) => [ID, BatchID])],
          [
            0,
            [
              [0, 0],
              [0, 0],
            ],
          ],
        );
        assert.deepEqual(await harness.client.listServers({ query: { name: "dry*" } }), []);
      });
    });

    describe("with a failing VM", () => {
      test("an atomic group is undone completely", async () => {
        const { machines } = harness.brume;
        // One of the two already exists when the other fails.
        const made = await harness.client.createBatch({ body: { Names: ["one", "two"], Policy: "Atomic" } });
        const [, guilty] = made.Servers;
        assert.ok(guilty);
        const [create] = await fixture.actions(guilty.ID);
        machines.fail("ensureRunning", 100);
        await harness.client
          .cancelAction({ path: { id: guilty.ID, actionID: create?.ID ?? 0 } })
          .catch(() => assert.fail("it was made already"));
        machines.fail("ensureRunning", 0);
        const ended = [];
        for (const { ID } of made.Servers) ended.push(await fixture.read(ID, ({ State }) => State === "Failed"));
        assert.deepEqual(
          ended.map(({ Error }) => Error?.code),
          ["batch_undone", "superseded"],
        );
        await harness.client.deleteBatch({ body: { ID: made.ID } }, { wait: 60 });
        for (const { ID } of made.Servers) assert.deepEqual(await tracesOf(harness, ID), []);
      });

      test("with BestEffort the other servers stay", async () => {
        const { machines } = harness.brume;
        const release = machines.hold("ensureDisk");
        const made = await harness.client.createBatch({ body: { Names: ["one", "two"], Policy: "BestEffort" } });
        const [stays, goes] = made.Servers;
        assert.ok(stays && goes);
        const [create] = await fixture.actions(goes.ID);
        await harness.client.cancelAction({ path: { id: goes.ID, actionID: create?.ID ?? 0 } });
        release();
        await fixture.read(goes.ID, ({ State }) => State === "Failed");
        await fixture.read(stays.ID, ({ State }) => State === "Active");
        await harness.client.waitFor(
          "listEvents",
          { query: { resource: `batch:${made.ID}`, type: "batch.changed" } },
          { until: (events) => events.some(({ Data }) => (Data as Batch).State === "Active"), timeout: 120_000 },
        );
      });
    });

    describe("deletion", () => {
      test("as a group, in body or query", async () => {
        const [one, two] = [await make({ Name: "g", Count: 2 }), await make({ Name: "h", Count: 2 })];
        await harness.client.deleteBatch({ body: { ID: one.ID } }, { wait: 60 });
        assert.equal(
          (await harness.request(`DELETE /server-batch?ID=${two.ID}`, undefined, { Prefer: "wait=30" })).status,
          200,
        );
        for (const { ID } of [...one.Servers, ...two.Servers])
          await refused(harness.client.readServer({ path: { id: ID } }), "server_not_found");
        await refused(harness.client.deleteBatch({ body: { ID: one.ID } }), "batch_not_found");
        const deletedEvents = await harness.client.listEvents({
          query: { type: "batch.deleted", resource: `batch:${one.ID}` },
        });
        assert.equal(deletedEvents.length, 1);
      });

      test("all or none", async () => {
        const { Servers } = await make({ Name: "k", Count: 3 });
        const ids = Servers.map(({ ID }) => ID);
        const [first = 0, second = 0] = ids;
        await harness.client.updateServer({ path: { id: second }, body: { IsProtected: true } });
        const remove = (body: object) => harness.client.deleteBatch({ body }, { wait: 60 });
        await refused(remove({ ServerIDs: ids }), "server_protected");
        await refused(remove({ ServerIDs: [first, 99_999] }), "server_not_found");
        await refused(remove({ ID: 99_999 }), "batch_not_found");
        await refused(remove({ ID: 1, ServerIDs: ids }), "validation_failed", { "/ServerIDs": "fields_conflict" });
        await refused(remove({}), "validation_failed", { "/ID": "field_required" });
        assert.ok(
          (await harness.client.listServers({ query: { name: "k-*" } })).every(({ State }) => State === "Active"),
        );
        await harness.client.updateServer({ path: { id: second }, body: { IsProtected: false } });
        const query = `DELETE /server-batch?ServerIDs=${[...ids, first].join()}`;
        assert.equal((await harness.request(query, undefined, { Prefer: "wait=30" })).status, 200);
        assert.deepEqual(await harness.client.listServers({ query: { name: "k-*" } }), []);
      });
    });

    describe("many at once", () => {
      test("each gets its own addresses", async () => {
        const count = runsOf(50, 20);
        const requests = Array.from({ length: count }, (_, index) =>
          harness.client.createServer({ body: { Name: `crowd-${index}`, RAM: 128, HDD: 1 } }),
        );
        const made = await Promise.all(requests);
        const different = (values: readonly unknown[]) => new Set(values).size;
        assert.equal(different(made.map(({ IP }) => IP)), count);
        assert.equal(different(made.map(({ LinkedNetworks }) => LinkedNetworks[0]?.MAC)), count);
        assert.equal(different(made.map(({ ID }) => ID)), count);
        for (const { ID } of made) await fixture.read(ID, ({ State }) => State === "Active");
        await harness.client.deleteBatch({ body: { ServerIDs: made.map(({ ID }) => ID) } }, { wait: 60 });
      });

      test("groups and servers created, read, changed and deleted concurrently end in the requested states", async () => {
        const waited = { wait: 60 };
        const { client } = await harness.neighbour({ Servers: 100, CPU: 200, RAM: 100_000, HDD: 1000 });
        const read = () => Promise.all([client.listServers(), client.listServers({ query: { limit: 5 } })]);
        const live = async (index: number) => {
          const body = { RAM: 128, HDD: 1, NetworkBandwidth: 10 };
          const { ID, Servers } = await client.createBatch({ body: { ...body, Name: `mix-${index}`, Count: 2 } });
          const [one, two] = Servers.map((server) => ({ path: { id: server.ID } }));
          assert.ok(one && two);
          const all = [
            client.updateServer({ ...one, body: { Labels: { index: String(index) }, RAM: 256 } }),
            client.startAction({ ...two, body: { Type: "PowerReboot" } }, waited),
            read(),
          ];
          await Promise.all(all);
          // Half are deleted as a group, the others while an action waits.
          if (index % 2 === 0) return client.deleteBatch({ body: { ID } }, waited);
          await Promise.all([
            client.startAction({ ...one, body: { Type: "PowerOff" } }),
            client.deleteServer(two, waited),
            read(),
          ]);
          return client.deleteBatch({ body: { ID } }, waited);
        };
        await Promise.all(Array.from({ length: runsOf(50, 10) }, (_, index) => live(index)));
        assert.deepEqual(await client.listServers(), []);
        const { Usage } = await client.readOwnProject();
        assert.deepEqual([Usage.Servers, Usage.CPU, Usage.RAM, Usage.HDD], [0, 0, 0, 0]);
      });

      test("quotas hold under concurrent requests", async () => {
        const neighbour = await harness.neighbour({ Servers: 5, RAM: 1024 });
        const response = await Promise.all(
          Array.from({ length: 20 }, () => neighbour.request("POST /server", { Name: "q", RAM: 256, HDD: 1 })),
        );
        const codes = response.map(({ status, code }) => code ?? status);
        assert.equal(codes.filter((code) => code === 200).length, 4);
        assert.ok(
          codes.every((code) => code === 200 || code === "quota_exceeded"),
          String(codes),
        );
        const [first] = await neighbour.client.listServers();
        const grow = (body: object) => neighbour.client.updateServer({ path: { id: first?.ID ?? 0 }, body });
        await refused(grow({ RAM: 384 }), "quota_exceeded");
        await grow({ RAM: 128 });
        const { Usage } = await neighbour.client.readOwnProject();
        assert.deepEqual([Usage.Servers, Usage.RAM], [4, 1024], "both sizes are held until the smaller one is there");
        await pass(harness, clock, 1);
      });

      test("the capacity of the host holds too", async () => {
        const locations = await harness.client.listLocations();
        const { FreeRAM, RAM, FreeCPU, CPU } = locations[0]?.Capacity ?? assert.fail();
        assert.ok(FreeRAM < RAM && FreeCPU < CPU);
        harness.brume.machines.fail("observe", 1000);
        assert.equal((await harness.client.listLocations())[0]?.Capacity.FreeRAM, 0);
        await refused(harness.client.createServer({ body: { Name: "late" } }), "engine_unavailable");
        harness.brume.machines.fail("observe", 0);
        const rich = await harness.neighbour({ RAM: 2_000_000_000 });
        await refused(
          rich.client.createServer({ body: { Name: "vast", RAM: Math.floor(RAM / 128) * 128 } }),
          "no_capacity",
        );
      });
    });
  },
  { clock },
);
