/**
 * Drift: an operator breaks networks by hand. The service detects and reports it and repairs the network; packets, leases and tunnels
 * then work as before.
 */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { PublicNetwork } from "@brume/api/network.ts";
import { exec } from "../../service/src/drivers/exec.ts";
import { findDaemons } from "../../service/src/drivers/router/linux/daemon.ts";
import type { Packet } from "../../service/src/drivers/router/model/verdict.ts";
import { whyNot } from "../support/hindrance.ts";
import { hindrance, keyOf } from "../support/netnslab.ts";
import { until } from "../support/waituntil.ts";
import { createFarEnd, type FarEnd } from "./farend.ts";
import { createRouterFixture, createServer, type RouterFixture, type Server } from "./routerfixture.ts";
import { startStrongswan } from "./strongswan.ts";
import type { VpnFixture } from "./vpnfixture.ts";

const skip = hindrance ?? whyNot("charon-systemd", "swanctl", "wireguard-go", "busybox");
if (skip) console.log(`networks broken by hand: not tried, ${skip}`);

describe("networks broken by hand", { skip, concurrency: false }, () => {
  let fixture: RouterFixture;
  let network: PublicNetwork;
  let server: Server;
  let far: FarEnd;
  let nextPort = 40_000;

  const edge = () => fixture.edgeOf(network.Id);
  const inEdge = (...argv: readonly string[]) => fixture.lab.run(edge(), argv);
  const packet = (destinationPort: number): Packet => ({
    protocol: 17,
    source: "198.51.100.5",
    sourcePort: nextPort++,
    destination: server.ip,
    destinationPort,
  });
  /** Returns whether exactly the packets arrive that the one rule allows. */
  async function ruleApplies(): Promise<boolean> {
    const sent = [packet(53), packet(54)];
    await fixture.lab.seen(server.space);
    await fixture.lab.send(fixture.lab.internet, sent);
    const seen = await fixture.lab.seen(server.space);
    return sent.map((each) => seen.has(keyOf(each))).join() === "true,false";
  }
  const isUp = async () => {
    const statuses = await fixture.client.readVpnStatus({ path: { id: network.Id } });
    return statuses.some(({ State }) => State === "Up");
  };
  const ping = () => fixture.lab.works(server.space, ["ping", "-n", "-q", "-c", "1", "-W", "1", far.server]);
  const lease = async () => {
    const line = `busybox udhcpc -i eth0 -n -q -f -t 3 -T 1 -s /bin/true 2>&1`;
    return (await fixture.lab.run(server.space, ["sh", "-c", line]).catch(() => "")).includes(`lease of ${server.ip}`);
  };
  const daemon = async (program: string) => {
    const [found] = await findDaemons(exec, edge(), program);
    assert.ok(found, program);
    return found;
  };

  before(async () => {
    fixture = await createRouterFixture();
    network = await fixture.order("fragile");
    server = await fixture.plug(network.Id);
    far = await createFarEnd(fixture.lab, 1);
    const strongswan = await startStrongswan({ folder: far.folder, far: { namespace: far.namespace } } as VpnFixture);
    const path = { id: network.Id };
    const Rules = [
      { Action: "Allow" as const, Protocol: "Udp" as const, Destination: server.ip, DestinationPort: "53" },
      { Action: "Allow" as const, Source: "internal" },
    ];
    await fixture.client.configureFirewall({ path, body: { Rules } }, { wait: 60 });
    const peer = `${"0".repeat(43)}=`;
    const Tunnels = [
      { Name: "far", PeerNetwork: far.cidr, PeerEndpoint: far.address },
      { Name: "away", Type: "WireGuard" as const, PeerNetwork: "10.25.0.0/16", PeerPublicKey: peer },
    ];
    const { Vpn } = await fixture.client.configureVpn({ path, body: { Tunnels } }, { wait: 60 });
    const [tunnel] = Vpn.Tunnels;
    assert.ok(tunnel);
    await strongswan.load(tunnel.PeerConfig.replaceAll("<SharedKey>", tunnel.SharedKey));
    await until("the tunnel", isUp);
    assert.deepEqual([await ruleApplies(), await lease(), await until("packets", ping)], [true, true, true]);
  });
  after(async () => {
    await far?.close();
    await fixture?.close();
  });

  interface Damage {
    /** Matches the detail of the event's error. */
    readonly reported: RegExp;
    readonly harm: () => Promise<unknown>;
    /** Detected by the reconciler every minute, not by the drift check. */
    readonly slow?: true;
  }
  const table = async () => {
    const counters = await inEdge("nft", "list", "counters");
    return /table inet (edge[012]) \{(?:(?!table )[^])*?counter d_/.exec(counters)?.[1] ?? "";
  };
  const damages: Record<string, Damage> = {
    "a rule taken out": {
      reported: /firewall/,
      slow: true,
      harm: async () => {
        const listing = await inEdge("nft", "-a", "list", "chain", "inet", await table(), "forward");
        const [, handle = ""] = /ct state invalid.*handle (\d+)/.exec(listing) ?? [];
        await inEdge("nft", "delete", "rule", "inet", await table(), "forward", "handle", handle);
      },
    },
    "a rule that lets all pass": {
      reported: /firewall/,
      slow: true,
      harm: async () => inEdge("nft", "insert", "rule", "inet", await table(), "forward", "accept"),
    },
    "a rule changed into another of its kind": {
      reported: /firewall/,
      slow: true,
      harm: async () => {
        // Visible only in comparison with an earlier observation.
        for (let checks = 0; checks < 3; checks++) {
          await fixture.turn(network.Id);
          await sleep(700);
        }
        const listing = await inEdge("nft", "-a", "list", "chain", "inet", await table(), "forward");
        const [, handle = ""] = /ct state invalid.*handle (\d+)/.exec(listing) ?? [];
        const where = ["rule", "inet", await table(), "forward", "handle", handle];
        await inEdge("nft", "replace", ...where, "ct", "state", "untracked", "drop");
      },
    },
    "a route to the network deleted": {
      reported: /route/,
      slow: true,
      harm: () => fixture.lab.ip(fixture.lab.machine, [`route del ${network.CIDR}`]),
    },
    "all rules flushed": { reported: /firewall/, harm: () => inEdge("nft", "flush", "ruleset") },
    "the bridge deleted": { reported: /bridge/, harm: () => fixture.lab.ip(edge(), ["link del br0"]) },
    "the uplink deleted": { reported: /uplink/, harm: () => fixture.lab.ip(edge(), ["link del up0"]) },
    "dnsmasq killed": { reported: /dhcp/, harm: async () => exec.signal(await daemon("dnsmasq"), "SIGKILL") },
    "the namespace deleted": {
      reported: /missing on the host|namespace/,
      harm: async () => {
        await exec.run(["ip", "netns", "del", edge()]);
        // The driver of the server creates a new NIC.
        await fixture.lab.ip(server.space, ["link del eth0"]).catch(() => {});
        await createServer(fixture.lab, fixture.lab.tag, network, server.link);
      },
    },
    "the namespace deleted, and all that ran in it": {
      // A repair of the missing programs may be under way when the namespace is deleted.
      reported: /missing on the host|namespace|Invalid "netns" value/,
      harm: async () => {
        for (const program of ["dnsmasq", "charon-systemd", "wireguard-go"])
          exec.signal(await daemon(program), "SIGKILL");
        await exec.run(["ip", "netns", "del", edge()]);
        await fixture.lab.ip(server.space, ["link del eth0"]).catch(() => {});
        await createServer(fixture.lab, fixture.lab.tag, network, server.link);
      },
    },
  };
  for (const [name, { reported, harm, slow }] of Object.entries(damages))
    test(name, async () => {
      const before = (await fixture.events("publicnetwork.*")).length;
      await harm();
      if (slow) await fixture.turn(network.Id);
      const events = await until("the events", async () => {
        const all = (await fixture.events("publicnetwork.*"))
          .slice(before)
          .filter(({ ResourceID }) => ResourceID === network.Id);
        return all.at(-1)?.Type === "publicnetwork.applied" && all;
      });
      const details = events.map(({ Data }) => (Data as PublicNetwork).Error?.detail ?? "");
      assert.match(details.join("\n"), reported);
      const now = await fixture.applied(network.Id);
      assert.deepEqual([now.Error, now.State], [null, "Active"]);
      assert.ok(await until("the rules in force", ruleApplies));
      assert.ok(await until("leases", lease));
      assert.ok(await until("the tunnel", isUp));
      assert.ok(await until("packets through the tunnel", ping));
      for (const program of ["dnsmasq", "charon-systemd", "wireguard-go"]) await daemon(program);
      await sleep(0);
    });

  test("orphaned networks are removed, and foreign objects stay", async () => {
    const space = fixture.edgeOf(4321);
    await fixture.lab.ip(null, [`netns add ${space}`, `netns add ${space}-foreign`]);
    try {
      await fixture.lab.ip(space, ['link set lo alias "brume 4321 1"']);
      await until("it is gone", async () => !(await exec.run(["ip", "netns", "list"])).includes(`${space}\n`));
      assert.ok((await exec.run(["ip", "netns", "list"])).includes(`${space}-foreign`));
    } finally {
      await exec.run(["ip", "netns", "del", `${space}-foreign`]);
    }
  });
});
