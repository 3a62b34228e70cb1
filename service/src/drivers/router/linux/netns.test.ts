import assert from "node:assert/strict";
import { test } from "node:test";
import type { NetworkSpec } from "../interface.ts";
import { namespaceOf, networkOf, portOf, tagOf, uplinkOf } from "../model/name.ts";
import {
  arrivingPorts,
  creationLines,
  finishLines,
  forwardingArguments,
  hostUplinkLines,
  leavingLines,
  moveLines,
  portLines,
  settingArguments,
  settings,
  spaceLines,
} from "./netns.ts";
import { shapeLines } from "./shape.ts";
import type { Link, NamespaceState } from "./snapshot.ts";

const spec: NetworkSpec = {
  id: 71,
  generation: 3,
  kind: "public",
  v4: { cidr: "10.64.0.8/29", gateway: "10.64.0.9" },
  v6: { cidr: "fd24:1::/64", gateway: "fd24:1::1" },
  edgeAddress: "10.64.255.2",
  nat: "always",
  mtu: 1500,
  bandwidth: 100,
  firewall: { enabled: false, allow: false, rules: [] },
  tunnels: [],
  wireguard: null,
  ports: [
    { id: 38, device: "t38", mac: "02:42:00:00:00:20", addresses: ["10.64.0.10"], bandwidth: 10, name: "a" },
    { id: 39, device: "t39", mac: "02:42:00:00:00:21", addresses: ["10.64.0.11"], bandwidth: null, name: "b" },
  ],
  dhcp: { enabled: true, router: "10.64.0.9", dns: [] },
  dnsForwarders: [],
  closed: [],
};
const site = { tag: "x1y", hostNamespace: null };
const link = (name: string, spec: Partial<Link> = {}): Link => ({
  name,
  kind: "veth",
  master: null,
  up: true,
  carrier: true,
  isolated: false,
  mtu: 1500,
  mac: "",
  alias: "",
  addresses: [],
  sent: { packets: 0, bytes: 0 },
  received: { packets: 0, bytes: 0 },
  ...spec,
});
const found = (links: readonly Link[], spec: Partial<NamespaceState> = {}): NamespaceState => ({
  links: new Map(links.map((each) => [each.name, each])),
  routes: new Set(),
  rates: new Map(),
  counters: new Map(),
  settings: new Map(),
  rules: "",
  ...spec,
});

/** Everything of the image as it is when it is in force. */
const complete = found(
  [
    link("lo", { alias: "brume 71 3" }),
    link("br0", { kind: "bridge", addresses: ["10.64.0.9/29", "fd24:1::1/64", "fe80::400:ff:fe00:47/64"] }),
    link("up0", { addresses: ["10.64.255.2/32", "fe80::2/64", "fe80::a0b/64"] }),
    link("p12", { master: "br0" }),
    link("i12", { kind: "ifb" }),
    link("p13", { master: "br0" }),
    link("ipsec0", { kind: "tun" }),
  ],
  {
    routes: new Set(["default via 169.254.1.1 dev up0", "default via fe80::1 dev up0"]),
    rates: new Map([
      ["up0", 100],
      ["br0", 100],
      ["p12", 10],
      ["i12", 10],
    ]),
    settings: new Map(Object.entries(settings(spec))),
  },
);

test("names fit into the limit and identify their network", () => {
  const tag = tagOf("/var/lib/brume");
  assert.match(tag, /^[0-9a-z]{3}$/);
  assert.notEqual(tag, tagOf("/var/lib/brume2"));
  assert.equal(networkOf(tag, namespaceOf(tag, 71)), 71);
  for (const foreign of [
    `brume-zz!-1z`,
    `brume-${tag}-`,
    `brume-${tag}-1Z`,
    `brume-${tag}-trial!`,
    "docker",
    `brume-${tag}-01`,
  ])
    assert.equal(networkOf(tag, foreign), null, foreign);
  assert.equal(uplinkOf("x1y", 71), "bx1yu1z");
  assert.equal(portOf(36 ** 8 - 1), "pzzzzzzzz");
  assert.throws(() => uplinkOf("x1y", Number.MAX_SAFE_INTEGER), /15 characters/);
});

