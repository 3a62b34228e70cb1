/**
 * Compares networks through the API with the kernel's own tools: a request against the bare batch of commands, a rule set against a bare
 * `nft -f` of its text, 200 requests at once, tunnels, and the cost per packet. The complete service runs in this process, with a
 * network namespace as its host. `npm run bench -- network`, as root; `npm run bench -- network firewall` measures rule sets alone. `nft`
 * and `vpn` measure the drivers alone.
 *
 * Rule sets: bare nft and the API alternate for many rounds and the best round of each counts, because other work of the host only adds
 * time; medians would compare that work. The bare one replaces a live table by the text that the service renders.
 */
import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import type { FirewallInput, FirewallRuleInput } from "@brume/api/firewall.ts";
import type { Tunnel, TunnelInput } from "@brume/api/vpn.ts";
import { runAtOnce } from "../service/src/base/turn.ts";
import { exec } from "../service/src/drivers/exec.ts";
import { renderTexts } from "../service/src/drivers/router/linux/texts.ts";
import { firewallText } from "../service/src/drivers/router/nft/firewall.ts";
import { normalise } from "../service/src/network/model/firewall/firewall.ts";
import { toRouterFirewall } from "../service/src/network/model/firewall/routerform.ts";
import { createFarEnd, type FarEnd } from "../test/host/farend.ts";
import { createRouterFixture, type RouterFixture } from "../test/host/routerfixture.ts";
import { startIn } from "../test/host/spaceprocess.ts";
import { startStrongswan } from "../test/host/strongswan.ts";
import type { VpnFixture } from "../test/host/vpnfixture.ts";
import { whyNot } from "../test/support/hindrance.ts";
import { hindrance } from "../test/support/netnslab.ts";
import { image } from "../test/support/networkspec.ts";
import { until } from "../test/support/waituntil.ts";
import { type Line, report } from "./lib/figures.ts";

const reason = hindrance ?? whyNot("iperf3", "charon-systemd", "swanctl");
if (reason) throw new Error(`no networks can be measured here: ${reason}`);

const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN;
async function time(work: () => Promise<unknown>): Promise<number> {
  const begun = performance.now();
  await work();
  return performance.now() - begun;
}
const ms = (value: number): string => value.toFixed(1);
const rows: Record<string, Record<string, string | number>> = {};
const best = (values: readonly number[]): number => Math.min(...values);
const lines: Line[] = [];
/** `pick` selects the round that counts. */
const compare = (name: string, bare: readonly number[], ours: readonly number[], pick = median) => {
  rows[name] = {
    "bare ms": ms(pick(bare)),
    "API ms": ms(pick(ours)),
    ratio: (pick(ours) / pick(bare)).toFixed(2),
  };
  return pick(ours) / pick(bare);
};

/** Returns rules with an address and a port each, like rules for many servers. `turn` makes each set different. */
const rules = (count: number, turn: number): FirewallInput & { readonly Rules: FirewallRuleInput[] } => ({
  Rules: Array.from({ length: count }, (_, index) => ({
    Action: (index + turn) % 3 > 0 ? ("Allow" as const) : ("Deny" as const),
    Protocol: "Tcp" as const,
    ...(index % 5 === 0 && { Source: `198.51.${index % 100}.0/24` }),
    Destination: `198.19.${128 + (index >> 8)}.${index & 255}`,
    DestinationPort: `${1 + (index % 60_000)}`,
  })),
});

