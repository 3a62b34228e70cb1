/**
 * Guests cannot reach the host. Guests of public and shared networks send packets to every address of the host, to link-local
 * addresses of both families and to the metadata service of the host's cloud; counters behind all rules record what arrives.
 */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import fc from "fast-check";
import type { NetworkSpec } from "../../service/src/drivers/router/interface.ts";
import { closedExcept } from "../../service/src/drivers/router/model/closedaddresses.ts";
import type { Packet } from "../../service/src/drivers/router/model/verdict.ts";
import { createLab, type Guest, hindrance, keyOf, type Lab } from "../support/netnslab.ts";
import { image, port } from "../support/networkspec.ts";
import { until } from "../support/waituntil.ts";
import { startEndpoint } from "./spaceprocess.ts";

if (hindrance !== null) console.log(`isolation from the host: not tried, ${hindrance}`);

const METADATA = "169.254.169.254";
const [TCP, UDP, ICMP] = [6, 17, 1];

const one = port(1, "10.64.0.10", { addresses: ["10.64.0.10", "fd24:1::a"] });
const two = port(2, "10.63.0.10", { addresses: ["10.63.0.10", "fd24:2::a"] });
const closed = closedExcept([]);
const publicNetwork = image({
  id: 7,
  v6: { cidr: "fd24:1::/64", gateway: "fd24:1::1" },
  nat: "always",
  ports: [one],
  closed,
  dhcp: { enabled: true, router: "10.64.0.9", dns: [] },
  dnsForwarders: ["198.18.0.1"],
});
const sharedNetwork = image({
  id: 8,
  kind: "shared",
  v4: { cidr: "10.63.0.0/16", gateway: "10.63.0.1" },
  v6: { cidr: "fd24:2::/64", gateway: "fd24:2::1" },
  edgeAddress: "10.64.255.3",
  nat: "always",
  ports: [two],
  closed,
});

