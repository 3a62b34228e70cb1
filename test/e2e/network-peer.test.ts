/** Configurations of the far end of a tunnel: complete with their secrets, which are never shown again. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { PublicNetwork } from "@brume/api/network.ts";
import type { Tunnel } from "@brume/api/vpn.ts";
import type { Router } from "../../service/src/drivers/router/interface.ts";
import { publicKeyOf } from "../../service/src/drivers/router/model/wireguardkey.ts";
import { onSqlite, refused } from "../support/harness.ts";
import { createMovableClock, useNetworkFixture } from "../support/networkfixture.ts";

const clock = createMovableClock();
const SharedKey = "Vw3kQ8zR1tYb6NcX2mHs7PdJ4gLf9aEu";
const keyOf = (byte: number) => Buffer.alloc(32, byte).toString("base64");
const office = { Name: "office", SharedKey, PeerNetwork: "10.0.0.0/24", PeerEndpoint: "203.0.113.50" };
const phone = { Name: "phone", Type: "WireGuard", PeerNetwork: "10.1.0.2" } as const;

/** While it is set, the router driver does not respond to look-ups of routes. `begun` is called by each. */
let silence: { readonly begun: () => void; readonly end: Promise<string> } | null = null;
const wrapDriver = <Driver extends object>(driver: Driver, group: string): Driver => {
  if (group !== "router") return driver;
  const { sourceTo } = driver as unknown as Router;
  const waiting: Router["sourceTo"] = (destination) => {
    silence?.begun();
    return silence?.end ?? sourceTo(destination);
  };
  return { ...driver, sourceTo: waiting };
};