async function measureOrders(fixture: RouterFixture): Promise<void> {
  const { client, lab } = fixture;
  const bareUp = async (): Promise<() => Promise<void>> => {
    const v4 = { cidr: "198.19.250.0/29", gateway: "198.19.250.1" };
    const spec = image({
      id: 999,
      v4,
      edgeAddress: "198.19.255.250",
      bandwidth: 100,
      dhcp: { enabled: true, router: v4.gateway, dns: [] },
    });
    const [edge, uplink] = [`lab-${lab.tag}-b`, `lb${lab.tag}`];
    await lab.ip(null, [
      `netns add ${edge}`,
      `link add ${uplink} netns ${lab.machine} type veth peer name up0 netns ${edge}`,
    ]);
    await lab.ip(edge, [
      "link set lo up",
      "link add br0 type bridge",
      `addr add ${v4.gateway}/29 dev br0`,
      "link set br0 up",
      `addr add ${spec.edgeAddress}/32 dev up0`,
      "link set up0 up",
      `route add default via 169.254.1.1 dev up0 onlink src ${spec.edgeAddress}`,
    ]);
    await lab.run(edge, ["sysctl", "-eqw", "net.ipv4.ip_forward=1", "net.ipv4.conf.all.rp_filter=0"]);
    const texts = runAtOnce(renderTexts(spec, false));
    await lab.run(edge, ["nft", "-f", "-"], texts.edge + texts.guard + texts.lock);
    const limits = ["up0", "br0"].map(
      (device) => `qdisc replace dev ${device} root tbf rate 100mbit burst 20000 latency 50ms\n`,
    );
    await lab.run(edge, ["tc", "-batch", "-"], limits.join(""));
    await lab.ip(lab.machine, [
      `addr add 169.254.1.1/32 dev ${uplink}`,
      `link set ${uplink} up`,
      `route replace ${spec.edgeAddress}/32 dev ${uplink}`,
      `route replace ${v4.cidr} via ${spec.edgeAddress} dev ${uplink} onlink`,
    ]);
    const argv = ["dnsmasq", "--conf-file=/dev/null", "--port=0", "--interface=br0", "--bind-dynamic", "--user=root"];
    await lab.run(edge, [
      ...argv,
      "--pid-file",
      "--dhcp-range=198.19.250.0,static,255.255.255.248",
      "--dhcp-leasefile=/dev/null",
    ]);
    return async () => {
      for (const pid of (await exec.run(["ip", "netns", "pids", edge])).split("\n").filter(Boolean)) {
        const child = exec.find(Number(pid));
        if (child !== null) exec.signal(child, "SIGKILL");
      }
      await lab.ip(lab.machine, [`link del ${uplink}`]);
      await lab.ip(null, [`netns del ${edge}`]);
    };
  };
  const [bare, ours, gone]: [number[], number[], number[]] = [[], [], []];
  // Alternating, so that other work of the host affects both.
  for (let round = 0; round < 8; round++) {
    let undo = async () => {};
    bare.push(
      await time(async () => {
        undo = await bareUp();
      }),
    );
    await undo();
    let id = 0;
    ours.push(
      await time(async () => {
        const made = await client.createPublicNetwork({ body: { Name: "measured" } }, { wait: 30 });
        if (made.State !== "Active") throw new Error(`a network is ${made.State}`);
        id = made.Id;
      }),
    );
    gone.push(await time(() => client.deletePublicNetwork({ path: { id } }, { wait: 30 })));
  }
  compare("POST /publicnetwork until Active", bare, ours);
  rows["DELETE /publicnetwork until gone"] = { "API ms": ms(median(gone)) };
}

async function measureRules(fixture: RouterFixture): Promise<void> {
  const { client, lab, order } = fixture;
  const network = await order("ruled");
  const path = { id: network.Id };
  const neighbourSpace = `lab-${lab.tag}-n`;
  await lab.ip(null, [`netns add ${neighbourSpace}`]);
  const bareNft = (stdin: string) =>
    exec.run(["nsenter", `--net=/run/netns/${neighbourSpace}`, "nft", "-f", "-"], { stdin, timeout: 60_000 });
  /** Waits for the removal of the former rules, which happens after the response, so that the next measurement does not include it. */
  const isTidy = async () =>
    (await lab.run(fixture.edgeOf(network.Id), ["nft", "list", "tables"])).match(/ edge/g)?.length === 1;
  for (const count of [10, 100, 1000, 10_000]) {
    const sets = [rules(count, 0), rules(count, 1)] as const;
    const texts = sets.map((set) => firewallText(toRouterFirewall(normalise(set, { family6: false })), [network.CIDR]));
    const [bare, ours]: [number[], number[]] = [[], []];
    for (let round = 0; round < (count > 1000 ? 20 : 30); round++) {
      bare.push(await time(() => bareNft(texts[round % 2] ?? "")));
      ours.push(
        await time(async () => {
          const body = sets[(round + 1) % 2] ?? {};
          const { Generation, AppliedGeneration } = await client.configureFirewall({ path, body }, { wait: 30 });
          if (AppliedGeneration !== Generation) throw new Error("the rules are not in force");
        }),
      );
      await until("the rules before gone", isTidy);
    }
    const value = compare(`PUT firewall, ${count} rules`, bare, ours, best);
    if (count === 10_000) lines.push({ what: "PUT of 10,000 rules, of nft -f", value, limit: 1.3, unit: "times" });
  }
  await exec.run(["ip", "netns", "del", neighbourSpace]);
  await client.deletePublicNetwork({ path }, { wait: 30 });
}

