/**
 * The service process with real networks, stopped and killed: a deleted network leaves nothing on the host, a kill at any moment leaves
 * nothing incomplete for ever, and an unchanged network never loses a packet.
 */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { FirewallInput } from "@brume/api/firewall.ts";
import type { PublicNetwork } from "@brume/api/network.ts";
import { exec } from "../../service/src/drivers/exec.ts";
import { findDaemons } from "../../service/src/drivers/router/linux/daemon.ts";
import type { Packet } from "../../service/src/drivers/router/model/verdict.ts";
import { whyNot } from "../support/hindrance.ts";
import { hindrance, keyOf } from "../support/netnslab.ts";
import { until } from "../support/waituntil.ts";
import { createNetworkProcess, type NetworkProcess } from "./networkprocess.ts";
import type { Server } from "./routerfixture.ts";
import { type SpaceProcess, startEndpoint, startIn } from "./spaceprocess.ts";

const skip = hindrance ?? whyNot("charon-systemd", "wireguard-go", "nsenter");
if (skip) console.log(`networks of a process that is killed: not tried, ${skip}`);

const OTHER_HOST = "198.51.100.9";
const key = "0".repeat(43);

describe("networks of a process that is killed", { skip, concurrency: false }, () => {
  let at: NetworkProcess;
  let clean: string;
  let quiet: PublicNetwork;
  let busy: PublicNetwork;
  let calm: Server;
  let server: Server;
  let pinging: SpaceProcess;
  let echo: SpaceProcess;
  let caller: SpaceProcess;

  const read = (id: number) => at.brume.client.readPublicNetwork({ path: { id } });
  const applied = (id: number) => at.brume.client.waitFor("readPublicNetwork", { path: { id } }, { timeout: 120_000 });
  const order = async (Name: string): Promise<PublicNetwork> =>
    applied((await at.brume.client.createPublicNetwork({ body: { Name } })).Id);
  let nextPort = 30_000;
  const packets = (): Packet[] =>
    [
      [6, 22],
      [6, 80],
      [17, 53],
    ].map(([protocol = 0, destinationPort = 0]) => ({
      protocol,
      source: OTHER_HOST,
      sourcePort: nextPort++,
      destination: server.ip,
      destinationPort,
    }));

  /** Checks that the host has exactly what the API shows, and that packets behave as it shows. */
  async function settled(when: string): Promise<void> {
    const { client } = at.brume;
    const shown = await until(
      `settled ${when}`,
      async () => {
        const all = await client.listPublicNetworks();
        const inner = await client.listNetworks();
        const isDone = all.every((each) => each.State === "Active" && each.AppliedGeneration === each.Generation);
        return isDone && inner.every(({ State }) => State === "Active") && { all, inner };
      },
      120_000,
    );
    assert.ok(shown.all.every((each) => each.Error === null));
    // Deleted networks may not be removed from the host yet.
    const wanted = [1, ...shown.all.map(({ Id }) => Id), ...shown.inner.map(({ ID }) => ID)].map(at.edgeOf).sort();
    await until(`the namespaces ${when} are ${wanted.join()}`, async () => {
      const { namespaces } = JSON.parse(await at.host()) as { namespaces: string[] };
      return namespaces.join() === wanted.join();
    });
    const [probes, path] = [packets(), { id: busy.Id }];
    await at.lab.seen(server.space);
    await at.lab.send(at.lab.internet, probes);
    const seen = await at.lab.seen(server.space);
    for (const probe of probes) {
      const body = { Protocol: probe.protocol === 6 ? ("Tcp" as const) : ("Udp" as const), Source: OTHER_HOST };
      const packet = { ...body, Destination: probe.destination, DestinationPort: probe.destinationPort };
      const { Verdict, Reason } = await client.checkFirewall({ path, body: packet });
      assert.equal(seen.has(keyOf(probe)), Verdict === "Allow", `${when}: ${keyOf(probe)}: ${Reason}`);
    }
    const { Vpn } = await read(busy.Id);
    for (const [type, program] of [
      ["IPsec", "charon-systemd"],
      ["WireGuard", "wireguard-go"],
    ])
      await until(`one ${program} or none ${when}`, async () => {
        const daemons = await findDaemons(exec, at.edgeOf(busy.Id), program ?? "");
        return daemons.length === Number(Vpn.Tunnels.some(({ Type }) => Type === type));
      });
  }

  const answers = (word: string): Promise<boolean> => {
    caller.send(word);
    return Promise.race([caller.line().then((line) => line === word), sleep(60_000).then(() => false)]);
  };

  before(async () => {
    at = await createNetworkProcess();
    await until("the shared network", async () => (await at.host()).includes(at.edgeOf(1)));
    await at.brume.end("SIGTERM");
    await at.brume.start();
    clean = await until("the host rests", async () => {
      const before = await at.host();
      await sleep(500);
      return (await at.host()) === before && before;
    });
  });
  after(() => at?.close());

  test("a network that is created, configured and deleted leaves the host as it was", async () => {
    const { client } = at.brume;
    const made = await order("short");
    const path = { id: made.Id };
    await client.configureFirewall({ path, body: { Rules: [{ Action: "Allow", Protocol: "Udp" }] } }, { wait: 60 });
    const Tunnels = [
      { Name: "a", PeerNetwork: "10.24.1.0/24", PeerEndpoint: "198.18.0.2" },
      { Name: "b", Type: "WireGuard" as const, PeerNetwork: "10.24.2.0/24", PeerPublicKey: `${key}=` },
    ];
    const { Generation, AppliedGeneration } = await client.configureVpn({ path, body: { Tunnels } }, { wait: 60 });
    assert.equal(AppliedGeneration, Generation);
    const inner = await client.createNetwork({ body: { Name: "inner" } }, { wait: 60 });
    const full = await at.host();
    for (const part of [at.edgeOf(made.Id), at.edgeOf(inner.ID), "charon", "wireguard-go"])
      assert.ok(full.includes(part), part);
    await client.deletePublicNetwork({ path }, { wait: 60 });
    await client.deleteNetwork({ path: { id: inner.ID } }, { wait: 60 });
    await until("nothing is left", async () => (await at.host()) === clean).catch(async () =>
      assert.equal(await at.host(), clean),
    );
  });

  test("servers are connected, and packets flow", async () => {
    quiet = await order("quiet");
    busy = await order("busy");
    await at.brume.end("SIGTERM");
    calm = await at.plug(quiet);
    server = await at.plug(busy);
    await at.brume.start();
    await settled("at first");
    echo = startEndpoint(calm.space, "echo", "7000");
    assert.equal(await echo.line(), "ready");
    caller = startEndpoint(at.lab.internet, "send", calm.ip, "7000");
    assert.equal(await caller.line(), "connected");
    pinging = startIn(at.lab.internet, ["ping", "-n", "-q", "-i", "0.05", calm.ip]);
    assert.ok(await answers("one"));
  });

  let turn = 0;
  const rules: readonly FirewallInput[] = [
    { Rules: [{ Action: "Allow", Protocol: "Tcp", DestinationPort: "22" }] },
    { Rules: [{ Action: "Deny", Protocol: "Tcp", DestinationPort: "22" }], DefaultRuleAction: "Allow" },
    { Enabled: false },
    { Rules: [{ Action: "Allow", Protocol: "TcpAndUdp", DestinationPort: "53,80" }] },
  ];
  let last: number | null = null;
  const works: Record<string, () => Promise<unknown>> = {
    ordering: async () => {
      last = (await at.brume.client.createPublicNetwork({ body: { Name: "passing", NetworkCapacity: "30" } })).Id;
    },
    deleting: async () => {
      const path = { id: last ?? (await order("doomed")).Id };
      last = null;
      await at.brume.client.deletePublicNetwork({ path });
    },
    "ordering a private one": () => at.brume.client.createNetwork({ body: { Name: "inner" } }),
    "setting the firewall": () =>
      at.brume.client.configureFirewall({ path: { id: busy.Id }, body: rules[turn++ % rules.length] ?? {} }),
    "setting tunnels": () => {
      const ipsec = { Name: "a", PeerNetwork: "10.24.1.0/24", PeerEndpoint: "any", PeerIdentificator: "x.example" };
      const wireguard = {
        Name: "b",
        Type: "WireGuard" as const,
        PeerNetwork: "10.24.2.0/24",
        PeerPublicKey: `${key}=`,
      };
      const lists = [[ipsec], [ipsec, wireguard], [wireguard], []];
      return at.brume.client.configureVpn({ path: { id: busy.Id }, body: { Tunnels: lists[turn++ % 4] ?? [] } });
    },
    editing: () =>
      at.brume.client.updatePublicNetwork({ path: { id: busy.Id }, body: { Bandwidth: 50 + (turn++ % 50) } }),
  };
  for (const [name, work] of Object.entries(works))
    test(`killed while ${name}`, async () => {
      for (const most of [30, 250]) {
        const pause = Math.round(Math.random() * most);
        const working = work().catch(() => {});
        await sleep(pause);
        await at.brume.end("SIGKILL");
        await working;
        await at.brume.start();
        await settled(`${pause} ms after ${name}`);
      }
      assert.ok(await answers(name));
    });

  test("killed while starting, and stopped at the deadline of an unconfirmed change", async () => {
    const path = { id: busy.Id };
    await at.brume.client.configureFirewall({ path, body: { Enabled: false } }, { wait: 60 });
    const { Firewall } = await at.brume.client.configureFirewall(
      { path, body: { Rules: [], ConfirmWithin: 10 } },
      { wait: 60 },
    );
    await settled("under the new rules");
    for (const ms of [250, 600]) {
      await at.brume.end("SIGKILL");
      await at.brume.startAndKill(ms);
    }
    await sleep(Math.max(0, Date.parse(Firewall.ConfirmBy ?? "") - Date.now() + 100));
    await at.brume.start();
    const ready = Date.now();
    await until("the old rules", async () => {
      const { Firewall: now, AppliedGeneration, Generation } = await read(busy.Id);
      return !now.Enabled && now.ConfirmBy === null && AppliedGeneration === Generation;
    });
    // Not only with the check of each minute.
    assert.ok(Date.now() - ready < 30_000, `${Date.now() - ready} ms after the start`);
    await settled("under the old rules");
    assert.ok(await answers("born"));
  });

  test("the unchanged network lost no packet", async () => {
    assert.ok(await answers("last"));
    const output = pinging.rest();
    pinging.stop();
    const [, sent, received] = /(\d+) packets transmitted, (\d+) received/.exec(await output) ?? [];
    assert.ok(Number(sent) > 500, sent);
    assert.equal(received, sent);
    echo.end();
    caller.end();
  });

  test("when everything is deleted, nothing is left", async () => {
    await at.brume.end("SIGTERM");
    await at.unplugAll();
    await at.brume.start();
    const { client } = at.brume;
    for (const { Id } of await client.listPublicNetworks()) await client.deletePublicNetwork({ path: { id: Id } });
    for (const { ID } of await client.listNetworks()) await client.deleteNetwork({ path: { id: ID } });
    await until("nothing is left", async () => (await at.host()) === clean).catch(async () =>
      assert.equal(await at.host(), clean),
    );
  });
});
