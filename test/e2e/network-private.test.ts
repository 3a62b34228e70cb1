/**
 * Private networks (docs/spec.md#private-network, #private-network-image-and-tunnel-states,
 * #image-location-key-and-private-network-endpoints): addresses, errors and complete deletion.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Network } from "@brume/api/network.ts";
import { onSqlite, refused } from "../support/harness.ts";
import { createMovableClock, useNetworkFixture } from "../support/networkfixture.ts";

const clock = createMovableClock();

onSqlite(
  "private networks",
  (harness) => {
    const fixture = useNetworkFixture(harness, clock);
    const create = (body: object, options = {}) =>
      harness.client.createNetwork({ body: { Name: "back", ...body } }, { wait: 60, ...options });
    const imageOf = (id: number) => harness.brume.router.images().find((image) => image.id === id);

    test("are created as in the specification", async () => {
      const made = await create({ DCLocation: "Local", IsDHCP: false });
      assert.deepEqual(
        { ...made, ID: 6, DateCreate: "" },
        {
          ID: 6,
          Name: "back",
          State: "Active",
          Mask: "255.255.255.0",
          Gateway: "",
          Bandwidth: 1000,
          LinkedServers: [],
          IsDHCP: false,
          DCLocation: "Local",
          NetworkCapacity: "24",
          Type: "PrivateClient",
          CIDR: "172.16.0.0/24",
          DateCreate: "",
          Error: null,
          Labels: {},
        },
      );
      const image = imageOf(made.ID);
      assert.deepEqual([image?.kind, image?.edgeAddress, image?.dhcp.enabled], ["private", null, false]);
    });

    test("get the requested block, or the next free one of the project", async () => {
      const { client } = await harness.neighbour();
      const cidr = async (body: object) => (await client.createNetwork({ body: { Name: "n", ...body } })).CIDR;
      assert.equal(await cidr({}), "172.16.0.0/24");
      assert.equal(await cidr({ CIDR: "172.16.1.0/25" }), "172.16.1.0/25");
      assert.equal(await cidr({}), "172.16.2.0/24");
      assert.equal(await cidr({ CIDR: "10.7.0.0/16", Gateway: "10.7.200.1" }), "10.7.0.0/16");
      assert.equal(await cidr({ Gateway: "192.168.44.254" }), "192.168.44.0/24");
      assert.equal(await cidr({ CIDR: "172.16.0.0/24" }), "172.16.0.0/24", "two may overlap");
      assert.equal(await cidr({ CIDR: "192.168.0.8/29", Gateway: "" }), "192.168.0.8/29");
    });

    test("are rejected with the invalid field", async () => {
      const errors: [object, string, string][] = [
        [{ CIDR: "10.0.0.0/15" }, "/CIDR", "format_invalid"],
        [{ CIDR: "10.0.0.0/30" }, "/CIDR", "format_invalid"],
        [{ CIDR: "8.8.8.0/24" }, "/CIDR", "format_invalid"],
        [{ CIDR: "172.32.0.0/24" }, "/CIDR", "format_invalid"],
        [{ CIDR: "fd00::/64" }, "/CIDR", "format_invalid"],
        [{ CIDR: "10.0.0.0-10.0.0.255" }, "/CIDR", "format_invalid"],
        [{ CIDR: "10.0.0.1" }, "/CIDR", "format_invalid"],
        [{ CIDR: "all of it" }, "/CIDR", "format_invalid"],
        [{ Gateway: "8.8.8.8" }, "/Gateway", "format_invalid"],
        [{ Gateway: "10.0.0.0/24" }, "/Gateway", "format_invalid"],
        [{ Gateway: "10.0.1.1", CIDR: "10.0.0.0/24" }, "/Gateway", "format_invalid"],
        [{ Gateway: "10.0.0.0" }, "/Gateway", "format_invalid"],
        [{ Gateway: "10.0.0.255" }, "/Gateway", "format_invalid"],
        [{ DCLocation: "Mars" }, "/DCLocation", "unknown_reference"],
        [{ Name: "" }, "/Name", "field_required"],
        [{ Name: "<b>" }, "/Name", "format_invalid"],
      ];
      for (const [body, pointer, code] of errors) await refused(create(body), "validation_failed", { [pointer]: code });
      assert.match(
        (await refused(create({ DCLocation: "Mars" }), "validation_failed")).message,
        /of Local, not "Mars"/,
      );
    });

    test("support edits, events, dry runs and repeats", async () => {
      await fixture.newEvents();
      const before = await harness.client.listNetworks();
      const dry = await create({ Name: "dry" }, { dryRun: true });
      assert.deepEqual([dry.ID, dry.State, await harness.client.listNetworks()], [0, "New", before]);
      const headers = { "Idempotency-Key": "private-1" };
      const first = await harness.request("POST /network", { Name: "once", Labels: { a: "" } }, headers);
      const again = await harness.request("POST /network", { Name: "once", Labels: { a: "" } }, headers);
      assert.deepEqual([again.text, again.headers.get("idempotency-replayed")], [first.text, "true"]);
      const { ID: id } = first.json as Network;
      await harness.client.waitFor("readNetwork", { path: { id } });
      const { answer, etag } = await harness.client.raw.readNetwork({ path: { id } });
      assert.deepEqual(await harness.client.updateNetwork({ path: { id }, body: { Name: "once" } }), answer);
      const edited = await harness.client.updateNetwork(
        { path: { id }, body: { Name: "twice", Labels: {} } },
        { ifMatch: etag ?? "" },
      );
      assert.deepEqual([edited.Name, edited.Labels], ["twice", {}]);
      await refused(harness.client.updateNetwork({ path: { id }, body: {} }, { ifMatch: etag ?? "" }), "etag_mismatch");
      await harness.client.deleteNetwork({ path: { id } }, { wait: 60 });
      const events = (await fixture.newEvents()).map(({ Type, ResourceID, Data }) => [
        Type,
        ResourceID,
        (Data as Network | null)?.State,
      ]);
      assert.deepEqual(events, [
        ["network.created", id, "New"],
        ["network.changed", id, "Active"],
        ["network.changed", id, "Active"],
        ["network.deleted", id, undefined],
      ]);
      assert.equal(imageOf(id), undefined);
      for (const send of [
        () => harness.client.readNetwork({ path: { id } }),
        () => harness.client.updateNetwork({ path: { id }, body: {} }),
        () => harness.client.deleteNetwork({ path: { id } }),
      ])
        await refused(send(), "network_not_found");
    });

    test("with servers cannot be deleted, and public networks are not among them", async () => {
      const made = await fixture.network();
      await refused(harness.client.readNetwork({ path: { id: made.Id } }), "network_not_found");
      const inner = await create({});
      await refused(harness.client.readPublicNetwork({ path: { id: inner.ID } }), "public_network_not_found");
      assert.notEqual(inner.ID, made.Id);
      const other = await harness.neighbour();
      await refused(other.client.readNetwork({ path: { id: inner.ID } }), "network_not_found");
      await refused(other.client.deleteNetwork({ path: { id: inner.ID } }), "network_not_found");
      assert.deepEqual(await other.client.listNetworks(), []);
    });
  },
  { clock },
);