async function measurePackets(fixture: RouterFixture): Promise<void> {
  const { client, lab, order, plug } = fixture;
  const network = await order("fast", { Bandwidth: 10_000 });
  const path = { id: network.Id };
  const server = await plug(network.Id, { bandwidth: 10_000 });
  const transferFor = async (space: string, address: string): Promise<number> => {
    const sink = startIn(space, ["iperf3", "-s", "-1", "--forceflush"]);
    await sink.line();
    const source = startIn(lab.internet, ["iperf3", "-J", "-c", address, "-t", "2", "-O", "1"]);
    const { end } = JSON.parse(await source.rest()) as { end: { sum_received: { bits_per_second: number } } };
    sink.end();
    return end.sum_received.bits_per_second / 1e6;
  };
  const straight = await transferFor(lab.machine, "198.18.0.1");
  rows["throughput without any router"] = { "Mbit/s": Math.round(straight) };
  const all: FirewallRuleInput = { Action: "Allow", Protocol: "Tcp" };
  const sets: readonly (readonly [string, FirewallInput])[] = [
    ["firewall off", { Enabled: false }],
    ["10 rules", { Rules: [...rules(9, 0).Rules, all] }],
    ["10,000 rules", { Rules: [...rules(9999, 0).Rules, all] }],
  ];
  for (const [name, body] of sets) {
    await client.configureFirewall({ path, body }, { wait: 30 });
    const rate = await transferFor(server.space, server.ip);
    rows[`throughput through the router, ${name}`] = {
      "Mbit/s": Math.round(rate),
      ratio: (rate / straight).toFixed(2),
    };
  }
}

async function measureMany(fixture: RouterFixture): Promise<void> {
  const { client } = fixture;
  const many = 200;
  const available = () => Number(/MemAvailable:\s+(\d+)/.exec(readFileSync("/proc/meminfo", "utf8"))?.[1]) / 1024;
  const memory = available();
  const names = new Set(Array.from({ length: many }, (_, index) => `many ${index}`));
  const ours = async () =>
    (await client.listPublicNetworks({ query: { limit: 1000 } })).filter(({ Name }) => names.has(Name));
  let busy = true;
  const meanwhile: number[] = [];
  const reader = (async () => {
    while (busy) {
      meanwhile.push(await time(() => client.readProject({ path: { id: 1 } })));
      await sleep(20);
    }
  })();
  const accepted = await time(() =>
    Promise.all([...names].map((Name) => client.createPublicNetwork({ body: { Name } }, { wait: 0 }))),
  );
  const up =
    accepted +
    (await time(() =>
      until("all Active", async () => (await ours()).every(({ State }) => State === "Active"), 300_000),
    ));
  busy = false;
  await reader;
  const late = meanwhile.toSorted((a, b) => a - b)[Math.floor(meanwhile.length * 0.99)] ?? Number.NaN;
  rows[`GET /project/1 while ${many} are made, 99th percentile`] = { "API ms": ms(late) };
  rows[`${many} orders at once, accepted`] = { "API ms": ms(accepted), "each ms": ms(accepted / many) };
  rows[`${many} orders at once, until Active`] = {
    "API ms": ms(up),
    "each ms": ms(up / many),
    "each MiB": ((memory - available()) / many).toFixed(2),
  };
  const all = await ours();
  const id = all[0]?.Id ?? 0;
  const reads = [];
  for (let round = 0; round < 7; round++) reads.push(await time(() => client.readPublicNetwork({ path: { id } })));
  rows[`GET /publicnetwork/{id} among ${many}`] = { "API ms": ms(median(reads)) };
  const down = await time(async () => {
    await Promise.all(all.map(({ Id }) => client.deletePublicNetwork({ path: { id: Id } }, { wait: 0 })));
    await until("all gone", async () => (await ours()).length === 0, 300_000);
  });
  rows[`${many} deletions at once, until gone`] = { "API ms": ms(down), "each ms": ms(down / many) };
}