onSqlite(
  "configurations for far ends",
  (harness) => {
    const fixture = useNetworkFixture(harness, clock);
    const configure = (id: number, Tunnels: readonly object[]) =>
      harness.client.configureVpn({ path: { id }, body: { Tunnels: [...Tunnels] } });
    const tunnelsOf = ({ Vpn }: PublicNetwork): Tunnel[] => Vpn.Tunnels;
    const imageOf = (id: number) => harness.brume.router.images().find((image) => image.id === id);

    describe("that are issued", () => {
      test("a WireGuard configuration is complete, with a key that is shown once", async () => {
        const { Id: id } = await fixture.network();
        const [waiting] = tunnelsOf(await configure(id, [{ ...phone, PeerPublicKey: "", SharedKey: keyOf(7) }]));
        assert.ok(waiting);
        assert.equal(waiting.PeerPublicKey, "");
        assert.equal(imageOf(id)?.tunnels[0]?.enabled, false);
        const [status] = await harness.client.readVpnStatus({ path: { id } });
        assert.deepEqual([status?.State, status?.Error?.code], ["Connecting", "peer_unreachable"]);
        assert.match(status?.Error?.detail ?? "", /has no key yet/);

        const path = { id, tunnelId: waiting.Id };
        const issued = await harness.client.issueTunnelPeer({ path });
        const privateKey = /^PrivateKey = (.*)$/m.exec(issued.Config)?.[1] ?? "";
        assert.deepEqual(
          [issued.Peer, issued.Config.includes("<"), issued.Qr.startsWith("<svg")],
          ["wg-quick", false, true],
        );
        assert.ok(issued.Config.includes(`PresharedKey = ${keyOf(7)}\n`));
        const [tunnel] = tunnelsOf(await fixture.untilApplied(id));
        assert.equal(tunnel?.PeerPublicKey, publicKeyOf(privateKey));
        const [spec] = imageOf(id)?.tunnels ?? [];
        assert.deepEqual(
          [spec?.enabled, spec?.type === "wireguard" && spec.peerPublicKey],
          [true, tunnel?.PeerPublicKey],
        );
        assert.ok(!JSON.stringify(tunnel).includes(privateKey));
        assert.ok(!(await harness.client.readTunnelPeer({ path })).Config.includes(privateKey));
        // The key is kept if the tunnel is sent back, with or without the key.
        const [kept] = tunnelsOf(await configure(id, [{ Id: waiting.Id, PeerPublicKey: "" }]));
        assert.equal(kept?.PeerPublicKey, tunnel?.PeerPublicKey);
        const again = await harness.client.issueTunnelPeer({ path, query: { peer: "wg" } });
        assert.ok(!again.Config.includes(privateKey) && again.Config.includes("PrivateKey = ") && again.Qr === "");
        const reader = await harness.as(["network:read"]);
        await refused(reader.client.issueTunnelPeer({ path }), "scope_missing");
        await refused(harness.client.issueTunnelPeer({ path: { id, tunnelId: 999_999 } }), "tunnel_not_found");
      });

      test("an IPsec configuration contains the shared key, and issuing it changes nothing", async () => {
        const { Id: id } = await fixture.network();
        const made = await configure(id, [office]);
        const [tunnel] = tunnelsOf(made);
        assert.ok(tunnel);
        const path = { id, tunnelId: tunnel.Id };
        const issued = await harness.client.issueTunnelPeer({ path });
        assert.equal(issued.Config, tunnel.PeerConfig.replaceAll("<SharedKey>", SharedKey));
        assert.equal((await fixture.untilApplied(id)).Generation, made.Generation);
      });
    });

    test("contain the public address of the edge, and the status shows why a peer cannot reach it", async () => {
      const { Id: first } = await fixture.network();
      const { Id: id } = await fixture.network();
      const called = {
        Name: "called",
        PeerNetwork: "10.3.0.0/24",
        PeerEndpoint: "any",
        PeerIdentificator: "a.example",
      };
      const [one] = tunnelsOf(await configure(id, [called, { ...phone, PeerPublicKey: keyOf(3) }]));
      assert.match(one?.PeerConfig ?? "", /remote_addrs = 192\.0\.2\.1\n/);
      const down = (tunnel: Tunnel | undefined) => {
        const seen = { establishedAt: null, bytesIn: 0, bytesOut: 0, lastSeen: null, peerAddress: "", proposal: "" };
        const status = { id: tunnel?.Id ?? 0, state: "connecting", reason: null, localSubnets: [], peerSubnets: [] };
        harness.brume.router.report(id, { ...status, ...seen } as Parameters<typeof harness.brume.router.report>[1]);
      };
      const errorOf = async () => (await harness.client.readVpnStatus({ path: { id } }))[0]?.Error ?? null;
      down(one);
      assert.equal(await errorOf(), null);
      // The older network owns the ports that peers use.
      await configure(first, [called]);
      assert.match(
        (await errorOf())?.detail ?? "",
        /behind NAT, and UDP 500 and 4500 at 192\.0\.2\.1 lead to another network/,
      );
      await configure(first, []);
      assert.equal(await errorOf(), null);
      harness.brume.router.held = [4500];
      assert.match((await errorOf())?.detail ?? "", /another program of the host/);
      harness.brume.router.held = [];
    });

    test("a router driver that does not find routes delays neither other changes nor this one", async () => {
      const { Id: id, EdgeExternalIp } = await fixture.network();
      const begun = Promise.withResolvers<void>();
      const end = Promise.withResolvers<string>();
      silence = { begun: begun.resolve, end: end.promise };
      const body = { Tunnels: [office] };
      const configured = harness.client.configureVpn({ path: { id }, body }, { wait: 0 });
      await begun.promise;
      await harness.domain();
      const addressIn = ([tunnel]: Tunnel[]) => /remote_addrs = (.*)\n/.exec(tunnel?.PeerConfig ?? "")?.[1];
      assert.equal(addressIn(tunnelsOf(await configured)), EdgeExternalIp);
      silence = null;
      end.resolve(String(harness.brume.router.address));
      assert.equal(addressIn(tunnelsOf(await fixture.untilApplied(id))), harness.brume.router.address);
    });
  },
  { clock, wrapDriver },
);
