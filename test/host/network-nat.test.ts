/**
 * Tunnels with the default pool of private addresses: peers see the host's address instead of the edge's, and are configured only from
 * the API's peer configuration. No peer has a route to an edge's own address.
 */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import type { PublicNetwork } from "@brume/api/network.ts";
import type { Tunnel, TunnelInput, TunnelStatus } from "@brume/api/vpn.ts";
import { createPrivate, publicKeyOf } from "../../service/src/drivers/router/model/wireguardkey.ts";
import { whyNot } from "../support/hindrance.ts";
import { hindrance } from "../support/netnslab.ts";
import { until } from "../support/waituntil.ts";
import { createFarEnd, type FarEnd, startWireguard } from "./farend.ts";
import { createRouterFixture, type RouterFixture, type Server } from "./routerfixture.ts";
import { startIn } from "./spaceprocess.ts";
import { startStrongswan } from "./strongswan.ts";
import type { VpnFixture } from "./vpnfixture.ts";

const skip = hindrance ?? whyNot("charon-systemd", "swanctl", "wireguard-go");
if (skip) console.log(`tunnels behind NAT: not tried, ${skip}`);

/** A network with one server. */
interface Side {
  readonly network: PublicNetwork;
  readonly server: Server;
}

describe("tunnels of networks behind NAT", { skip, concurrency: false }, () => {
  let fixture: RouterFixture;
  let one: Side;
  let two: Side;
  const ends: FarEnd[] = [];
  let devices = 0;

  const createSide = async (name: string): Promise<Side> => {
    const network = await fixture.order(name);
    return { network, server: await fixture.plug(network.Id) };
  };
  const put = async ({ network: { Id: id } }: Side, ...Tunnels: readonly TunnelInput[]): Promise<readonly Tunnel[]> =>
    (await fixture.client.configureVpn({ path: { id }, body: { Tunnels: [...Tunnels] } }, { wait: 60 })).Vpn.Tunnels;
  const statusOf = async ({ network: { Id: id } }: Side): Promise<TunnelStatus> => {
    const [status] = await fixture.client.readVpnStatus({ path: { id } });
    assert.ok(status);
    return status;
  };
  const isUp = (side: Side): Promise<TunnelStatus> => {
    let last: TunnelStatus | undefined;
    return until("tunnel up", async () => {
      last = await statusOf(side);
      return last.Operational && last;
    }).catch((error: unknown) => {
      throw new Error(`${(error as Error).message}; last seen ${JSON.stringify(last)}`);
    });
  };
  const ping = (from: string, to: string) =>
    until(`packets from ${from} to ${to}`, () =>
      fixture.lab.works(from, ["ping", "-n", "-q", "-c", "1", "-W", "1", to]).then((works) => works),
    );
  const both = async ({ server }: Side, end: FarEnd): Promise<void> => {
    assert.ok(await ping(server.space, end.server));
    assert.ok(await ping(end.serverSpace, server.ip));
  };
  const farEnd = async (number: number): Promise<FarEnd> => {
    const end = await createFarEnd(fixture.lab, number);
    ends.push(end);
    await fixture.lab.ip(end.namespace, ["route add unreachable 10.64.255.0/24"]);
    return end;
  };
  const strongswan = async (end: FarEnd, ...tunnels: readonly Tunnel[]): Promise<void> => {
    const far = await startStrongswan({ folder: end.folder, far: { namespace: end.namespace } } as VpnFixture);
    await far.load(
      tunnels.map(({ PeerConfig, SharedKey }) => PeerConfig.replaceAll("<SharedKey>", SharedKey)).join(""),
    );
  };
  const wireguard = async (end: FarEnd, side: Side, tunnel: Tunnel, key: string): Promise<void> => {
    devices += 1;
    const far = await startWireguard(end, `b${fixture.lab.tag}n${devices}`);
    await far.configure(tunnel, key, side.network.CIDR);
  };

  before(async () => {
    fixture = await createRouterFixture({ publicPool: "10.64.0.0/16" });
    [one, two] = [await createSide("one"), await createSide("two")];
  });
  after(async () => {
    for (const end of ends) await end.close();
    await fixture?.close();
  });

  for (const IkeVersion of [2, 1])
    test(`IPsec comes up when the edge initiates, IKEv${IkeVersion}`, async () => {
      const end = await farEnd(IkeVersion);
      const spec = { Name: "office", PeerNetwork: end.cidr, PeerEndpoint: end.address, IkeVersion };
      const [tunnel] = await put(one, spec);
      assert.ok(tunnel);
      assert.match(tunnel.PeerConfig, new RegExp(`remote_addrs = 198\\.18\\.${IkeVersion}\\.1\\n`));
      const { Error: silence } = await until("a reason", async () => {
        const status = await statusOf(one);
        return status.Error && status;
      });
      assert.equal(silence?.code, "peer_unreachable");
      assert.ok(silence.detail?.includes(`reaches it at 198.18.${IkeVersion}.1`), silence.detail ?? "");
      assert.ok(silence.detail?.includes(one.network.EdgeExternalIp), silence.detail ?? "");
      await strongswan(end, tunnel);
      await isUp(one);
      await both(one, end);
    });

  test("IPsec comes up when the peer initiates; the oldest network has the ports, and the status of the other explains it", async () => {
    const [first, second] = [await farEnd(3), await farEnd(4)];
    const spec = (end: FarEnd): TunnelInput => ({
      Name: "roaming",
      PeerNetwork: end.cidr,
      PeerEndpoint: "any",
      PeerIdentificator: `end-${end.cidr.replace("/", "-")}.example`,
    });
    const [early] = await put(one, spec(first));
    assert.ok(early);
    assert.match(early.PeerConfig, /remote_addrs = 198\.18\.0\.1\n/);
    await strongswan(first, early);
    await isUp(one);
    await both(one, first);
    const [late] = await put(two, spec(second));
    assert.ok(late);
    const { Error: reason, State } = await statusOf(two);
    assert.deepEqual([State, reason?.code], ["Connecting", "peer_unreachable"]);
    assert.match(reason?.detail ?? "", /UDP 500 and 4500 at 198\.18\.0\.1 lead to another network/);
    // The ports are free again, and are forwarded to the other network.
    await put(one);
    assert.equal((await statusOf(two)).Error, null);
    await strongswan(second, late);
    await isUp(two);
    await both(two, second);
    await put(two);
  });

  test("WireGuard comes up on each network's own port, initiated by either side", async () => {
    const [first, second] = [await farEnd(5), await farEnd(6)];
    const [key, other] = [createPrivate(randomBytes), createPrivate(randomBytes)];
    const spec = { Name: "branch", Type: "WireGuard" as const };
    const [called] = await put(one, { ...spec, PeerNetwork: first.cidr, PeerPublicKey: publicKeyOf(key) });
    const [calling] = await put(two, {
      ...spec,
      PeerNetwork: second.cidr,
      PeerPublicKey: publicKeyOf(other),
      PeerEndpoint: `${second.address}:51900`,
    });
    assert.ok(called && calling && called.ListenPort !== calling.ListenPort);
    assert.ok(called.PeerConfig.includes(`Endpoint = 198.18.0.1:${called.ListenPort}\n`), called.PeerConfig);
    assert.ok(calling.PeerConfig.includes(`Endpoint = 198.18.6.1:${calling.ListenPort}\n`), calling.PeerConfig);
    await wireguard(first, one, called, key);
    await wireguard(second, two, calling, other);
    await Promise.all([isUp(one), isUp(two)]);
    await both(one, first);
    await both(two, second);
    await Promise.all([put(one), put(two)]);
  });

  test("a WireGuard configuration is imported unchanged, by wg-quick and by wg", {
    skip: whyNot("wg", "wg-quick"),
  }, async () => {
    const end = await farEnd(8);
    const device = `b${fixture.lab.tag}q`;
    const path = async (peer?: "wg") => {
      const [tunnel] = await put(one, { Name: "phone", Type: "WireGuard", PeerNetwork: end.cidr });
      assert.ok(tunnel);
      const query = peer === undefined ? {} : { peer };
      const { Config } = await fixture.client.issueTunnelPeer({
        path: { id: one.network.Id, tunnelId: tunnel.Id },
        query,
      });
      writeFileSync(join(end.folder, `${device}.conf`), Config, { mode: 0o600 });
      return join(end.folder, `${device}.conf`);
    };
    await end.run("wg-quick", "up", await path());
    await isUp(one);
    await both(one, end);
    await end.run("wg-quick", "down", join(end.folder, `${device}.conf`));
    await put(one);
    const far = await startWireguard(end, device);
    await end.run("wg", "setconf", far.device, await path("wg"));
    await isUp(one);
    await put(one);
  });

  test("a peer that initiated before its port was forwarded connects as soon as it is", async () => {
    const end = await farEnd(7);
    const key = createPrivate(randomBytes);
    const spec = { Name: "early", Type: "WireGuard" as const, PeerNetwork: end.cidr, PeerPublicKey: publicKeyOf(key) };
    const [tunnel] = await put(one, { ...spec, KeepAlive: 1 });
    assert.ok(tunnel);
    await put(one, { Id: tunnel.Id, Name: "early", Enabled: false });
    await wireguard(end, one, tunnel, key);
    await until("the machine remembers a call", async () =>
      (await fixture.lab.run(fixture.lab.machine, ["conntrack", "-L", "-p", "udp"])).includes(
        `dport=${tunnel.ListenPort}`,
      ),
    );
    await put(one, { Id: tunnel.Id, Name: "early", Enabled: true });
    await isUp(one);
    await both(one, end);
    await put(one);
  });

  test("a port that a program of the host uses is not forwarded, and the status explains it", async () => {
    const script = `require("node:dgram").createSocket("udp4").bind(500,()=>console.log("bound"))`;
    const program = startIn(fixture.lab.machine, [process.execPath, "-e", script]);
    try {
      await program.line();
      await put(one, { Name: "x", PeerNetwork: "10.77.0.0/24", PeerEndpoint: "any", PeerIdentificator: "x.example" });
      const { Error: reason } = await statusOf(one);
      assert.equal(reason?.code, "peer_unreachable");
      assert.match(reason.detail ?? "", /UDP 500 and 4500 at 198\.18\.0\.1 belong to another program of the host/);
    } finally {
      program.end();
    }
    await put(one);
  });
});
