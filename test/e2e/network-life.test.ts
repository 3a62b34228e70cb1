/**
 * The life cycle of a public network (docs/spec.md#public-network, #public-network-and-link-states, #public-network-endpoints): creation,
 * changes, deletion and events.
 */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Event } from "@brume/api/event.ts";
import type { PublicNetwork } from "@brume/api/network.ts";
import { onEveryDatabase, refused } from "../support/harness.ts";
import { assertNotVisible, createMovableClock, isApplied, useNetworkFixture } from "../support/networkfixture.ts";

const clock = createMovableClock();
const brief = (events: readonly Event[]) => events.map(({ Type, ResourceID }) => `${Type} ${ResourceID}`);

onEveryDatabase(
  "public networks",
  (harness) => {
    const fixture = useNetworkFixture(harness, clock);
    const path = ({ Id }: PublicNetwork) => ({ id: Id });
    describe("from creation to deletion", () => {
      test("the response contains the network, which already works", async () => {
        const made = await harness.client.createPublicNetwork({
          body: { Name: "dmz", NetworkCapacity: "29", Bandwidth: 100, DCLocation: "local", Labels: { env: "prod" } },
        });
        assert.deepEqual(
          { ...made, Id: 0, DateCreate: "" },
          {
            Id: 0,
            Name: "dmz",
            State: "Active",
            Mask: "255.255.255.248",
            Gateway: "10.64.0.1",
            CIDR: "10.64.0.0/29",
            EdgeExternalIp: "10.64.255.2",
            LinkedServers: [],
            IsDHCP: true,
            DCLocation: "Local",
            NetworkCapacity: "29",
            Type: "PublicClient",
            Bandwidth: 100,
            Firewall: { Enabled: false, DefaultRuleAction: "Deny", Rules: [], ConfirmBy: null },
            Vpn: { Tunnels: [] },
            DateCreate: "",
            Generation: 1,
            AppliedGeneration: 1,
            Error: null,
            CIDR6: null,
            Gateway6: null,
            Labels: { env: "prod" },
          },
        );
        assert.deepEqual(await harness.client.readPublicNetwork({ path: path(made) }), made);
        assert.ok(harness.brume.router.images().some(({ id }) => id === made.Id));
      });

      test("the generation counts each change, and only changes", async () => {
        const made = await fixture.network();
        const edit = (body: object, options = {}) =>
          harness.client.raw.updatePublicNetwork({ path: path(made), body }, options);
        const tag = (await harness.client.raw.readPublicNetwork({ path: path(made) })).etag;
        const same = await edit({ Name: made.Name, Bandwidth: made.Bandwidth, Labels: {} });
        assert.deepEqual([same.answer, same.etag], [made, tag]);
        const faster = await edit({ Bandwidth: 200, Name: "edge" });
        const { Name, Bandwidth, Generation, AppliedGeneration } = faster.answer;
        assert.deepEqual([Name, Bandwidth, Generation, AppliedGeneration], ["edge", 200, 2, 2]);
        assert.notEqual(faster.etag, tag);
        const image = harness.brume.router.images().find(({ id }) => id === made.Id);
        assert.deepEqual([image?.bandwidth, image?.generation], [200, 2]);
        const labelled = await edit({ Labels: { a: "b" } });
        assert.deepEqual([labelled.answer.Labels, labelled.answer.AppliedGeneration], [{ a: "b" }, 2]);
        assert.notEqual(labelled.etag, faster.etag);
        assert.deepEqual((await edit({ Labels: {} })).answer.Labels, {});
        await refused(edit({ Name: "late" }, { ifMatch: tag ?? "" }), "etag_mismatch");
        await refused(edit({ Name: "", Bandwidth: 0 }), "validation_failed", {
          "/Name": "too_short",
          "/Bandwidth": "out_of_range",
        });
        await refused(edit({ Bandwidth: 10_001 }), "validation_failed", { "/Bandwidth": "out_of_range" });
      });

      test("events come in order, with the object and without secrets", async () => {
        await fixture.newEvents();
        const { client } = harness;
        const made = await client.raw.createPublicNetwork({ body: { Name: "told" } });
        const at = path(made.answer);
        const edited = await client.raw.updatePublicNetwork({ path: at, body: { Bandwidth: 7 } });
        await client.configureVpn({
          path: at,
          body: { Tunnels: [{ Name: "a", PeerNetwork: "10.9.0.0/24", PeerEndpoint: "192.0.2.1" }] },
        });
        await client.deletePublicNetwork({ path: at }, { wait: 60 });
        await fixture.untilEvent(({ Type, ResourceID }) => Type === "publicnetwork.deleted" && ResourceID === at.id);
        const events = (await fixture.newEvents()).filter(({ Resource }) => Resource === "publicnetwork");
        assert.deepEqual(
          events.map(({ Type }) => Type.replace("publicnetwork.", "")),
          ["created", "applied", "changed", "applied", "changed", "applied", "changed", "deleted"],
        );
        const data = events.map((event) => event.Data as PublicNetwork | null);
        assert.deepEqual(
          data.map((one) => one && [one.State, one.Generation, one.AppliedGeneration]),
          [
            ["FromPool", 1, 0],
            ["Active", 1, 1],
            ["Active", 2, 1],
            ["Active", 2, 2],
            ["Active", 3, 2],
            ["Active", 3, 3],
            ["Deleting", 3, 3],
            null,
          ],
        );
        assert.deepEqual([events[0]?.RequestID, events[1]?.RequestID], [made.requestId, null]);
        assert.deepEqual([events[2]?.RequestID, events[2]?.TokenID], [edited.requestId, 1]);
        assert.deepEqual(
          data.map((one) => one?.Vpn.Tunnels.map(({ SharedKey, State }) => [SharedKey, State])),
          [[], [], [], [], [["", "New"]], [["", "Active"]], [["", "Active"]], undefined],
        );
        const kept = await client.listAudit({ query: { resource: `publicnetwork:${at.id}` } });
        assert.deepEqual(
          kept.map(({ Operation }) => Operation),
          ["deletePublicNetwork", "configureVpn", "updatePublicNetwork", "createPublicNetwork"],
        );
        assert.equal((kept[1]?.After as PublicNetwork | undefined)?.Vpn.Tunnels[0]?.SharedKey, "");
      });

      test("nothing is left of a deleted network", async () => {
        const made = await fixture.network();
        const etag = (await harness.client.raw.readPublicNetwork({ path: path(made) })).etag ?? "";
        await refused(
          harness.client.deletePublicNetwork({ path: path(made) }, { ifMatch: '"publicnetwork-1-1"' }),
          "etag_mismatch",
        );
        await harness.client.deletePublicNetwork({ path: path(made) }, { dryRun: true, ifMatch: etag });
        await harness.client.deletePublicNetwork({ path: path(made) }, { ifMatch: etag });
        await assertNotVisible(harness, made.Id);
        assert.ok(!harness.brume.router.images().some(({ id }) => id === made.Id));
        const rows = harness.brume.store.read.selectFrom("task").select("id").where("subject_id", "=", made.Id);
        assert.deepEqual(await rows.where("name", "=", "network.apply").execute(), [], "the reconciler is gone");
      });

      test("a network that is being deleted can only be read and deleted again", async () => {
        const made = await fixture.network();
        harness.brume.router.broken = true;
        const remove = () => harness.request(`DELETE /publicnetwork/${made.Id}`, undefined, { Prefer: "wait=0" });
        assert.equal((await remove()).status, 200);
        assert.equal((await remove()).status, 200);
        const going = await fixture.read(made.Id);
        assert.deepEqual([going.State, going.CIDR], ["Deleting", made.CIDR]);
        const body = { Name: "x" };
        await refused(harness.client.updatePublicNetwork({ path: path(made), body }), "action_not_allowed");
        await refused(harness.client.configureFirewall({ path: path(made), body: {} }), "action_not_allowed");
        await refused(harness.client.configureVpn({ path: path(made), body: { Tunnels: [] } }), "action_not_allowed");
        await fixture.newEvents();
        harness.brume.router.broken = false;
        await fixture.untilEvent(({ Type, ResourceID }) => Type === "publicnetwork.deleted" && ResourceID === made.Id);
        assert.deepEqual(brief(await fixture.newEvents()), [`publicnetwork.deleted ${made.Id}`]);
      });

      test("a network with servers cannot be deleted", async () => {
        const made = await fixture.network();
        await fixture.server(made.Id);
        const error = await refused(harness.client.deletePublicNetwork({ path: path(made) }), "network_in_use");
        assert.match(error.detail, /server \d/);
        assert.equal((await fixture.read(made.Id)).State, "Active");
      });

      test("a network that the router rejects shows the error, and is created later", async () => {
        harness.brume.router.broken = true;
        const made = await harness.client.createPublicNetwork({ body: { Name: "late" } }, { wait: 1 });
        assert.deepEqual([made.State, made.AppliedGeneration], ["FromPool", 0]);
        const failing = await fixture.read(made.Id, (one) => one.Error !== null);
        assert.deepEqual([failing.Error?.code, failing.Error?.type], ["apply_failed", "/docs#apply_failed"]);
        assert.match(failing.Error?.detail ?? "", /refuses/);
        harness.brume.router.broken = false;
        assert.ok(isApplied(await fixture.untilApplied(made.Id)));
      });
    });

    describe("safe requests", () => {
      test("a dry run returns the result and has no effect", async () => {
        await fixture.newEvents();
        const was = await harness.client.listPublicNetworks();
        const images = JSON.stringify(harness.brume.router.images());
        const dry = await harness.client.createPublicNetwork({ body: { Name: "dry" } }, { dryRun: true });
        assert.deepEqual([dry.Id, dry.State, dry.Generation], [0, "FromPool", 1]);
        const first = was[0];
        assert.ok(first);
        const faster = await harness.client.updatePublicNetwork(
          { path: path(first), body: { Bandwidth: 9 } },
          { dryRun: true },
        );
        assert.deepEqual([faster.Bandwidth, faster.Generation], [9, first.Generation + 1]);
        await harness.client.deletePublicNetwork({ path: path(first) }, { dryRun: true });
        await refused(
          harness.client.createPublicNetwork({ body: { Name: "dry", DCLocation: "Mars" } }, { dryRun: true }),
          "validation_failed",
          { "/DCLocation": "unknown_reference" },
        );
        assert.deepEqual(await harness.client.listPublicNetworks(), was);
        assert.deepEqual([await fixture.newEvents(), JSON.stringify(harness.brume.router.images())], [[], images]);
        const real = await harness.client.createPublicNetwork({ body: { Name: "dry" } });
        assert.deepEqual(
          { ...dry, Id: 0, State: "", AppliedGeneration: 0, DateCreate: "" },
          { ...real, Id: 0, State: "", AppliedGeneration: 0, DateCreate: "" },
        );
      });

      test("a repeat with the same key returns the same network", async () => {
        const headers = { "Idempotency-Key": "order-1" };
        const order = (body: object, more = {}) =>
          harness.request("POST /publicnetwork", body, { ...headers, ...more });
        const first = await order({ Name: "once" });
        const again = await order({ name: "once" });
        assert.deepEqual([again.text, again.headers.get("idempotency-replayed")], [first.text, "true"]);
        const { Id } = first.json as PublicNetwork;
        await harness.client.updatePublicNetwork({ path: { id: Id }, body: { Bandwidth: 5 } });
        const now = await order({ Name: "once" }, { Prefer: "wait=5" });
        assert.deepEqual([(now.json as PublicNetwork).Id, (now.json as PublicNetwork).Bandwidth], [Id, 5]);
        assert.equal((await order({ Name: "twice" })).code, "idempotency_key_conflict");
        assert.equal((await harness.client.listPublicNetworks({ query: { name: "once" } })).length, 1);
      });

      test("a client can choose not to wait", async () => {
        harness.brume.router.broken = true;
        const response = await harness.request("POST /publicnetwork", { Name: "now" }, { Prefer: "wait=0" });
        const made = response.json as PublicNetwork;
        assert.deepEqual([made.State, made.AppliedGeneration], ["FromPool", 0]);
        assert.equal(response.headers.get("preference-applied"), "wait=0");
        harness.brume.router.broken = false;
        await fixture.untilApplied(made.Id);
        const waited = await harness.request(`PUT /publicnetwork/${made.Id}`, { Bandwidth: 1 }, { Prefer: "wait=30" });
        assert.equal(waited.headers.get("preference-applied"), "wait=30");
        assert.equal((waited.json as PublicNetwork).AppliedGeneration, 2);
      });

      test("the forms of existing clients are accepted", async () => {
        const form = await harness.request(
          "POST /publicnetwork",
          "name=form&networkcapacity=%2F28&isdhcp=no&Bandwidth=50",
        );
        const { Name, NetworkCapacity, IsDHCP, Bandwidth } = form.json as PublicNetwork;
        assert.deepEqual([Name, NetworkCapacity, IsDHCP, Bandwidth], ["form", "28", false, 50]);
        const relaxed = await harness.request(
          "POST /publicnetwork",
          "{'Name': 'relaxed', 'NetworkCapacity': 16, 'IsDHCP': True}",
        );
        assert.equal((relaxed.json as PublicNetwork).NetworkCapacity, "28");
        for (const made of [form, relaxed])
          await harness.client.deletePublicNetwork({ path: path(made.json as PublicNetwork) });
      });
    });
  },
  { clock },
);