async function measureTunnels(fixture: RouterFixture, end: FarEnd): Promise<void> {
  const { client, order, plug } = fixture;
  const strongswan = await startStrongswan({ folder: end.folder, far: { namespace: end.namespace } } as VpnFixture);
  const filled = (tunnels: readonly { readonly PeerConfig: string; readonly SharedKey: string }[]): string =>
    tunnels.map(({ PeerConfig, SharedKey }) => PeerConfig.replaceAll("<SharedKey>", SharedKey)).join("");
  const allUp = async (id: number) =>
    (await client.readVpnStatus({ path: { id } })).every(({ Operational }) => Operational);

  const one = await order("tunnelled");
  const server = await plug(one.Id);
  const path = { id: one.Id };
  const SharedKey = "Very-Secret-Key-0123456789";
  const spec: TunnelInput = { Name: "t", SharedKey, PeerNetwork: end.cidr, PeerEndpoint: end.address };
  const ping = () => fixture.lab.works(server.space, ["ping", "-q", "-c", "1", "-W", "1", end.server]);
  const [cold, warm]: [number[], number[]] = [[], []];
  for (let round = 0; round < 3; round++) {
    const [tunnel] = (
      await client.configureVpn({ path, body: { Tunnels: [{ ...spec, Enabled: false }] } }, { wait: 30 })
    ).Vpn.Tunnels;
    if (tunnel === undefined) throw new Error("no tunnel was made");
    await strongswan.load(filled([tunnel]));
    const up = async (change: Partial<TunnelInput>) => {
      await client.configureVpn({ path, body: { Tunnels: [{ Id: tunnel.Id, Name: "t", ...change }] } }, { wait: 30 });
      await until("up", () => allUp(one.Id));
      await until("packets", ping);
    };
    cold.push(await time(() => up({ Enabled: true })));
    await client.configureVpn(
      { path, body: { Tunnels: [{ Id: tunnel.Id, Name: "t", LocalIdentificator: "r.example" }] } },
      { wait: 30 },
    );
    warm.push(await time(() => up({ LocalIdentificator: one.EdgeExternalIp })));
    await client.configureVpn({ path, body: { Tunnels: [] } }, { wait: 30 });
  }
  rows["PUT vpn until packets pass, daemon started"] = { "API ms": ms(median(cold)) };
  rows["PUT vpn until packets pass, daemon runs"] = { "API ms": ms(median(warm)) };

  // libipsec at the peer needs an address in each of its networks.
  await fixture.lab.ip(
    end.namespace,
    Array.from({ length: 100 }, (_, number) => `addr add 10.30.${number}.1/32 dev lo`),
  );
  const halves: { readonly id: number; readonly tunnels: readonly Tunnel[] }[] = [];
  for (const half of [0, 1]) {
    const { Id: id } = await order(`half ${half}`);
    const Tunnels = Array.from({ length: 50 }, (_, index): TunnelInput => {
      const number = half * 50 + index;
      const PeerIdentificator = `n${number}.example`;
      return { ...spec, Name: `t${number}`, Enabled: false, PeerNetwork: `10.30.${number}.0/24`, PeerIdentificator };
    });
    const { Vpn } = await client.configureVpn({ path: { id }, body: { Tunnels } }, { wait: 30 });
    halves.push({ id, tunnels: Vpn.Tunnels });
  }
  await strongswan.load(filled(halves.flatMap(({ tunnels }) => tunnels)));
  const accepted = await time(() =>
    Promise.all(
      halves.map(({ id, tunnels }) => {
        const Tunnels = tunnels.map(({ Id, Name }): TunnelInput => ({ Id, Name, Enabled: true }));
        return client.configureVpn({ path: { id }, body: { Tunnels } }, { wait: 30 });
      }),
    ),
  );
  const up =
    accepted +
    (await time(() =>
      until("100 tunnels up", async () => (await Promise.all(halves.map(({ id }) => allUp(id)))).every(Boolean)),
    ));
  rows["PUT vpn of 100 tunnels in two networks, until loaded"] = {
    "API ms": ms(accepted),
    "each ms": ms(accepted / 100),
  };
  rows["PUT vpn of 100 tunnels in two networks, until all up"] = { "API ms": ms(up), "each ms": ms(up / 100) };
  const reads: number[] = [];
  for (let round = 0; round < 9; round++)
    reads.push(await time(() => Promise.all(halves.map(({ id }) => client.readVpnStatus({ path: { id } })))));
  rows["GET vpn/status of 100 tunnels in two networks, all up"] = { "API ms": ms(median(reads)) };
}

const fixture = await createRouterFixture();
let end: FarEnd | undefined;
try {
  const most = { PublicNetworks: 1000, FirewallRules: 10_000 };
  await fixture.client.updateProject({ path: { id: 1 }, body: { Quotas: most } });
  const isWhole = process.argv[2] !== "firewall";
  if (isWhole) await measureOrders(fixture);
  await measureRules(fixture);
  if (isWhole) {
    await measurePackets(fixture);
    await measureMany(fixture);
    end = await createFarEnd(fixture.lab, 1);
    await measureTunnels(fixture, end);
  }
} finally {
  console.table(rows);
  await end?.close();
  await fixture.close();
}
process.exitCode = report(lines) ? 0 : 1;