test("a new network, line by line", () => {
  assert.deepEqual(creationLines(spec, site, false), [
    "netns add brume-x1y-1z",
    "link add bx1yu1z type veth peer name up0 netns brume-x1y-1z",
  ]);
  assert.deepEqual(spaceLines(spec, null), [
    'link set lo alias "brume 71 0"',
    "link set lo up",
    "link add br0 address 06:00:00:00:00:47 mtu 1500 type bridge",
    "addr add 10.64.0.9/29 dev br0",
    "addr add fd24:1::1/64 dev br0 nodad",
    "link set br0 up",
    "addr add 10.64.255.2/32 dev up0",
    "addr add fe80::2/64 dev up0 nodad",
    "link set up0 up",
    "route replace default via 169.254.1.1 dev up0 onlink src 10.64.255.2",
    "route replace default via fe80::1 dev up0",
  ]);
  assert.deepEqual(hostUplinkLines(spec, site, undefined, null), [
    "addr add 169.254.1.1/32 dev bx1yu1z",
    "addr add fe80::1/64 dev bx1yu1z nodad",
    "link set bx1yu1z up",
    "route add 10.64.255.2/32 dev bx1yu1z",
    "route add 10.64.0.8/29 via 10.64.255.2 dev bx1yu1z onlink",
    "route add fd24:1::/64 via fe80::2 dev bx1yu1z",
  ]);
  const coming = arrivingPorts(
    spec,
    new Map([
      ["t38", link("t38")],
      ["eth0", link("eth0")],
    ]),
  );
  assert.deepEqual(
    coming.map(({ id }) => id),
    [38],
  );
  assert.deepEqual(moveLines(spec, site, coming), ["link set t38 netns brume-x1y-1z name p12"]);
  assert.deepEqual(portLines(spec, null, coming), [
    "link set p12 mtu 1500",
    "link set p12 master br0",
    "link set p12 type bridge_slave isolated off",
    "link add i12 type ifb",
    "link set i12 up",
  ]);
  assert.deepEqual(shapeLines(spec, null, new Set([38])), [
    "qdisc replace dev up0 root tbf rate 100mbit burst 125000 latency 50ms",
    "qdisc replace dev br0 root tbf rate 100mbit burst 125000 latency 50ms",
    "qdisc replace dev p12 root tbf rate 10mbit burst 20000 latency 50ms",
    "qdisc replace dev p12 ingress",
    "filter replace dev p12 parent ffff: protocol all prio 1 handle 800::800 u32 match u32 0 0 action mirred egress redirect dev i12",
    "qdisc replace dev i12 root tbf rate 10mbit burst 20000 latency 50ms",
  ]);
  assert.deepEqual(finishLines(spec, null, coming), [
    "link set p12 up",
    "neigh replace 10.64.0.10 lladdr 02:42:00:00:00:20 dev br0 nud stale",
    'link set lo alias "brume 71 3"',
  ]);
  assert.equal(settingArguments(spec, null).length, Object.keys(settings(spec)).length);
});

test("a network that is complete needs nothing", () => {
  assert.deepEqual(spaceLines(spec, complete), []);
  assert.deepEqual(portLines(spec, complete, []), []);
  assert.deepEqual(leavingLines(spec, complete, []), []);
  assert.deepEqual(shapeLines(spec, complete, new Set()), []);
  assert.deepEqual(finishLines(spec, complete, []), []);
  assert.deepEqual(settingArguments(spec, complete), []);
  const uplink = link("bx1yu1z", { addresses: ["169.254.1.1/32", "fe80::1/64", "fe80::77/64"] });
  const routes = new Set([
    "10.64.255.2 dev bx1yu1z",
    "10.64.0.8/29 via 10.64.255.2 dev bx1yu1z",
    "fd24:1::/64 via fe80::2 dev bx1yu1z",
  ]);
  assert.deepEqual(hostUplinkLines(spec, site, uplink, routes), []);
});

test("a route that is lost comes back, one of another device is not taken", () => {
  const uplink = link("bx1yu1z", { addresses: ["169.254.1.1/32", "fe80::1/64"] });
  assert.deepEqual(hostUplinkLines(spec, site, uplink, new Set(["default via 198.18.0.2 dev w0"])), [
    "route replace 10.64.255.2/32 dev bx1yu1z",
    "route replace 10.64.0.8/29 via 10.64.255.2 dev bx1yu1z onlink",
    "route replace fd24:1::/64 via fe80::2 dev bx1yu1z",
  ]);
  for (const foreign of ["10.64.255.2 dev babcu1", "10.64.0.8/29 via 10.9.9.9 dev eth0", "fd24:1::/64 dev eth0"])
    assert.throws(() => hostUplinkLines(spec, site, uplink, new Set([foreign])), {
      message: `the host already has a route to the network over another device: ${foreign}`,
    });
});

