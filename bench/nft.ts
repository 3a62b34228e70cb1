/**
 * Compares the network driver with the kernel's own tools: replaced rules against a bare `nft -f` of the same text, a complete network
 * against the bare batches, 200 networks at once, and the cost per packet of 10,000 rules. `npm run bench -- nft`, as root. The driver
 * and the bare tool alternate, and the best of many rounds counts, because other work of the host only adds time.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { runAtOnce } from "../service/src/base/turn.ts";
import { exec } from "../service/src/drivers/exec.ts";
import type { Firewall, NetworkSpec } from "../service/src/drivers/router/interface.ts";
import { renderTexts } from "../service/src/drivers/router/linux/texts.ts";
import { firewallText } from "../service/src/drivers/router/nft/firewall.ts";
import { startTransfer } from "../test/host/transfer.ts";
import { createLab, hindrance } from "../test/support/netnslab.ts";
import { firewall, image, open, port, rule } from "../test/support/networkspec.ts";

if (hindrance !== null) {
  console.log(`nft: skipped, ${hindrance}`);
  process.exit();
}

const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1] ?? 0;
async function time(work: () => Promise<unknown>): Promise<number> {
  const begun = performance.now();
  await work();
  return performance.now() - begun;
}
const ms = (value: number): string => value.toFixed(1);

const lab = await createLab();
const rows: Record<string, object> = {};
try {
  const router = lab.open();
  const wideSubnet = { cidr: "10.64.0.0/16", gateway: "10.64.0.1" };
  const one = port(1, "10.64.0.10");
  let generation = 0;
  const apply = (spec: Partial<NetworkSpec>) =>
    router.apply(image({ generation: ++generation, v4: wideSubnet, ports: [one], ...spec }));
  await apply({});
  const guest = await lab.guest(image({ v4: wideSubnet }), one);
  await apply({});
  const guestSpace = guest.space;

  /** Returns rules with an address and a port each, like rules for many servers. `turn` makes each set different. */
  const rules = (count: number, turn: number): Firewall =>
    firewall(
      ...Array.from({ length: count }, (_, index) =>
        rule({
          allow: (index + turn) % 3 > 0,
          protocol: "tcp",
          source: index % 5 === 0 ? [`198.51.${index % 100}.0/24`] : "any",
          destination: [`10.64.${128 + (index >> 8)}.${index & 255}`],
          destinationPort: [{ first: 1 + (index % 60_000), last: 1 + (index % 60_000) }],
        }),
      ),
    );
  for (const count of [10, 100, 1000, 10_000]) {
    const sets = [rules(count, 0), rules(count, 1)];
    const texts = sets.map((set) => firewallText(set, [wideSubnet.cidr]));
    const rounds = count > 1000 ? 12 : 30;
    const [bare, ours]: [number[], number[]] = [[], []];
    // Alternating, so that other work of the host affects both. Each round waits for the removal of the former table.
    const enter = `--net=/run/netns/${guestSpace}`;
    for (let round = 0; round < rounds; round++) {
      const stdin = texts[round % 2] ?? "";
      bare.push(await time(() => exec.run(["nsenter", enter, "nft", "-f", "-"], { stdin, timeout: 60_000 })));
      ours.push(await time(() => apply({ firewall: sets[(round + 1) % 2] ?? open })));
      while ((await lab.run(`brume-${lab.tag}-7`, ["nft", "list", "tables"])).match(/ edge/g)?.length !== 1) {}
    }
    const best = { bare: Math.min(...bare), ours: Math.min(...ours) };
    rows[`replace ${count} rules`] = {
      "bare ms": ms(best.bare),
      "ours ms": ms(best.ours),
      ratio: (best.ours / best.bare).toFixed(2),
    };
  }

  await lab.run(guestSpace, ["nft", "delete", "table", "inet", "edge"]);

  // Cost per packet: the first of a connection is compared with the rules, the others only with the connection.
  const flood = async (spec: Firewall) => {
    await apply({ firewall: spec });
    const flood = join(import.meta.dirname, "lib/flood.ts");
    return Number(await lab.run(lab.internet, [process.execPath, flood, "10.64.200.1", "30000"]));
  };
  /** Returns the Mbit/s of payload. The first bytes open the window of the connection. */
  const throughput = async (spec: Firewall) => {
    await apply({ firewall: spec });
    const transfer = await startTransfer(lab.internet, guest.space, "10.64.0.10");
    await transfer.send(50e6);
    const bytes = 500e6;
    const duration = await time(() => transfer.send(bytes));
    await transfer.end();
    return (bytes * 8) / duration / 1000;
  };
  const udp = rule({ protocol: "udp", source: "internal" });
  const linear = (count: number): Firewall =>
    firewall(
      ...Array.from({ length: count }, (_, index) =>
        rule({
          protocol: "udp",
          source: [`198.51.${index % 200}.0-198.51.${index % 200}.${index % 100}`],
          destination: [`10.64.${index >> 8}.${index & 255}-10.64.255.255`],
          destinationPort: [{ first: 60_500 + (index % 1000), last: 65_000 }],
        }),
      ),
    );
  for (const [name, spec] of [
    ["off", open],
    ["1 rule", firewall(udp)],
    ["10,000 rules", rules(10_000, 0)],
    ["2,000 rules that all overlap", linear(2000)],
  ] as const)
    rows[`packets, firewall ${name}`] = {
      "first packet ns": Math.round(await flood(spec.enabled ? { ...spec, allow: false } : spec)),
      "Mbit/s": Math.round(await throughput({ ...spec, rules: [...spec.rules, rule({ protocol: "tcp" })] })),
    };
  await router.remove(7);

  // A complete network, compared with the same commands one after the other.
  const spec = (id: number): NetworkSpec =>
    image({
      id,
      v4: { cidr: `10.64.${id & 255}.0/24`, gateway: `10.64.${id & 255}.1` },
      edgeAddress: `10.65.${id >> 8}.${id & 255}`,
      bandwidth: 100,
      firewall: rules(10, 0),
    });
  const bareUp = async (id: number) => {
    const { v4, edgeAddress } = spec(id);
    const [edge, uplink] = [`lab-${lab.tag}-b`, `lb${lab.tag}`];
    await lab.ip(null, [
      `netns add ${edge}`,
      `link add ${uplink} netns ${lab.machine} type veth peer name up0 netns ${edge}`,
    ]);
    await lab.ip(edge, [
      "link set lo up",
      "link add br0 type bridge",
      `addr add ${v4.gateway}/24 dev br0`,
      "link set br0 up",
      `addr add ${edgeAddress}/32 dev up0`,
      "link set up0 up",
      `route add default via 169.254.1.1 dev up0 onlink src ${edgeAddress}`,
    ]);
    await lab.run(edge, [
      "sysctl",
      "-eqw",
      "net.ipv4.ip_forward=1",
      "net.ipv4.conf.all.rp_filter=0",
      "net.bridge.bridge-nf-call-iptables=0",
      "net.bridge.bridge-nf-call-ip6tables=0",
    ]);
    const texts = runAtOnce(renderTexts(spec(id), false));
    await lab.run(edge, ["nft", "-f", "-"], texts.edge + texts.guard + texts.lock);
    await lab.run(
      edge,
      ["tc", "-batch", "-"],
      "qdisc replace dev up0 root tbf rate 100mbit burst 20000 latency 50ms\nqdisc replace dev br0 root tbf rate 100mbit burst 20000 latency 50ms\n",
    );
    await lab.ip(lab.machine, [
      `addr add 169.254.1.1/32 dev ${uplink}`,
      `link set ${uplink} up`,
      `route replace ${edgeAddress}/32 dev ${uplink}`,
      `route replace ${v4.cidr} via ${edgeAddress} dev ${uplink} onlink`,
    ]);
    return async () => {
      await lab.ip(lab.machine, [`link del ${uplink}`]);
      await lab.ip(null, [`netns del ${edge}`]);
    };
  };
  const [bare, ours, same, gone]: [number[], number[], number[], number[]] = [[], [], [], []];
  for (let round = 0; round < 10; round++) {
    let undo = async () => {};
    bare.push(
      await time(async () => {
        undo = await bareUp(20);
      }),
    );
    await undo();
    ours.push(await time(() => router.apply(spec(20))));
    same.push(await time(() => router.apply(spec(20))));
    gone.push(await time(() => router.remove(20)));
  }
  rows["network up"] = {
    "bare ms": ms(median(bare)),
    "ours ms": ms(median(ours)),
    ratio: (median(ours) / median(bare)).toFixed(2),
  };
  rows["network applied again, nothing to do"] = { "ours ms": ms(median(same)) };
  rows["network removed"] = { "ours ms": ms(median(gone)) };

  const many = 200;
  const available = () => Number(/MemAvailable:\s+(\d+)/.exec(readFileSync("/proc/meminfo", "utf8"))?.[1]) / 1024;
  const memory = available();
  const ids = Array.from({ length: many }, (_, index) => index + 30);
  // Several at a time, as the work engine does.
  const inParallel = async (work: (id: number) => Promise<unknown>) => {
    const left = [...ids];
    await Promise.all(
      Array.from({ length: 4 }, async () => {
        for (let id = left.pop(); id !== undefined; id = left.pop()) await work(id);
      }),
    );
  };
  const up = await time(() => inParallel((id) => router.apply(spec(id))));
  const used = memory - available();
  const observeTime = median([
    await time(() => router.observe()),
    await time(() => router.observe()),
    await time(() => router.observe()),
  ]);
  const completeCount = (await router.observe()).networks.filter((network) => network.complete).length;
  rows[`${many} networks up`] = {
    "ours ms": ms(up),
    "each ms": ms(up / many),
    "each MiB": (used / many).toFixed(2),
    whole: completeCount,
  };
  rows[`${many} networks observed`] = { "ours ms": ms(observeTime), "each ms": (observeTime / many).toFixed(2) };
  const down = await time(() => inParallel((id) => router.remove(id)));
  rows[`${many} networks removed`] = { "ours ms": ms(down), "each ms": ms(down / many) };
} finally {
  await lab.close();
}
console.table(rows);