describe("isolation from the host", { skip: hindrance ?? false, concurrency: false }, () => {
  let lab: Lab;
  let guests: readonly Guest[];
  let nextPort = 20_000;
  const packet = (protocol: number, { port: { addresses } }: Guest, destination: string, to: number): Packet => ({
    protocol,
    source: addresses.find((address) => address.includes(":") === destination.includes(":")) ?? "",
    sourcePort: protocol === ICMP ? 0 : 1024 + (nextPort++ % 60_000),
    destination,
    destinationPort: protocol === ICMP ? 0 : to,
  });

  async function applyAll(opened: readonly string[] = []): Promise<void> {
    const router = lab.open({ opened });
    const images: NetworkSpec[] = [publicNetwork, sharedNetwork];
    for (const each of images) {
      generation++;
      await router.apply({ ...each, generation, closed: closedExcept(opened) });
    }
  }
  let generation = 0;

  /** Returns the destinations of the packets that passed all rules of the namespace, from any source: NAT may change it. */
  async function arriving(at: string, from: Guest, packets: readonly Packet[]): Promise<string[]> {
    const targetOf = (key: string) => key.split(" ").slice(3).join(" ");
    await lab.seen(at);
    await lab.send(from.space, packets);
    const seen = new Set([...(await lab.seen(at))].map(targetOf));
    return packets.map((each) => targetOf(keyOf(each))).filter((target) => seen.has(target));
  }

  /** Every address of the host. */
  async function hostAddresses(): Promise<string[]> {
    const links = JSON.parse(await lab.run(lab.machine, ["ip", "-j", "addr"])) as {
      addr_info: { local: string; broadcast?: string }[];
    }[];
    return links.flatMap(({ addr_info }) => addr_info.flatMap(({ local, broadcast }) => [local, broadcast ?? local]));
  }

  before(async () => {
    lab = await createLab();
    // The cloud's metadata service is beyond the host, and any other link-local address too.
    await lab.ip(lab.machine, [
      "route add 169.254.0.0/16 via 198.18.0.2",
      "route add fd00:ec2::254 via fd18::2",
      "addr add 192.0.2.129/25 brd 192.0.2.255 dev w0",
    ]);
    await lab.ip(lab.internet, ["route add local 169.254.0.0/16 dev lo", "addr add fd00:ec2::254/128 dev lo nodad"]);
    await applyAll();
    guests = [await lab.guest(publicNetwork, one), await lab.guest(sharedNetwork, two)];
    await applyAll();
    // After all other rules.
    await lab.watchAt(lab.machine, "input priority 300");
    for (const { space } of guests) {
      await lab.run(space, ["sysctl", "-eqw", "net.ipv4.conf.all.route_localnet=1", "net.ipv4.ping_group_range=0 0"]);
      // A guest can also route link-local addresses to the edge.
      await lab.ip(space, [
        "route add 169.254.0.0/16 via $GW".replace("$GW", space === guests[0]?.space ? "10.64.0.9" : "10.63.0.1"),
      ]);
    }
    // An address that is added later, without a notification of the driver.
    await lab.ip(lab.machine, ["addr add 192.0.2.77/32 dev lo", "addr add fd77::1/128 dev lo nodad"]);
  });
  after(() => lab?.close());

  test("no packet to an address of the host arrives, with any protocol and port", async () => {
    const addresses = await hostAddresses();
    for (const wanted of ["198.18.0.1", "192.0.2.255", "169.254.1.1", "192.0.2.77", "fd18::1", "fd77::1"])
      assert.ok(addresses.includes(wanted), wanted);
    const places = addresses.map((address) => (address.startsWith("fe80:") ? `${address}%eth0` : address));
    const any = fc.tuple(
      fc.constantFrom(...places),
      fc.constantFrom(TCP, UDP, ICMP),
      fc.integer({ min: 1, max: 65_535 }),
    );
    for (const guest of guests) {
      const sure = places.flatMap((place) => [packet(TCP, guest, place, 8080), packet(UDP, guest, place, 53)]);
      const more = fc.sample(any, 100).map(([place, protocol, to]) => packet(protocol, guest, place, to));
      await lab.send(guest.space, [...sure, ...more]);
    }
    const seen = [...(await lab.seen(lab.machine))].filter((key) => / (10\.6|fd24:)/.test(key));
    assert.deepEqual(seen, []);
  });

  test("link-local addresses and the metadata service are closed in both directions", async () => {
    const random = fc.sample(fc.integer({ min: 0, max: 65_535 }), 60);
    const local = [METADATA, ...random.map((value) => `169.254.${value >> 8}.${value & 255}`)];
    for (const guest of guests) {
      const packets = [...local, "fd00:ec2::254"].map((address) => packet(TCP, guest, address, 80));
      assert.deepEqual(await arriving(lab.internet, guest, packets), []);
      const [own] = guest.port.addresses;
      assert.ok(own);
      await lab.ip(lab.internet, [`addr add ${METADATA}/32 dev lo`]);
      const inward = { protocol: UDP, source: METADATA, sourcePort: 80, destination: own, destinationPort: 68 };
      await lab.ip(lab.internet, ["route replace 10.60.0.0/14 via 198.18.0.1"]);
      await lab.seen(guest.space);
      await lab.send(lab.internet, [inward, { ...inward, source: "198.51.100.5" }]);
      assert.deepEqual([...(await lab.seen(guest.space))], [keyOf({ ...inward, source: "198.51.100.5" })]);
      await lab.ip(lab.internet, [`addr del ${METADATA}/32 dev lo`]);
    }
    // No link carries IPv6 from one link-local address to another.
    for (const guest of guests) {
      const values = fc.sample(fc.bigInt({ min: 1n, max: (1n << 64n) - 1n }), 20);
      const packets = values.map((value) => {
        const groups = value.toString(16).padStart(16, "0").match(/.{4}/g) ?? [];
        return packet(UDP, guest, `fe80::${groups.join(":")}%eth0`, 53);
      });
      await lab.seen(lab.machine);
      await lab.send(guest.space, packets);
      assert.deepEqual([...(await lab.seen(lab.machine))], []);
    }
  });

  test("packets without a connection are dropped too", async () => {
    const [guest] = guests;
    assert.ok(guest);
    const forgingTable =
      "table inet forge { chain o { type filter hook output priority 200; tcp flags syn tcp flags set ack; }; }\n";
    await lab.run(guest.space, ["nft", "-f", "-"], forgingTable);
    try {
      const packets = ["198.18.0.1", METADATA].map((address) => packet(TCP, guest, address, 8080));
      assert.deepEqual(await arriving(lab.machine, guest, packets), []);
      assert.deepEqual(await arriving(lab.internet, guest, packets), []);
    } finally {
      await lab.run(guest.space, ["nft", "delete", "table", "inet", "forge"]);
    }
  });

  test("a port that the host forwards is closed like its address", async () => {
    const forward =
      "table ip forwarded { chain p { type nat hook prerouting priority dstnat; tcp dport 8081 dnat to 198.18.0.2:80; }; }\n";
    await lab.run(lab.machine, ["nft", "-f", "-"], forward);
    try {
      for (const guest of guests) {
        await lab.seen(lab.internet);
        await lab.send(guest.space, [packet(TCP, guest, "198.18.0.1", 8081)]);
        assert.deepEqual([...(await lab.seen(lab.internet))], []);
      }
    } finally {
      await lab.run(lab.machine, ["nft", "delete", "table", "ip", "forwarded"]);
    }
  });

  test("an edge reaches another edge at a forwarded port of the host, and nothing else of the host", async () => {
    const [edge, other] = [`brume-${lab.tag}-7`, `brume-${lab.tag}-8`];
    const [guest] = guests;
    assert.ok(guest);
    const forward = (port: number, to: string) => `udp dport ${port} dnat to ${to};`;
    const rules = `${forward(51_820, sharedNetwork.edgeAddress ?? "")} ${forward(8082, "198.18.0.2:80")}`;
    const table = `table ip forwarded { chain p { type nat hook prerouting priority dstnat; ip daddr 198.18.0.1 ${rules} }; }\n`;
    await lab.run(lab.machine, ["nft", "-f", "-"], table);
    await lab.watchAt(other, "prerouting priority raw");
    try {
      const from = (source: string, to: number): Packet => ({
        protocol: UDP,
        source,
        sourcePort: 1024 + (nextPort++ % 60_000),
        destination: "198.18.0.1",
        destinationPort: to,
      });
      const edgeAddress = publicNetwork.edgeAddress ?? "";
      await Promise.all([lab.machine, lab.internet, other].map((space) => lab.seen(space)));
      await lab.send(
        edge,
        [51_820, 8082, 8083].map((to) => from(edgeAddress, to)),
      );
      await lab.send(
        guest.space,
        [51_820, 8082, 8083].map((to) => from("10.64.0.10", to)),
      );
      const targets = async (space: string) =>
        [...(await lab.seen(space))].map((key) => key.split(" ").slice(3).join(" "));
      assert.deepEqual(await targets(other), [`${sharedNetwork.edgeAddress} 51820`]);
      assert.deepEqual([await targets(lab.internet), await targets(lab.machine)], [[], []]);
    } finally {
      await lab.run(lab.machine, ["nft", "delete", "table", "ip", "forwarded"]);
      await lab.run(other, ["nft", "delete", "table", "inet", "watch"]);
    }
  });

  test("the host reaches its guests; guests reach the internet and each other", async () => {
    for (const { space, port: where } of guests) {
      const [address = "", address6 = ""] = where.addresses;
      const echo = startEndpoint(space, "echo", "22");
      try {
        assert.equal(await echo.line(), "ready");
        for (const target of [address, address6]) {
          const caller = startEndpoint(lab.machine, "send", target, "22");
          try {
            assert.equal(await caller.line(), "connected");
            caller.send("hello");
            assert.equal(await caller.line(), "hello");
          } finally {
            caller.end();
          }
        }
      } finally {
        echo.end();
      }
      const others = ["10.64.0.10", "10.63.0.10"].filter((other) => other !== address);
      for (const target of ["198.18.0.2", ...others])
        assert.ok(await lab.works(space, ["ping", "-n", "-c", "1", "-W", "60", target]), `${address} to ${target}`);
    }
  });

  test("an edge queries the host's name server for its guests, which cannot", async () => {
    const [guest] = guests;
    assert.ok(guest);
    await lab.seen(lab.machine);
    // A query for the address of example.com.
    const question = "000101000001000000000000076578616d706c6503636f6d0000010001";
    const queryProgram = `const s=require("dgram").createSocket("udp4");s.send(Buffer.from("${question}","hex"),53,process.argv[1],()=>s.close())`;
    for (const server of ["198.18.0.1", "10.64.0.9"])
      await lab.run(guest.space, [process.execPath, "-e", queryProgram, server]);
    const queries = async (): Promise<string[]> =>
      [...(await lab.seen(lab.machine))].filter((key) => key.endsWith(" 53"));
    const seen = await until("a question comes", async () => {
      const found = await queries();
      return found.length > 0 && found;
    });
    assert.ok(
      seen.every((key) => key.startsWith(`${UDP} ${publicNetwork.edgeAddress} `)),
      seen.join(),
    );
  });

  test("only the addresses in the setting are open", async () => {
    await applyAll(["192.0.2.77", "169.254.169.0/24", "fd77::1"]);
    try {
      for (const guest of guests) {
        const opened = ["192.0.2.77", "fd77::1"].map((address) => packet(UDP, guest, address, 99));
        const rest = ["198.18.0.1", "fd18::1"].map((address) => packet(UDP, guest, address, 99));
        assert.deepEqual(await arriving(lab.machine, guest, [...opened, ...rest]), ["192.0.2.77 99", "fd77::1 99"]);
        const local = [METADATA, "169.254.170.2"].map((address) => packet(UDP, guest, address, 80));
        assert.deepEqual(await arriving(lab.internet, guest, local), [`${METADATA} 80`]);
      }
    } finally {
      await applyAll();
    }
    const [guest] = guests;
    assert.ok(guest);
    assert.deepEqual(await arriving(lab.machine, guest, [packet(UDP, guest, "192.0.2.77", 99)]), []);
  });

  test("the host's table is removed with the last network", async () => {
    const router = lab.open();
    const tables = () => lab.run(lab.machine, ["nft", "list", "tables"]);
    await router.remove(7);
    assert.match(await tables(), new RegExp(`brume_${lab.tag}\\n`));
    await router.remove(8);
    assert.doesNotMatch(await tables(), new RegExp(`brume_${lab.tag}`));
  });
});