test("ports are removed with their limits, and others stay", () => {
  const without = { ...spec, ports: spec.ports.slice(1) };
  assert.deepEqual(leavingLines(without, complete, []), ["link del p12"]);
  assert.deepEqual(finishLines(without, complete, []), ["link del i12"]);
  const unlimited = { ...spec, bandwidth: null, ports: spec.ports.map((port) => ({ ...port, bandwidth: null })) };
  assert.deepEqual(shapeLines(unlimited, complete, new Set()), [
    "qdisc del dev up0 root",
    "qdisc del dev br0 root",
    "qdisc del dev p12 root",
    "qdisc replace dev p12 ingress",
    "qdisc del dev p12 ingress",
  ]);
  // A server that was started anew brings a new device of the old name.
  assert.deepEqual(leavingLines(spec, complete, spec.ports.slice(0, 1)), ["link del p12"]);
});

test("only differences are corrected", () => {
  const other = found(
    [...complete.links.values()].map((each) =>
      each.name === "br0" ? { ...each, addresses: ["10.64.0.1/29"], up: false } : each,
    ),
    { ...complete, links: complete.links, settings: new Map([...complete.settings, ["net.ipv4.ip_forward", "0"]]) },
  );
  const damaged = {
    ...complete,
    links: new Map([
      ...complete.links,
      ["br0", link("br0", { kind: "bridge", addresses: ["10.64.0.1/29", "fd24:1::1/64"], up: false })],
    ]),
  };
  assert.deepEqual(spaceLines(spec, damaged), [
    "addr del 10.64.0.1/29 dev br0",
    "addr add 10.64.0.9/29 dev br0",
    "link set br0 up",
  ]);
  assert.deepEqual(settingArguments(spec, other), ["net.ipv4.ip_forward=1"]);
  // A name that this kernel does not know is not set again and again.
  assert.deepEqual(settingArguments(spec, { ...complete, settings: new Map() }), []);
});

test("the mark is written also if only the counter of a table has the generation", () => {
  const counted = new Map([["edge0", new Map([["g_3", { packets: 0, bytes: 0 }]])]]);
  const marked = (alias: string): NamespaceState => ({
    ...complete,
    links: new Map([...complete.links, ["lo", link("lo", { alias })]]),
    counters: counted,
  });
  assert.deepEqual(finishLines(spec, marked("brume 71 2"), []), ['link set lo alias "brume 71 3"']);
  assert.deepEqual(finishLines(spec, marked("brume 71 3"), []), []);
});

test("a private network has no uplink, and speaks only as its DHCP server", () => {
  const inner: NetworkSpec = {
    ...spec,
    kind: "private",
    edgeAddress: null,
    v6: null,
    v4: { cidr: "172.16.0.0/24", gateway: null },
  };
  assert.deepEqual(creationLines(inner, site, false), ["netns add brume-x1y-1z"]);
  assert.deepEqual(spaceLines(inner, null).slice(3), ["addr add 169.254.1.1/32 dev br0", "link set br0 up"]);
  assert.deepEqual(hostUplinkLines(inner, site, undefined, new Set()), []);
  assert.deepEqual(forwardingArguments(inner, new Map(), ["eth0"]), []);
  assert.equal(settings(inner)["net.ipv4.ip_forward"], "0");
});

test("shared networks keep their ports apart", () => {
  const shared: NetworkSpec = { ...spec, kind: "shared" };
  assert.deepEqual(portLines(shared, complete, []), [
    "link set p12 type bridge_slave isolated on",
    "link set p13 type bridge_slave isolated on",
  ]);
  assert.equal(settings(shared)["net.ipv4.conf.br0.proxy_arp_pvlan"], "1");
});

test("a host that begins to forward IPv6 still accepts its own router", () => {
  const off = new Map([
    ["net.ipv4.ip_forward", "1"],
    ["net.ipv6.conf.all.forwarding", "0"],
  ]);
  assert.deepEqual(forwardingArguments(spec, off, ["lo", "eth0"]), [
    "net/ipv6/conf/lo/accept_ra=2",
    "net/ipv6/conf/eth0/accept_ra=2",
    "net.ipv6.conf.all.forwarding=1",
  ]);
  assert.deepEqual(forwardingArguments({ ...spec, v6: null }, new Map(), ["eth0"]), ["net.ipv4.ip_forward=1"]);
});
