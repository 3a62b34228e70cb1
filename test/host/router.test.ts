/** The router driver with real packets: address locks, connections, bandwidth, leases, NAT, and continuity after a restart. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, beforeEach, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { exec } from "../../service/src/drivers/exec.ts";
import type { IpsecTunnel, NetworkSpec, Router } from "../../service/src/drivers/router/interface.ts";
import { findDaemons } from "../../service/src/drivers/router/linux/daemon.ts";
import { withoutPackets } from "../../service/src/drivers/router/linux/snapshot.ts";
import type { Packet } from "../../service/src/drivers/router/model/verdict.ts";
import { firewallText } from "../../service/src/drivers/router/nft/firewall.ts";
import { createLab, type Guest, hindrance, keyOf, type Lab } from "../support/netnslab.ts";
import { firewall, image, open, port, rule } from "../support/networkspec.ts";
import { waitUntil } from "../support/waituntil.ts";
import { startEndpoint } from "./spaceprocess.ts";
import { bucketsOf, passes, startTransfer } from "./transfer.ts";

if (hindrance !== null) console.log(`router driver: not tried, ${hindrance}`);

const endpoint = join(import.meta.dirname, "endpoint.ts");
const one = port(1, "10.64.0.10");
const two = port(2, "10.64.0.11");
const ports = [one, two];
const OUTSIDE = "198.51.100.5";
const tcp = (first: number) => rule({ protocol: "tcp", destinationPort: [{ first, last: first }] });

describe("router driver", { skip: hindrance ?? false }, () => {
  let lab: Lab;
  let router: Router;
  let first: Guest;
  let second: Guest;
  let generation = 0;
  const apply = (spec: Partial<NetworkSpec> = {}) => router.apply(image({ generation: ++generation, ports, ...spec }));
  const status = async () => {
    const found = (await router.observe()).networks.find(({ id }) => id === 7);
    assert.ok(found);
    return found;
  };
  const edge = () => `brume-${lab.tag}-7`;

  before(async () => {
    lab = await createLab();
    router = lab.open();
    await apply();
    first = await lab.guest(image(), one);
    second = await lab.guest(image(), two);
    await apply();
  });
  beforeEach(() => apply());
  after(() => lab?.close());

  test("a foreign MAC address, ARP for another address, a foreign source: all dropped and counted", async () => {
    const pings = (target: string, seconds = "0.5") => ["ping", "-c", "1", "-W", seconds, target];
    assert.ok(await lab.works(first.space, pings("10.64.0.11", "60")));
    let count = (await status()).spoofed.packets;
    // A ping may end before its packet leaves: the kernel repeats an ARP request that got no reply after a second, not at once for the next packet.
    const grown = async (what: string) => {
      count = await waitUntil(
        `a dropped packet: ${what}`,
        async () => (await status()).spoofed.packets,
        (now) => now > count,
      );
    };
    await lab.ip(first.space, ["link set eth0 address 02:42:00:00:00:99"]);
    assert.equal(await lab.works(first.space, pings("10.64.0.9")), false);
    await grown("hardware address");
    await lab.ip(first.space, [`link set eth0 address ${one.mac}`]);
    // An unused address, then that of the neighbour, which is not affected.
    await lab.ip(first.space, ["addr add 10.64.0.13/29 dev eth0"]);
    assert.equal(
      await lab.works(first.space, ["ping", "-c", "1", "-W", "0.5", "-I", "10.64.0.13", "10.64.0.9"]),
      false,
    );
    await grown("network address");
    await lab.ip(first.space, ["addr del 10.64.0.13/29 dev eth0", "addr add 10.64.0.11/29 dev eth0"]);
    await lab.works(first.space, ["ping", "-c", "1", "-W", "0.5", "-I", "10.64.0.11", "10.64.0.9"]);
    await grown("the neighbour's address");
    await lab.ip(first.space, ["addr del 10.64.0.11/29 dev eth0"]);
    assert.ok(await lab.works(second.space, pings("10.64.0.9", "60")));
    assert.ok(await lab.works(first.space, pings("10.64.0.11", "60")));
  });

  test("packets from outside cannot have an inside source", async () => {
    await lab.ip(lab.internet, ["addr add 10.64.0.12/32 dev lo"]);
    await lab.seen(first.space);
    const packet: Packet = {
      protocol: 17,
      source: "10.64.0.12",
      sourcePort: 7000,
      destination: "10.64.0.10",
      destinationPort: 53,
    };
    await lab.send(lab.internet, [packet, { ...packet, source: OUTSIDE }]);
    await lab.ip(lab.internet, ["addr del 10.64.0.12/32 dev lo"]);
    assert.deepEqual([...(await lab.seen(first.space))], [keyOf({ ...packet, source: OUTSIDE })]);
  });

  test("a connection continues while rules allow it, and is cut when they do not", async () => {
    await apply({ firewall: firewall(tcp(7000)) });
    const echo = startEndpoint(first.space, "echo", "7000");
    assert.equal(await echo.line(), "ready");
    const client = startEndpoint(lab.internet, "send", "10.64.0.10", "7000");
    assert.equal(await client.line(), "connected");
    const answers = async (word: string) => {
      client.send(word);
      assert.equal(await client.line(), word);
    };
    await answers("one");
    await apply({ firewall: firewall(rule({ allow: false, protocol: "udp" }), tcp(7000), tcp(80)), bandwidth: 50 });
    await answers("two");
    await apply({ firewall: open });
    await answers("three");
    // Outgoing connections are still allowed, but no packet of the old connection passes in either direction.
    await apply({ firewall: firewall(rule({ source: "internal", destination: "external" })) });
    await lab.seen(first.space);
    client.send("four");
    assert.equal(await Promise.race([client.line(), sleep(700, "no answer")]), "no answer");
    assert.equal([...(await lab.seen(first.space))].filter((key) => key.endsWith("10.64.0.10 7000")).length, 0);
    echo.end();
    client.end();
  });

  // Large tables are disabled in another way than small ones.
  for (const count of [300, 4000])
    test(`packets match the old or the new rules, never none and never a mixture, of ${count} rules`, async () => {
      // Both sets allow UDP only to the first server, one with its last rule, the other with its first.
      const udp = rule({ protocol: "udp", destination: ["10.64.0.10"] });
      const many = Array.from({ length: count }, (_, index) =>
        rule({ source: [`192.0.${index >> 8}.${index & 255}`] }),
      );
      const sets = [firewall(...many, udp), firewall(udp, ...many.slice(5))];
      for (const set of sets) assert.equal(firewallText(set, ["10.64.0.8/29"]).length > 2 ** 18, count > 1000);
      await apply({ firewall: firewall(udp) });
      const counted = async ({ space }: Guest) => {
        const listing = await lab.run(space, ["nft", "list", "counters", "table", "inet", "tally"]);
        return Number(/packets (\d+)/.exec(listing)?.[1]);
      };
      const counterTable =
        "add table inet tally\ndelete table inet tally\ntable inet tally {\n counter c { }\n chain i {\n type filter hook prerouting priority raw; policy accept;\n meta l4proto udp counter name c\n }\n}\n";
      for (const { space } of [first, second]) await lab.run(space, ["nft", "-f", "-"], counterTable);
      const sender = startEndpoint(lab.internet, "datagrams", "10.64.0.10", "10.64.0.11");
      for (let change = 0; change < (count > 1000 ? 3 : 8); change++) {
        const before = await counted(first);
        await apply({ firewall: sets[change % 2] ?? open });
        await waitUntil(
          "another packet",
          () => counted(first),
          (count) => count !== before,
          0,
        );
      }
      sender.send("end");
      const sent = Number(await sender.line());
      assert.deepEqual([await counted(first), await counted(second)], [sent / 2, 0]);
    });

  const bucket = async (device: string) => (await bucketsOf(lab, edge())).get(device);
  /** Asserts that the bucket of the device limits a transfer to this rate, for half a second or longer. */
  async function limits(device: string, rate: number, from: string, to: string, address: string): Promise<void> {
    const transfer = await startTransfer(from, to, address);
    await passes(
      () => bucket(device),
      rate,
      () => transfer.send(rate * 62_500),
    );
    await transfer.end();
  }
  async function free(from: string, to: string, address: string): Promise<number> {
    const transfer = await startTransfer(from, to, address);
    const bytes = await transfer.send(1_000_000);
    await transfer.end();
    return bytes;
  }

  test("the network's bandwidth limits both directions, is changed live, and does not limit traffic inside the network", async () => {
    await apply({ bandwidth: 20 });
    await limits("up0", 20, first.space, lab.internet, "198.18.0.2");
    await limits("br0", 20, lab.internet, first.space, "10.64.0.10");
    const before = await bucketsOf(lab, edge());
    assert.deepEqual([...before.keys()].toSorted(), ["br0", "up0"]);
    const bytes = await free(first.space, second.space, "10.64.0.11");
    for (const [device, now] of await bucketsOf(lab, edge()))
      assert.ok(now.bytes - (before.get(device)?.bytes ?? 0) < bytes / 10, device);
    await apply({ bandwidth: 50 });
    await limits("br0", 50, lab.internet, first.space, "10.64.0.10");
  });

  test("a port's bandwidth limits both directions, and can be removed", async () => {
    const limited = [{ ...one, bandwidth: 10 }, two];
    await apply({ ports: limited });
    await limits("i1", 10, first.space, second.space, "10.64.0.11");
    await limits("p1", 10, second.space, first.space, "10.64.0.10");
    await apply();
    assert.deepEqual([await bucket("i1"), await bucket("p1")], [undefined, undefined]);
    await free(first.space, second.space, "10.64.0.11");
    await free(second.space, first.space, "10.64.0.10");
  });

  test("a DHCP client gets its own lease", async () => {
    const guest = port(3, "10.64.0.12", { name: "third" });
    const dhcp = { enabled: true, router: "10.64.0.9", dns: ["9.9.9.9", "1.1.1.1"] };
    await apply({ dhcp, mtu: 1400, ports: [...ports, guest] });
    const { space } = await lab.bareGuest(guest);
    await apply({ dhcp, mtu: 1400, ports: [...ports, guest] });
    await lab.ip(space, ["route add 255.255.255.255 dev eth0"]);
    const lease = JSON.parse(await lab.run(space, [process.execPath, endpoint, "lease", guest.mac])) as object;
    assert.deepEqual(lease, {
      address: "10.64.0.12",
      options: {
        ...(lease as { options: object }).options,
        1: "255.255.255.248",
        3: "10.64.0.9",
        6: "9.9.9.9.1.1.1.1",
        12: "third",
        26: "1400",
      },
    });
    // The DHCP server runs without privileges, and still reads a lease that is added later.
    const [daemon] = await findDaemons(exec, edge(), "dnsmasq");
    assert.ok(daemon);
    assert.doesNotMatch(readFileSync(`/proc/${daemon.pid}/status`, "utf8"), /^[UG]id:.*\t0\b/m);
    const later = port(14, "10.64.0.14");
    const after = await lab.bareGuest(later);
    await apply({ dhcp, mtu: 1400, ports: [...ports, guest, later] });
    assert.deepEqual(await findDaemons(exec, edge(), "dnsmasq"), [daemon]);
    await lab.ip(after.space, ["route add 255.255.255.255 dev eth0"]);
    const taken = JSON.parse(await lab.run(after.space, [process.execPath, endpoint, "lease", later.mac])) as object;
    assert.equal((taken as { address: string }).address, "10.64.0.14");
    // In a private network the DHCP server has an address outside of the block.
    const inner = port(4, "172.16.0.4");
    const spec = image({
      id: 9,
      kind: "private",
      v4: { cidr: "172.16.0.0/24", gateway: null },
      edgeAddress: null,
      ports: [inner],
      dhcp: { enabled: true, router: "172.16.0.1", dns: [] },
    });
    const { space: room } = await lab.bareGuest(inner);
    await router.apply(spec);
    await lab.ip(room, ["route add 255.255.255.255 dev eth0"]);
    const offer = JSON.parse(await lab.run(room, [process.execPath, endpoint, "lease", inner.mac])) as {
      address: string;
    };
    assert.equal(offer.address, "172.16.0.4");
    await router.remove(9);
  });

  test("an address with a lease is given to its next server", async () => {
    const dhcp = { enabled: true, router: "10.64.0.9", dns: [] };
    const takeLease = async (id: number): Promise<string> => {
      const guest = port(id, "10.64.0.13");
      const { space } = await lab.bareGuest(guest);
      await apply({ dhcp, ports: [...ports, guest] });
      await lab.ip(space, ["route add 255.255.255.255 dev eth0"]);
      return (JSON.parse(await lab.run(space, [process.execPath, endpoint, "lease", guest.mac])) as { address: string })
        .address;
    };
    assert.equal(await takeLease(11), "10.64.0.13");
    assert.equal(await takeLease(12), "10.64.0.13");
  });

  test("the first packet to an address reaches its next server, which has another MAC address", async () => {
    for (const id of [13, 14]) {
      const next = port(id, "10.64.0.14");
      await lab.guest(image(), next);
      await apply({ ports: [...ports, next] });
      assert.ok(await lab.works(edge(), ["ping", "-n", "-c", "1", "-W", "60", "10.64.0.14"]), `port ${id}`);
      await apply();
    }
  });

  test("servers of the shared network reach each other only through the edge", async () => {
    const inner = [port(5, "10.63.0.5"), port(6, "10.63.0.6")] as const;
    const spec = image({
      id: 10,
      kind: "shared",
      v4: { cidr: "10.63.0.0/24", gateway: "10.63.0.1" },
      edgeAddress: "10.63.255.1",
      ports: inner,
    });
    const [five] = [await lab.guest(spec, inner[0]), await lab.guest(spec, inner[1])];
    await router.apply(spec);
    assert.ok(await lab.works(five.space, ["ping", "-c", "1", "-W", "60", "10.63.0.6"]));
    // The edge, not the neighbour, answers the ARP request for .6.
    assert.match(await lab.run(five.space, ["ip", "neigh", "show", "10.63.0.6"]), /06:00:00:00:00:0a/);
    await router.remove(10);
  });

  test("private addresses leave with the host's address, and are reached from the host", async () => {
    await apply({ nat: "always" });
    await Promise.all([lab.internet, first.space].map(lab.seen));
    const packet: Packet = {
      protocol: 17,
      source: "10.64.0.10",
      sourcePort: 8000,
      destination: OUTSIDE,
      destinationPort: 53,
    };
    await lab.send(first.space, [packet]);
    assert.deepEqual([...(await lab.seen(lab.internet))], [keyOf({ ...packet, source: "198.18.0.1" })]);
    await lab.send(lab.machine, [{ ...packet, source: "198.18.0.1", destination: "10.64.0.10" }]);
    assert.equal((await lab.seen(first.space)).size, 1);
  });

  test("no packet to or from a peer's network passes unencrypted", async () => {
    const tunnel: IpsecTunnel = {
      id: 1,
      type: "ipsec",
      enabled: true,
      mtu: 1400,
      localSubnets: ["10.64.0.8/29"],
      peerSubnets: ["203.0.113.0/24"],
      ikeVersion: 2,
      encryption: "aes256",
      digest: "sha256",
      dhGroup: 14,
      perfectForwardSecrecy: true,
      sharedKey: "x".repeat(16),
      localIdentity: "a",
      peer: null,
      peerIdentity: "b",
    };
    const out: Packet = {
      protocol: 17,
      source: "10.64.0.10",
      sourcePort: 8100,
      destination: "203.0.113.9",
      destinationPort: 53,
    };
    const back: Packet = {
      protocol: 17,
      source: "203.0.113.9",
      sourcePort: 8101,
      destination: "10.64.0.10",
      destinationPort: 53,
    };
    const passed = async () => {
      await Promise.all([lab.internet, first.space].map(lab.seen));
      await Promise.all([lab.send(first.space, [out]), lab.send(lab.internet, [back])]);
      return [(await lab.seen(lab.internet)).has(keyOf(out)), (await lab.seen(first.space)).has(keyOf(back))];
    };
    assert.deepEqual(await passed(), [true, true]);
    await apply({ tunnels: [tunnel] });
    assert.deepEqual(await passed(), [false, false]);
    await apply({ tunnels: [{ ...tunnel, enabled: false }] });
    assert.deepEqual(await passed(), [true, true]);
  });

  test("a new driver finds everything, changes nothing, and connections continue", async () => {
    const spec = image({
      generation: ++generation,
      ports: [{ ...one, bandwidth: 500 }, two],
      firewall: firewall(tcp(7000)),
      bandwidth: 100,
      nat: "always",
      dhcp: { enabled: true, router: "10.64.0.9", dns: [] },
    });
    await router.apply(spec);
    // Old rules are deleted after `apply` resolves; the next call waits for that.
    await router.apply(spec);
    const ran: string[] = [];
    const next = lab.open({
      exec: {
        ...exec,
        async run(argv, options) {
          ran.push([...argv, await (options?.stdin ?? "")].join(" "));
          return exec.run(argv, options);
        },
      },
    });
    const seen = (await next.observe()).networks;
    assert.deepEqual(
      seen.map(({ id, complete, missing }) => ({ id, complete, missing })),
      [{ id: 7, complete: true, missing: [] }],
    );
    assert.equal(seen[0]?.generation, generation);
    assert.equal(seen[0]?.ports.filter(({ attached }) => attached).length, 2);
    const listing = async () => withoutPackets(await lab.run(edge(), ["nft", "list", "ruleset"]));
    const before = await listing();
    assert.equal(await next.apply({ ...spec, generation: 1 }), generation);
    assert.equal(await next.apply(spec), generation);
    assert.equal(await listing(), before);
    const changing = ran.filter((line) => /\b(add|del|delete|set|replace|-f|-qw|-R)\b/.test(line));
    assert.deepEqual(changing, []);
  });
});
