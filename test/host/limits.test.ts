/** One guest cannot exhaust shared resources: connection tables, neighbour tables, switch ports and CPU time. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { type Exec, exec } from "../../service/src/drivers/exec.ts";
import type { Router } from "../../service/src/drivers/router/interface.ts";
import { createLab, type Guest, hindrance, type Lab } from "../support/netnslab.ts";
import { image, port } from "../support/networkspec.ts";

if (hindrance !== null) console.log(`limits of guests: not tried, ${hindrance}`);

const TCP = 6;
/** The server with this number in both blocks. */
const numbered = (id: number, number: number) => {
  const address = `10.63.${number >> 8}.${number & 255}`;
  return port(id, address, { addresses: [address, `fd24:2::${number.toString(16)}`] });
};
const one = numbered(1, 10);
const two = numbered(2, 11);
const three = numbered(3, 12);
const four = numbered(4, 26);
const five = numbered(5, 266);
const network = image({
  kind: "shared",
  v4: { cidr: "10.63.0.0/16", gateway: "10.63.0.1" },
  v6: { cidr: "fd24:2::/64", gateway: "fd24:2::1" },
  ports: [one, two, three, four, five],
  nat: "always",
  dnsForwarders: ["198.18.0.2"],
});
const limits = { network: 400, server: 64, packets: 200_000 };

