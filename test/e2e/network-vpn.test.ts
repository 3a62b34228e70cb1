/**
 * Tunnels of a public network (docs/spec.md#vpn-tunnel, #public-network-endpoints, #dry-run-changes-nothing,
 * #put-what-get-shows-changes-nothing, #secrets-are-never-shown): accepted lists, stored tunnels, and the configuration of the far end.
 */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { PublicNetwork } from "@brume/api/network.ts";
import type { Tunnel } from "@brume/api/vpn.ts";
import { onSqlite, refused } from "../support/harness.ts";
import { createMovableClock, errorsOf, useNetworkFixture } from "../support/networkfixture.ts";

const clock = createMovableClock();
const SharedKey = "Vw3kQ8zR1tYb6NcX2mHs7PdJ4gLf9aEu";
const keyOf = (byte: number) => Buffer.alloc(32, byte).toString("base64");
const office = { Name: "office", SharedKey, PeerNetwork: "10.0.0.0/24", PeerEndpoint: "203.0.113.50" };
const phone = { Name: "phone", Type: "WireGuard", PeerNetwork: "10.1.0.2", PeerPublicKey: keyOf(1) } as const;

onSqlite(
  "tunnels",
  (harness) => {
    const fixture = useNetworkFixture(harness, clock);
    const configure = (id: number, Tunnels: readonly object[], options = {}) =>
      harness.client.configureVpn({ path: { id }, body: { Tunnels: [...Tunnels] } }, options);
    const tunnelsOf = ({ Vpn }: PublicNetwork): Tunnel[] => Vpn.Tunnels;
    const imageOf = (id: number) => harness.brume.router.images().find((image) => image.id === id);

    describe("in a list", () => {
      test("get defaults for absent fields", async () => {
        const { Id: id, CIDR, EdgeExternalIp } = await fixture.network();
        const network = await configure(id, [
          { ...office, EncryptionType: "aes256", Mtu: "1400", Enabled: "true" },
          { Name: "bare", PeerNetwork: "192.168.7.9/24, 192.168.9.0/24", PeerEndpoint: "vpn.example.com" },
          phone,
        ]);
        assert.deepEqual([network.Generation, network.AppliedGeneration], [2, 2]);
        const [first, bare, wireguard] = tunnelsOf(network);
        assert.ok(first && bare && wireguard);
        assert.deepEqual(
          { ...first, Id: 0, PeerConfig: "" },
          {
            Id: 0,
            State: "Active",
            Name: "office",
            Enabled: true,
            Mtu: 1400,
            EncryptionType: "Aes256",
            SharedKey,
            PeerNetwork: "10.0.0.0/24",
            PeerEndpoint: "203.0.113.50",
            PeerIdentificator: "203.0.113.50",
            Type: "IPsec",
            LocalNetwork: CIDR,
            LocalIdentificator: EdgeExternalIp,
            IkeVersion: 2,
            DhGroup: 14,
            Digest: "Sha256",
            PerfectForwardSecrecy: true,
            PeerPublicKey: "",
            PublicKey: "",
            ListenPort: null,
            KeepAlive: null,
            PeerConfig: "",
            Labels: {},
          },
        );
        assert.match(bare.SharedKey, /^[A-Za-z0-9]{32}$/);
        assert.equal(bare.PeerNetwork, "192.168.7.0/24,192.168.9.0/24");
        const { EncryptionType, Digest, IkeVersion, DhGroup, PerfectForwardSecrecy, ListenPort, KeepAlive } = wireguard;
        assert.deepEqual(
          [EncryptionType, Digest, IkeVersion, DhGroup, PerfectForwardSecrecy, ListenPort, KeepAlive],
          ["", "", null, null, null, imageOf(id)?.wireguard?.listenPort, 25],
        );
        assert.deepEqual([wireguard.PeerNetwork, wireguard.SharedKey, wireguard.PeerEndpoint], ["10.1.0.2/32", "", ""]);
        assert.match(wireguard.PublicKey, /^[A-Za-z0-9+/]{43}=$/);
        const specs = imageOf(id)?.tunnels ?? [];
        assert.deepEqual(
          specs.map((one) => [one.id, one.type, one.mtu, one.type === "ipsec" ? one.sharedKey : one.presharedKey]),
          [
            [first.Id, "ipsec", 1400, SharedKey],
            [bare.Id, "ipsec", 1400, bare.SharedKey],
            [wireguard.Id, "wireguard", 1400, null],
          ],
        );
        const sealed = await harness.brume.store.read
          .selectFrom("network")
          .select("wireguard")
          .where("id", "=", id)
          .execute();
        const privateKey = imageOf(id)?.wireguard?.privateKey ?? "";
        assert.ok(privateKey !== "" && !Buffer.from(sealed[0]?.wireguard ?? []).includes(privateKey));
        const all = JSON.stringify([await harness.client.listEvents({ query: { limit: 1000 } }), network]);
        assert.ok(!all.includes(privateKey), "no response contains the edge's private key");
      });

      test("are matched by id, and can be changed, removed and reordered", async () => {
        const { Id: id } = await fixture.network();
        const made = tunnelsOf(
          await configure(id, [
            office,
            { ...phone, SharedKey: keyOf(9) },
            { ...office, Name: "third", PeerNetwork: "10.5.0.0/16", PeerEndpoint: "203.0.113.51" },
          ]),
        );
        const ids = made.map(({ Id }) => Id);
        const second = await configure(id, [
          { Id: ids[2], Enabled: false, Labels: { a: "b" } },
          { Id: ids[0], Name: "main office", Mtu: 1300, SharedKey: "" },
          { Name: "new", PeerNetwork: "10.7.0.0/16", PeerEndpoint: "any", PeerIdentificator: "road@example.com" },
        ]);
        const [third, main, fresh] = tunnelsOf(second);
        assert.deepEqual([third?.Id, main?.Id], [ids[2], ids[0]]);
        assert.ok(fresh && !ids.includes(fresh.Id), "an id is never used again");
        assert.deepEqual({ ...third, Enabled: true, Labels: {} }, made[2]);
        assert.deepEqual(
          [main?.Name, main?.Mtu, main?.SharedKey, main?.PeerNetwork],
          ["main office", 1300, SharedKey, "10.0.0.0/24"],
        );
        assert.deepEqual([fresh.PeerEndpoint, fresh.PeerIdentificator], ["any", "road@example.com"]);
        assert.deepEqual(
          imageOf(id)?.tunnels.map((one) => one.id),
          [third?.Id, main?.Id, fresh.Id],
        );
        assert.deepEqual(await harness.client.readPublicNetwork({ path: { id } }), second);
        const none = await configure(id, []);
        assert.deepEqual([tunnelsOf(none), imageOf(id)?.tunnels], [[], []]);
        await refused(configure(id, [{ Id: main?.Id }]), "validation_failed", { "/Tunnels/0/Id": "unknown_reference" });
      });

      test("change nothing if sent back as shown, with or without the keys", async () => {
        const { Id: id } = await fixture.network();
        await configure(id, [
          office,
          phone,
          { ...office, Name: "b", PeerNetwork: "10.8.0.0/16", PeerEndpoint: "any", PeerIdentificator: "b.example" },
        ]);
        const reader = await harness.as(["network:read"]);
        for (const { client } of [harness, reader]) {
          const was = await harness.client.raw.readPublicNetwork({ path: { id } });
          const shown = await client.readPublicNetwork({ path: { id } });
          await fixture.newEvents();
          const response = await harness.request(`PUT /publicnetwork/${id}/vpn`, shown.Vpn);
          assert.deepEqual([response.json, response.headers.get("etag")], [was.answer, was.etag]);
          // Meanwhile the poll sees that the tunnels are up, which no request caused.
          const caused = (await fixture.newEvents()).filter(({ Type }) => Type !== "tunnel.up");
          assert.deepEqual(caused, []);
        }
      });

      test("a change of labels alone is not applied to the router", async () => {
        const { Id: id } = await fixture.network();
        const made = await configure(id, [office, phone]);
        const [first, second] = tunnelsOf(made);
        assert.ok(first && second);
        const kept = { Id: second.Id, Name: second.Name };
        const labelled = await configure(id, [{ Id: first.Id, Name: first.Name, Labels: { site: "north" } }, kept]);
        assert.deepEqual(tunnelsOf(labelled)[0], { ...first, Labels: { site: "north" } });
        assert.deepEqual([labelled.Generation, labelled.AppliedGeneration], [made.Generation, made.Generation]);
        const slower = await configure(id, [{ Id: first.Id, Name: first.Name, Mtu: 1300 }, kept]);
        assert.deepEqual(slower.Generation, made.Generation + 1);
      });

      test("a dry run returns them without ids and without new secrets", async () => {
        const { Id: id } = await fixture.network();
        const was = await configure(id, [office]);
        const dry = await configure(
          id,
          [
            { Id: tunnelsOf(was)[0]?.Id, Mtu: 1200 },
            { ...phone },
            { ...office, SharedKey: undefined, Name: "x", PeerNetwork: "10.3.0.0/24", PeerEndpoint: "203.0.113.9" },
          ],
          { dryRun: true },
        );
        assert.deepEqual(
          tunnelsOf(dry).map(({ Id, SharedKey: key, Mtu }) => [Id, key, Mtu]),
          [
            [tunnelsOf(was)[0]?.Id, SharedKey, 1200],
            [0, "", 1400],
            [0, "", 1400],
          ],
        );
        assert.equal(tunnelsOf(dry)[1]?.PublicKey, "");
        assert.deepEqual(await harness.client.readPublicNetwork({ path: { id } }), was);
      });

      test("are accepted as forms and with old field names", async () => {
        const { Id: id } = await fixture.network();
        const form =
          "Tunnels[0].Name=form&Tunnels[0].PeerNetwork=10.0.0.0%2F24&Tunnels[0][PeerEndpoint]=203.0.113.50&tunnels[0].encryptiontype=TRIPLEDES";
        const response = await harness.request(`PUT /publicnetwork/${id}/vpn`, form);
        const [made] = tunnelsOf(response.json as PublicNetwork);
        assert.deepEqual([made?.Name, made?.EncryptionType, made?.Digest], ["form", "TripleDes", "Sha1"]);
        const relaxed = await harness.request(
          `PUT /publicnetwork/${id}/vpn`,
          `{'Tunnels': [{'Id': '${made?.Id}', 'Enabled': False}]}`,
        );
        assert.deepEqual(
          tunnelsOf(relaxed.json as PublicNetwork).map(({ Id, Enabled }) => [Id, Enabled]),
          [[made?.Id, false]],
        );
      });
    });

    describe("are rejected", () => {
      test("with all errors at once, each with its tunnel", async () => {
        const { Id: id } = await fixture.network();
        const put = (body: object) => harness.request(`PUT /publicnetwork/${id}/vpn`, body);
        assert.deepEqual(errorsOf((await put({})).text), [["/Tunnels", "field_required"]]);
        const response = await put({
          Tunnels: [
            {},
            { ...office, SharedKey: "short", Mtu: 575, DhGroup: 3, EncryptionType: "Des" },
            { ...office, Name: "x", PeerNetwork: "any", PeerEndpoint: "any" },
            { ...phone, PeerPublicKey: "no key", PeerEndpoint: "vpn.example.com", SharedKey: "Vw3kQ8zR1tYb6NcX" },
            { ...office, Name: "y", PeerNetwork: Array.from({ length: 17 }, (_, i) => `10.${i}.0.0/16`).join() },
            { ...office, Name: "z", SharedKey: "käse".repeat(5), KeepAlive: "often", LocalIdentificator: "%any" },
          ],
        });
        assert.equal(response.code, "validation_failed");
        assert.deepEqual(errorsOf(response.text), [
          ["/Tunnels/0/Name", "field_required"],
          ["/Tunnels/0/PeerEndpoint", "field_required"],
          ["/Tunnels/0/PeerNetwork", "field_required"],
          ["/Tunnels/1/DhGroup", "value_not_allowed"],
          ["/Tunnels/1/EncryptionType", "value_not_allowed"],
          ["/Tunnels/1/Mtu", "out_of_range"],
          ["/Tunnels/1/SharedKey", "too_short"],
          ["/Tunnels/2/PeerIdentificator", "field_required"],
          ["/Tunnels/2/PeerNetwork", "format_invalid"],
          ["/Tunnels/3/PeerEndpoint", "format_invalid"],
          ["/Tunnels/3/PeerPublicKey", "format_invalid"],
          ["/Tunnels/3/SharedKey", "format_invalid"],
          ["/Tunnels/4/PeerNetwork", "too_long"],
          ["/Tunnels/5/KeepAlive", "type_mismatch"],
          ["/Tunnels/5/LocalIdentificator", "format_invalid"],
          ["/Tunnels/5/SharedKey", "format_invalid"],
        ]);
        const { ModelState } = response.json as { ModelState: Record<string, string[]> };
        assert.match(ModelState["Tunnels[1].SharedKey"]?.[0] ?? "", /16 to 128/);
        assert.ok(
          !response.text.includes("Vw3kQ8zR1tYb6NcX") && !response.text.includes("käse"),
          "an error does not contain a key",
        );
        assert.equal((await fixture.read(id)).Generation, 1);
      });

      test("but not for fields of the other type", async () => {
        const { Id: id } = await fixture.network();
        const made = await harness.request(`PUT /publicnetwork/${id}/vpn`, {
          Tunnels: [
            { ...phone, EncryptionType: "Nonsense", DhGroup: 99 },
            { ...office, KeepAlive: 99_999 },
          ],
        });
        assert.equal(made.status, 200, made.text);
        const [first, second] = tunnelsOf(made.json as PublicNetwork);
        const edit = (Tunnels: readonly object[]) => harness.request(`PUT /publicnetwork/${id}/vpn`, { Tunnels });
        assert.equal((await edit([{ Id: first?.Id, DhGroup: 99 }, { Id: second?.Id }])).status, 200);
        const response = await edit([{ Id: first?.Id }, { Id: second?.Id, DhGroup: 32 }]);
        assert.deepEqual(errorsOf(response.text), [["/Tunnels/1/DhGroup", "value_not_allowed"]]);
        assert.match(response.text, /DhGroup must be one of 2, 5, 14, 15, 16, 19, 20, 31, not 32/);
      });

      test("if two of them conflict", async () => {
        const { Id: id, CIDR } = await fixture.network();
        const other = { ...office, Name: "other", PeerNetwork: "10.2.0.0/16", PeerEndpoint: "203.0.113.51" };
        const errorAt = (pointer: string, code: string) => ({ [`/Tunnels/1/${pointer}`]: code });
        await refused(
          configure(id, [office, { ...other, Name: "office" }]),
          "validation_failed",
          errorAt("Name", "fields_conflict"),
        );
        await refused(
          configure(id, [office, { ...other, PeerEndpoint: office.PeerEndpoint }]),
          "validation_failed",
          errorAt("PeerIdentificator", "fields_conflict"),
        );
        await refused(
          configure(id, [phone, { ...phone, Name: "b", PeerNetwork: "10.3.0.1" }]),
          "validation_failed",
          errorAt("PeerPublicKey", "fields_conflict"),
        );
        await refused(
          configure(id, [office, { ...other, PeerNetwork: "10.2.0.0/16,10.0.0.128/25" }]),
          "peer_network_overlap",
          errorAt("PeerNetwork", "peer_network_overlap"),
        );
        await refused(
          configure(id, [office, { ...other, PeerNetwork: CIDR }]),
          "peer_network_overlap",
          errorAt("PeerNetwork", "peer_network_overlap"),
        );
        await refused(configure(id, [{ ...office, LocalNetwork: "10.200.0.0/24" }]), "validation_failed", {
          "/Tunnels/0/LocalNetwork": "out_of_range",
        });
        const [made] = tunnelsOf(await configure(id, [office]));
        await refused(configure(id, [{ Id: made?.Id }, { Id: made?.Id }]), "validation_failed", {
          "/Tunnels/1/Id": "fields_conflict",
        });
        await refused(configure(id, [{ Id: made?.Id, Type: "WireGuard", PeerEndpoint: "" }]), "tunnel_type_fixed", {
          "/Tunnels/0/Type": "tunnel_type_fixed",
        });
        const elsewhere = await fixture.network();
        await refused(configure(elsewhere.Id, [{ Id: made?.Id }]), "validation_failed", {
          "/Tunnels/0/Id": "unknown_reference",
        });
        assert.equal(tunnelsOf(await configure(elsewhere.Id, [office])).length, 1, "networks can use the same peers");
      });

      test("if they exceed the quota", async () => {
        const neighbour = await harness.neighbour({ Tunnels: 2 });
        const { Id: id } = await neighbour.client.createPublicNetwork({ body: { Name: "two" } });
        const many = (count: number) =>
          Array.from({ length: count }, (_, i) => ({
            ...office,
            Name: `t${i}`,
            PeerNetwork: `10.${i}.0.0/16`,
            PeerEndpoint: `203.0.113.${i + 1}`,
          }));
        const { Vpn } = await neighbour.client.configureVpn({ path: { id }, body: { Tunnels: many(2) } });
        assert.equal(Vpn.Tunnels.length, 2);
        await refused(neighbour.client.configureVpn({ path: { id }, body: { Tunnels: many(3) } }), "quota_exceeded");
        const mine = await fixture.network();
        assert.equal(tunnelsOf(await configure(mine.Id, many(50))).length, 50);
        await refused(configure(mine.Id, many(51)), "quota_exceeded");
        const manyTunnels = await harness.neighbour({ Tunnels: 60 });
        const more = await manyTunnels.client.createPublicNetwork({ body: { Name: "wide" } });
        const made = await manyTunnels.client.configureVpn({ path: { id: more.Id }, body: { Tunnels: many(60) } });
        assert.equal(made.Vpn.Tunnels.length, 60);
      });
    });

    test("are applied later with their network if the router fails", async () => {
      const { Id: id } = await fixture.network();
      harness.brume.router.broken = true;
      const [made] = tunnelsOf(await configure(id, [office], { wait: 0 }));
      assert.equal(made?.State, "New");
      harness.brume.router.broken = false;
      assert.equal(tunnelsOf(await fixture.untilApplied(id))[0]?.State, "Active");
    });

    test("have a configuration for the far end, in its format and without secrets", async () => {
      const { Id: id, EdgeExternalIp } = await fixture.network();
      const [ipsec, wireguard] = tunnelsOf(await configure(id, [office, { ...phone, SharedKey: keyOf(7) }]));
      assert.ok(ipsec && wireguard);
      const peer = (tunnelId: number, query: object = {}) =>
        harness.client.readTunnelPeer({ path: { id, tunnelId }, query });
      for (const [tunnel, dialects] of [
        [ipsec, ["strongswan", "libreswan", "mikrotik", "cisco", "fortigate"]],
        [wireguard, ["wg-quick", "wg", "mikrotik"]],
      ] as const)
        for (const dialect of dialects) {
          const peerConfig = await peer(tunnel.Id, { peer: dialect });
          assert.equal(peerConfig.Peer, dialect);
          // For addresses that are not routed publicly, the far end connects to the host.
          assert.ok(peerConfig.Config.includes("192.0.2.1") && !peerConfig.Config.includes(`${EdgeExternalIp}:`));
          assert.ok(!peerConfig.Config.includes(SharedKey) && !peerConfig.Config.includes(keyOf(7)));
          assert.equal(peerConfig.Qr.startsWith("<svg"), dialect === "wg-quick");
          const shown = await harness.client.readPublicNetwork({ path: { id }, query: { peer: dialect } });
          assert.equal(tunnelsOf(shown).find(({ Id }) => Id === tunnel.Id)?.PeerConfig, peerConfig.Config);
        }
      assert.deepEqual([(await peer(ipsec.Id)).Peer, (await peer(wireguard.Id)).Peer], ["strongswan", "wg-quick"]);
      assert.equal((await peer(ipsec.Id)).Config, ipsec.PeerConfig);
      await refused(peer(ipsec.Id, { peer: "wg-quick" }), "query_invalid", { "?peer": "query_invalid" });
      await refused(peer(ipsec.Id, { peer: "bird" }), "query_invalid", { "?peer": "query_invalid" });
      await refused(peer(999_999), "tunnel_not_found");
      const elsewhere = await fixture.network();
      await refused(
        harness.client.readTunnelPeer({ path: { id: elsewhere.Id, tunnelId: ipsec.Id } }),
        "tunnel_not_found",
      );
    });
  },
  { clock },
);
