/**
 * Tunnels through the API with independent peers: strongSwan, Libreswan and wireguard-go, each configured only from the API's peer
 * configuration.
 */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { after, before, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { PublicNetwork } from "@brume/api/network.ts";
import type { Tunnel, TunnelInput, TunnelStatus } from "@brume/api/vpn.ts";
import { exec } from "../../service/src/drivers/exec.ts";
import { findDaemons } from "../../service/src/drivers/router/linux/daemon.ts";
import { createPrivate, publicKeyOf } from "../../service/src/drivers/router/model/wireguardkey.ts";
import { whyNot } from "../support/hindrance.ts";
import { hindrance } from "../support/netnslab.ts";
import { until } from "../support/waituntil.ts";
import { createFarEnd, type FarEnd, noLibreswan, startLibreswan, startWireguard } from "./farend.ts";
import { lostPings } from "./pings.ts";
import { createRouterFixture, type RouterFixture, type Server } from "./routerfixture.ts";
import { startIn } from "./spaceprocess.ts";
import { type FarStrongswan, startStrongswan } from "./strongswan.ts";
import type { VpnFixture } from "./vpnfixture.ts";

const skip = hindrance ?? whyNot("charon-systemd", "swanctl", "wireguard-go");
if (skip) console.log(`tunnels through the API: not tried, ${skip}`);

describe("tunnels through the API, with independent peers", { skip, concurrency: false }, () => {
  const farKey = createPrivate(randomBytes);
  let fixture: RouterFixture;
  let network: PublicNetwork;
  let server: Server;
  let office: FarEnd;
  let branch: FarEnd;
  let strongswan: FarStrongswan;

  const path = () => ({ id: network.Id });
  const put = async (...Tunnels: readonly TunnelInput[]): Promise<readonly Tunnel[]> => {
    const answer = await fixture.client.configureVpn({ path: path(), body: { Tunnels: [...Tunnels] } }, { wait: 60 });
    assert.equal(answer.AppliedGeneration, answer.Generation);
    assert.ok(answer.Vpn.Tunnels.every(({ State }) => State === "Active"));
    return answer.Vpn.Tunnels;
  };
  const tunnels = async () => (await fixture.client.readPublicNetwork({ path: path() })).Vpn.Tunnels;
  const named = async (name: string): Promise<Tunnel> => {
    const found = (await tunnels()).find(({ Name }) => Name === name);
    assert.ok(found, name);
    return found;
  };
  const statusOf = async (name: string): Promise<TunnelStatus> => {
    const { Id } = await named(name);
    const found = (await fixture.client.readVpnStatus({ path: path() })).find(({ TunnelId }) => TunnelId === Id);
    assert.ok(found, name);
    return found;
  };
  const isUp = (name: string): Promise<TunnelStatus> =>
    until(`${name} up`, async () => {
      const status = await statusOf(name);
      return status.Operational && status;
    });
  const ping = (to: string, ...options: readonly string[]) =>
    fixture.lab.works(server.space, ["ping", "-n", "-q", "-c", "1", "-W", "1", ...options, to]);
  /** Returns the unencrypted packets between the peers' blocks and the network that crossed the host since the last call. */
  const unencrypted = async () =>
    [...(await fixture.lab.seen(fixture.lab.machine))].filter((key) => key.includes(" 10.24."));
  const keep = ({ Id, Name }: Tunnel): TunnelInput => ({ Id, Name });

  const toOffice = (): TunnelInput => ({ Name: "office", PeerNetwork: office.cidr, PeerEndpoint: office.address });
  const toBranch = (): TunnelInput => ({
    Name: "branch",
    Type: "WireGuard",
    PeerNetwork: branch.cidr,
    PeerEndpoint: `${branch.address}:51821`,
    PeerPublicKey: publicKeyOf(farKey),
    KeepAlive: 1,
  });
  /** Returns the peer configuration with the key filled in, as an administrator does. */
  const filled = ({ PeerConfig, SharedKey }: Tunnel): string => PeerConfig.replaceAll("<SharedKey>", SharedKey);

  before(async () => {
    fixture = await createRouterFixture();
    network = await fixture.order("head");
    server = await fixture.plug(network.Id);
    const esp = fixture.lab.capabilities.trials.find(({ name }) => name === "ESP in the kernel");
    // If there is one, all packets below go through it.
    if (!esp?.works) console.log(`ESP in the kernel: not tried, ${esp?.detail}`);
    [office, branch] = [await createFarEnd(fixture.lab, 1), await createFarEnd(fixture.lab, 2)];
    strongswan = await startStrongswan({ folder: office.folder, far: { namespace: office.namespace } } as VpnFixture);
  });
  after(async () => {
    for (const end of [office, branch]) await end?.close();
    await fixture?.close();
  });

  test("both types come up from the peer configurations, and servers reach each other through them", async () => {
    const [ipsec, wireguard] = await put(toOffice(), toBranch());
    assert.ok(ipsec && wireguard);
    assert.match(ipsec.SharedKey, /^[A-Za-z0-9]{32}$/);
    assert.ok(![ipsec, wireguard].some(({ PeerConfig }) => PeerConfig.includes(ipsec.SharedKey)));
    await fixture.lab.seen(fixture.lab.machine);
    assert.deepEqual([await ping(office.server), await ping(branch.server)], [false, false]);
    await strongswan.load(filled(ipsec));
    const far = await startWireguard(branch, `b${fixture.lab.tag}f`);
    await far.configure(wireguard, farKey, network.CIDR);
    const [one, two] = [await isUp("office"), await isUp("branch")];
    assert.ok(await until("packets by IPsec", () => ping(office.server)));
    assert.ok(await until("packets by WireGuard", () => ping(branch.server)));
    assert.deepEqual(await unencrypted(), []);
    assert.deepEqual(
      [one.LocalSubnets, one.PeerSubnets, one.PeerAddress],
      [[network.CIDR], [office.cidr], office.address],
    );
    assert.equal(one.Proposal, "AES_CBC_256/HMAC_SHA2_256_128/MODP_2048");
    assert.deepEqual([two.PeerSubnets, two.EstablishedAt], [[branch.cidr], null]);
    const now = await statusOf("office");
    assert.ok(now.BytesIn >= 84 && now.BytesOut >= 84 && now.LastSeen !== null && now.EstablishedAt !== null);
    // And the other way round.
    assert.ok(await fixture.lab.works(office.serverSpace, ["ping", "-q", "-c", "1", "-W", "60", server.ip]));
    await until("events of both", async () => (await fixture.events("tunnel.up")).length === 2);
  });

  test("the firewall filters tunnels too: the peers' networks are external", async () => {
    const set = (Rules: readonly object[]) =>
      fixture.client.configureFirewall({ path: path(), body: { Rules: Rules as [] } }, { wait: 60 });
    await set([{ Action: "Allow", Source: office.cidr }]);
    assert.ok(await fixture.lab.works(office.serverSpace, ["ping", "-q", "-c", "1", "-W", "60", server.ip]));
    assert.equal(await fixture.lab.works(branch.serverSpace, ["ping", "-q", "-c", "1", "-W", "0.7", server.ip]), false);
    assert.equal(await ping(office.server), false);
    await fixture.client.configureFirewall({ path: path(), body: { Enabled: false } }, { wait: 60 });
    assert.ok(await ping(office.server, "-W", "60"));
  });

  test("the list is replaced completely, and unchanged tunnels keep running", async () => {
    const before = await isUp("office");
    const [ipsec, wireguard] = [await named("office"), await named("branch")];
    const lost = lostPings(server.space, office.server, 150);
    const third: TunnelInput = {
      Name: "third",
      PeerNetwork: "10.99.0.0/16",
      PeerEndpoint: "any",
      PeerIdentificator: "x.example",
    };
    await put(keep(ipsec), { ...keep(wireguard), KeepAlive: 2 }, third);
    await put(keep(ipsec), { ...keep(await named("third")), Digest: "Sha512" });
    await put(keep(ipsec), toBranch());
    assert.deepEqual(await lost, []);
    assert.equal((await isUp("office")).EstablishedAt, before.EstablishedAt);
    const again = await tunnels();
    assert.deepEqual(
      again.map(({ Name, Id }) => [Name, Id === ipsec.Id, Id === wireguard.Id]),
      [
        ["office", true, false],
        ["branch", false, false],
      ],
    );
    await isUp("branch");
    assert.ok(await until("packets by WireGuard", () => ping(branch.server)));
  });

  test("a wrong key is explained, nothing leaves unencrypted, and the right key suffices", async () => {
    const { Id, SharedKey } = await named("office");
    const branchNow = keep(await named("branch"));
    await fixture.lab.seen(fixture.lab.machine);
    await put({ Id, Name: "office", SharedKey: "Another-Key-0123456789" }, branchNow);
    const { Error: reason, State } = await until("a reason", async () => {
      const status = await statusOf("office");
      return status.Error && status;
    });
    assert.deepEqual([State, reason?.code], ["Connecting", "authentication_failed"]);
    assert.match(reason?.detail ?? "", new RegExp(office.address.replaceAll(".", "\\.")));
    assert.ok(!JSON.stringify(reason).includes("Another-Key"));
    assert.equal(await ping(office.server), false);
    assert.ok(await ping(branch.server, "-W", "60"), "the other one continues");
    assert.deepEqual(await unencrypted(), []);
    await until("the event", async () =>
      (await fixture.events("tunnel.down")).some(({ ResourceID }) => ResourceID === Id),
    );
    await put({ Id, Name: "office", SharedKey }, branchNow);
    await isUp("office");
    assert.ok(await until("packets", () => ping(office.server)));
  });

  test("an engine that hangs affects the status of its own tunnels only", async () => {
    const [daemon] = await findDaemons(exec, fixture.edgeOf(network.Id), "charon-systemd");
    assert.ok(daemon);
    exec.signal(daemon, "SIGSTOP");
    try {
      const [silent, other] = await until("silence", async () => {
        const all = await fixture.client.readVpnStatus({ path: path() });
        return all[0]?.State === "Unknown" && all;
      });
      assert.equal(silent?.Error?.code, "engine_unavailable");
      assert.deepEqual([other?.State, other?.Error], ["Up", null]);
    } finally {
      exec.signal(daemon, "SIGCONT");
    }
    await isUp("office");
    assert.ok(await until("packets", () => ping(office.server)));
  });

  test("TCP uses the tunnel's MTU from its first packet", async () => {
    const { Mtu } = await named("office");
    const sockets = (state: string) =>
      fixture.lab.run(office.serverSpace, ["ss", "-tinH", "state", state, "sport", "=", ":5001"]);
    const sink = startIn(office.serverSpace, ["busybox", "nc", "-l", "-p", "5001"]);
    await until("a listener", () => sockets("listening"));
    const source = startIn(server.space, ["busybox", "nc", office.server, "5001"]);
    try {
      const mss = await until("a connection", async () => /\bmss:(\d+)/.exec(await sockets("established"))?.[1]);
      assert.ok(Number(mss) <= Mtu - 40, `the tunnel takes ${Mtu} bytes, and segments have ${mss}`);
    } finally {
      sink.end();
      source.end();
    }
  });

  test("killed engines restart with all tunnels, and nothing leaves unencrypted meanwhile", async () => {
    await fixture.lab.seen(fixture.lab.machine);
    for (const [program, target] of [
      ["charon-systemd", office.server],
      ["wireguard-go", branch.server],
    ] as const) {
      const [daemon] = await findDaemons(exec, fixture.edgeOf(network.Id), program);
      assert.ok(daemon);
      exec.signal(daemon, "SIGKILL");
      const pings = fixture.lab
        .run(server.space, ["ping", "-i", "0.01", "-c", "50", "-W", "1", "-q", target])
        .catch(() => "");
      await pings;
      assert.ok(await until(`${program} is back`, () => ping(target)));
    }
    await Promise.all([isUp("office"), isUp("branch")]);
    assert.deepEqual(await unencrypted(), []);
  });

  test("a restarted service finds its tunnels up and loses no packet of them", async () => {
    const before = await isUp("office");
    const lost = lostPings(server.space, office.server, 150);
    await fixture.restart();
    // After a restart the times come from charon, in seconds.
    const established = [before, await isUp("office")].map(({ EstablishedAt }) => Date.parse(EstablishedAt ?? ""));
    assert.ok(Math.abs((established[0] ?? Number.NaN) - (established[1] ?? 0)) < 2000, established.join());
    await isUp("branch");
    assert.deepEqual(await lost, []);
  });

  test("it works with Libreswan too", { skip: noLibreswan }, async (t) => {
    const end = await createFarEnd(fixture.lab, 3);
    try {
      const spec: TunnelInput = {
        Name: "libreswan",
        PeerNetwork: end.cidr,
        PeerEndpoint: end.address,
        EncryptionType: "AesGcm",
        DhGroup: 19,
      };
      const others = (await tunnels()).map(keep);
      const made = (await put(...others, spec)).find(({ Name }) => Name === "libreswan");
      assert.ok(made);
      const { Config } = await fixture.client.readTunnelPeer({
        path: { ...path(), tunnelId: made.Id },
        query: { peer: "libreswan" },
      });
      const readLog = await startLibreswan(end, Config, made.SharedKey);
      if (fixture.lab.capabilities.kernelEsp) {
        await isUp("libreswan");
        assert.ok(await until("packets", () => ping(end.server)));
      } else {
        t.diagnostic(
          "this kernel has no ESP, and Debian's Libreswan is built with XFRM and XFRMI only: both proposals and the key are agreed on, no packet goes through",
        );
        await until("Libreswan knows our key and takes our proposal", async () => {
          await sleep(200);
          return (
            /established IKE SA; authenticated peer/.test(readLog()) &&
            /Add SA esp\.\S+: (Protocol not|Function not)/.test(readLog())
          );
        });
      }
    } finally {
      await end.close();
    }
  });

  test("without tunnels no engine runs", async () => {
    await put();
    const left = await exec.run(["ip", "netns", "pids", fixture.edgeOf(network.Id)]);
    const names = await Promise.all(
      ["charon-systemd", "wireguard-go"].map((name) => findDaemons(exec, fixture.edgeOf(network.Id), name)),
    );
    assert.deepEqual(names, [[], []], left);
    assert.deepEqual(await fixture.client.readVpnStatus({ path: path() }), []);
  });
});