describe("limits of guests", { skip: hindrance ?? false, concurrency: false }, () => {
  let lab: Lab;
  let router: Router;
  let [greedy, modest, other, alike, sixth]: Guest[] = [];
  let generation = 0;
  const apply = () => router.apply({ ...network, generation: ++generation });
  const edge = () => `brume-${lab.tag}-7`;
  const at = (guest: Guest | undefined): Guest => {
    assert.ok(guest);
    return guest;
  };
  let nextPort = 2000;
  /** Returns how many of the attempted connections to the internet are opened: their first packets arrive there. */
  async function arriving(guest: Guest, count: number, family: 4 | 6 = 4): Promise<number> {
    await lab.seen(lab.internet);
    const ports = Array.from({ length: count }, () => nextPort++);
    const target = family === 4 ? "198.18.0.2" : "fd18::2";
    const script = `const s=require("dgram").createSocket("udp${family}");s.bind(4000,async()=>{for(const p of JSON.parse(process.argv[1]))await new Promise(r=>s.send("x",p,"${target}",r));s.close()})`;
    await lab.run(guest.space, [process.execPath, "-e", script, JSON.stringify(ports)]);
    const seen = new Set([...(await lab.seen(lab.internet))].map((key) => Number(key.split(" ")[4])));
    return ports.filter((port) => seen.has(port)).length;
  }
  /** Resets the rate limits of new connections, as after two minutes without traffic. */
  const forgetPace = async (): Promise<void> => {
    const listing = await lab.run(edge(), ["nft", "list", "tables"]);
    const [, table = ""] = /table inet (flows\d)/.exec(listing) ?? [];
    await lab.run(edge(), ["nft", "flush", "set", "inet", table, "pace"]);
  };
  const connections = async (space: string): Promise<number> =>
    Number(await lab.run(space, ["sysctl", "-n", "net.netfilter.nf_conntrack_count"]));
  const crowded = async (): Promise<number> => {
    const status = (await router.observe(7)).networks[0];
    assert.ok(status);
    assert.deepEqual(status.missing, []);
    return status.overLimit.packets;
  };

  before(async () => {
    lab = await createLab();
    router = lab.open({ limits });
    await apply();
    greedy = await lab.guest(network, one);
    modest = await lab.guest(network, two);
    other = await lab.guest(network, three);
    alike = await lab.guest(network, four);
    sixth = await lab.guest(network, five);
    await apply();
  });
  after(() => lab?.close());

  test("a guest opens connections up to its limit, and other guests are not affected", async () => {
    const [before, host] = [await crowded(), await connections(lab.machine)];
    const most = await arriving(at(greedy), 500);
    assert.ok(most > limits.server / 2 && most <= limits.server + 2, `${most} connections`);
    assert.ok((await connections(lab.machine)) - host <= limits.server + 4, "on the host");
    assert.ok((await crowded()) > before);
    assert.equal(await arriving(at(modest), 4), 4);
    // The limit holds while the old connections are tracked, also after a pause.
    await forgetPace();
    assert.ok((await arriving(at(greedy), 500)) + most <= limits.server + 2);
  });

  test("servers with similar addresses do not share a limit", async () => {
    await forgetPace();
    await arriving(at(greedy), 500);
    await forgetPace();
    assert.equal(await arriving(at(greedy), 5), 0, "it has all that it may");
    assert.equal(await arriving(at(alike), 40), 40);
    assert.equal(await arriving(at(alike), 5, 6), 5);
  });

  test("IPv4 and IPv6 count together, and neighbour discovery still works", async () => {
    const { space } = at(sixth);
    const [before, host] = [await crowded(), await connections(lab.machine)];
    const most = await arriving(at(sixth), 500, 6);
    assert.ok(most > limits.server / 2 && most <= limits.server + 2, `${most} connections`);
    assert.ok((await connections(lab.machine)) - host <= limits.server + 4, "on the host");
    assert.ok((await crowded()) > before);
    await forgetPace();
    assert.ok((await arriving(at(sixth), 100)) + most <= limits.server + 2, "the rest by IPv4");
    assert.equal(await arriving(at(modest), 4, 6), 4);
    // Each side resolves the other again.
    await lab.ip(edge(), ["neigh flush dev br0"]);
    assert.ok(await lab.works(edge(), ["ping", "-6", "-n", "-c", "1", "-W", "60", "fd24:2::10a"]));
    await lab.ip(space, ["neigh flush dev eth0"]);
    assert.equal(await arriving(at(sixth), 1, 6), 0);
    assert.match(await exec.run(["ip", "-n", space, "neigh", "show", "fd24:2::1", "dev", "eth0"]), /lladdr/);
  });

  test("TCP counts like UDP", async () => {
    const { space } = at(other);
    await lab.run(space, ["ping", "-c", "1", "-W", "60", "198.18.0.2"]);
    await lab.seen(lab.internet);
    const before = await crowded();
    const packets = Array.from({ length: 200 }, (_, index) => ({
      protocol: TCP,
      source: "10.63.0.12",
      sourcePort: 6000 + index,
      destination: "198.18.0.2",
      destinationPort: nextPort++,
    }));
    await lab.send(space, packets);
    const seen = new Set([...(await lab.seen(lab.internet))].map((key) => Number(key.split(" ")[4])));
    const came = packets.filter(({ destinationPort }) => seen.has(destinationPort)).length;
    assert.ok(came > limits.server / 4 && came <= limits.server, `${came} connections`);
    assert.ok((await crowded()) > before);
  });

  test("table entries from packets are not drift", async () => {
    const parts: string[] = [];
    const same = { ...network, generation };
    await router.apply(same, (part) => parts.push(part));
    await arriving(at(modest), 1);
    await router.apply(same, (part) => parts.push(part));
    assert.deepEqual(parts, []);
  });

  test("table entries from packets are not read, and an entry of ours that another program removed is restored", async () => {
    const outputs: string[] = [];
    const listening: Exec = {
      ...exec,
      async run(argv, options) {
        const output = await exec.run(argv, options);
        outputs.push(output);
        return output;
      },
    };
    const second = lab.open({ exec: listening, limits });
    const same = { ...network, generation };
    const parts: string[] = [];
    // The second apply notes the tables, with which the next ones are compared.
    for (let turn = 0; turn < 2; turn++) {
      await arriving(at(modest), 1);
      await second.apply(same, (part) => parts.push(part));
    }
    await second.observe(7);
    const listing = await lab.run(edge(), ["nft", "list", "ruleset"]);
    assert.match(listing, /set whole \{[^}]*elements = \{/);
    const tables = outputs.filter((output) => output.includes("set whole {"));
    assert.ok(tables.length >= 3);
    for (const output of tables) assert.doesNotMatch(output, /set whole \{[^}]*elements/);
    assert.equal(parts.length, 0, parts.join());
    const table = /table bridge (lock\d)/.exec(listing)?.[1] ?? "";
    const element = `"p${three.id}" . ${three.mac}`;
    await lab.run(edge(), ["nft", "delete", "element", "bridge", table, "l2", `{ ${element} }`]);
    await second.apply(same, (part) => parts.push(part));
    assert.deepEqual([...parts], ["firewall"]);
    assert.ok((await lab.run(edge(), ["nft", "list", "ruleset"])).includes(element));
  });

  test("unused addresses take no space in the neighbour table", async () => {
    const { space } = at(greedy);
    await lab.ip(space, ["route add 10.63.128.0/17 via 10.63.0.1", "route add fd24:2:0:0:8000::/65 via fd24:2::1"]);
    const names = Array.from({ length: 40 }, (_, index) => `10.63.200.${index + 1}`);
    const names6 = Array.from({ length: 40 }, (_, index) => `fd24:2::8000:0:0:${index + 1}`);
    const script = (family: 4 | 6) =>
      `const s=require("dgram").createSocket("udp${family}");s.bind(4000,async()=>{for(const h of JSON.parse(process.argv[1]))await new Promise(r=>s.send("x",99,h,r));s.close()})`;
    // Packets of existing connections: new ones would exceed the limits.
    const second = lab.open();
    generation++;
    await second.apply({ ...network, generation });
    await lab.run(space, [process.execPath, "-e", script(4), JSON.stringify(names)]);
    await lab.run(space, [process.execPath, "-e", script(6), JSON.stringify(names6)]);
    const listing = await exec.run(["ip", "-n", edge(), "neigh", "show", "dev", "br0"]);
    assert.doesNotMatch(listing, /10\.63\.200\.|:8000:/);
    assert.match(listing, /10\.63\.0\.1[01] /);
    await apply();
  });

  test("neighbours that a guest invents leave space for others", async () => {
    const { space, port: own } = at(alike);
    await lab.run(space, ["sysctl", "-qw", "net.ipv6.ip_nonlocal_bind=1"]);
    assert.ok(await lab.works(space, ["ping", "-6", "-n", "-c", "1", "-W", "60", "fd24:2::1"]));
    const index = (await lab.run(space, ["cat", "/sys/class/net/eth0/ifindex"])).trim();
    // Each solicitation comes from another link-local address: type, code, sum, four bytes, target, own hardware address.
    const script = `use Socket qw(:all); my ($count, $index, $mac) = @ARGV; my $edge = inet_pton(AF_INET6, "fd24:2::1");
      for my $i (1 .. $count) {
        socket(my $s, AF_INET6, SOCK_RAW, 58) or die $!; setsockopt($s, 41, 16, pack("i", 255)) or die $!;
        bind($s, pack_sockaddr_in6(0, inet_pton(AF_INET6, sprintf("fe80::1:%x", $i)), $index)) or die $!;
        my $to = pack_sockaddr_in6(0, $edge, 0);
        send($s, pack("CCnN", 135, 0, 0, 0) . $edge . pack("CC", 1, 1) . pack("H12", $mac), 0, $to) or die $!;
      }`;
    const count = 4000;
    await lab.run(space, ["perl", "-e", script, `${count}`, index, own.mac.replaceAll(":", "")]);
    const listing = await exec.run(["ip", "-n", edge(), "neigh", "show", "dev", "br0"]);
    const made = listing.match(/fe80::1:/g)?.length ?? 0;
    assert.ok(made > 0 && made < count / 2, `${made} of ${count}`);
    await lab.ip(edge(), ["neigh flush dev br0"]);
    await lab.ip(at(modest).space, ["neigh flush dev eth0"]);
    assert.equal(await arriving(at(modest), 2, 6), 2);
  });

  test("foreign MAC addresses take no space in the switch", async () => {
    const { space, port: own } = at(greedy);
    const macs = Array.from({ length: 8 }, (_, index) => `02:99:00:00:00:0${index}`);
    for (const mac of macs) {
      await lab.ip(space, [`link set eth0 address ${mac}`]);
      await lab.works(space, ["ping", "-c", "1", "-W", "0.1", "10.63.0.1"]);
    }
    const listing = await exec.run(["bridge", "-n", edge(), "fdb", "show", "br", "br0"]);
    assert.doesNotMatch(listing, /02:99:/);
    await lab.ip(space, [`link set eth0 address ${own.mac}`, "route replace default via 10.63.0.1"]);
  });

  test("DNS queries of one guest do not block the name server for others", async () => {
    const counterTable =
      "table inet tally {\n counter c { }\n chain i {\n type filter hook input priority 30; policy accept;\n udp dport 53 counter name c\n }\n}\n";
    await lab.run(edge(), ["nft", "-f", "-"], counterTable);
    const sent = 1500;
    const script = `const s=require("dgram").createSocket("udp4");(async()=>{for(let i=0;i<${sent};i++)await new Promise(r=>s.send("x",53,"10.63.0.1",r));s.close()})()`;
    const sendAndCount = async (guest: Guest): Promise<number> => {
      await lab.run(guest.space, [process.execPath, "-e", script]);
      const listing = await lab.run(edge(), ["nft", "reset", "counters", "table", "inet", "tally"]);
      return Number(/packets (\d+)/.exec(listing)?.[1]);
    };
    const came = await sendAndCount(at(greedy));
    assert.ok(came >= 200 && came < sent, `${came} of ${sent}`);
    assert.ok((await sendAndCount(at(other))) >= 200, "another guest has its own share");
    await lab.run(edge(), ["nft", "delete", "table", "inet", "tally"]);
  });

  test("small packets are counted too", async () => {
    router = lab.open({ limits: { network: 65_536, server: 16_384, packets: 100 } });
    await apply();
    const sent = 3000;
    const counterTable =
      "table inet tally {\n counter c { }\n chain i {\n type filter hook prerouting priority raw; policy accept;\n udp dport 9999 counter name c\n }\n}\n";
    await lab.run(lab.internet, ["nft", "-f", "-"], counterTable);
    const script = `const s=require("dgram").createSocket("udp4");(async()=>{for(let i=0;i<${sent};i++)await new Promise(r=>s.send("x",9999,"198.18.0.2",r));s.close()})()`;
    await lab.run(at(greedy).space, [process.execPath, "-e", script]);
    const listing = await lab.run(lab.internet, ["nft", "list", "counters", "table", "inet", "tally"]);
    const came = Number(/packets (\d+)/.exec(listing)?.[1]);
    assert.ok(came > 0 && came < sent / 2, `${came} of ${sent}`);
    assert.ok(await lab.works(at(modest).space, ["ping", "-n", "-c", "1", "-W", "60", "198.18.0.2"]));
  });
});
