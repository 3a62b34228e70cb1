/**
 * How many connections a network and each of its servers may have, so that none fills the tables of connections of the edge and of the
 * host, where translated ones are counted too. For a server the kernel counts those that are alive (`ct count`), under the server's
 * number in its network, which is the same for IPv4 and IPv6. That count walks a list of all of them, so it is split into short lists, of
 * which each connection takes one at random; and it leaves out what has ended. So each connection of the network also has an element in a set of limited size, which goes when the connection was idle for
 * about as long as the kernel remembers it. A connection that ended is remembered for two minutes, so new ones are admitted at such a
 * rate that they are renewed in that time. Only new connections are refused.
 */
import { prefixLength } from "../../../base/address.ts";
import { BRIDGE, UPLINK } from "../model/name.ts";
import { tableText } from "./firewall.ts";

export interface Limits {
  /** Connections of a network. */
  readonly network: number;
  /** Connections of a server. */
  readonly server: number;
  /** A second, that a server sends. */
  readonly packets: number;
}

export const usualLimits: Limits = { network: 65_536, server: 16_384, packets: 200_000 };

/** Seconds that the kernel remembers a connection that has ended. */
const memory = 120;

/** Questions to the DNS of the edge that a server may ask, a second and at once: dnsmasq keeps one that has no answer for 10 seconds, and takes 2000 of all servers together. */
const asked = "limit rate over 100/second burst 200 packets";

const pace = (limit: number): string =>
  `limit rate over ${Math.max(1, Math.floor(limit / memory))}/second burst ${limit} packets`;

/** Connections of a list that the kernel walks for each new connection. */
const listed = 64;

/** Bit of the network header at which the last 32 bits of an address begin. */
const addressEnds = {
  ipv4: { saddr: 96, daddr: 128 },
  ipv6: { saddr: 160, daddr: 288 },
} as const;

/**
 * Table `flows`: counter `crowded` for the connections that were refused. It depends on nothing that changes often, since a new one
 * counts anew. `cidr` is the network's IPv4 block: a server has the same number in it as in the IPv6 block.
 */
export function flowsText({ network, server }: Limits, cidr: string, v6: boolean): string {
  const families = v6 ? (["ip", "ip6"] as const) : (["ip"] as const);
  const protocols = v6 ? (["ipv4", "ipv6"] as const) : (["ipv4"] as const);
  const mask = `0x${(2 ** (32 - prefixLength(cidr)) - 1).toString(16).padStart(8, "0")}`;
  const typeOf = (family: "ip" | "ip6") => (family === "ip" ? "ipv4_addr" : "ipv6_addr");
  /** Of the server at either end: two servers of a shared network have one each. */
  const ends = protocols.flatMap((protocol) =>
    (["saddr", "daddr"] as const).map((field) => {
      const device = `${field === "saddr" ? "iifname" : "oifname"} "${BRIDGE}"`;
      const number = `@nh,${addressEnds[protocol][field]},32 & ${mask}`;
      return `  ${device} meta nfproto ${protocol} meta mark set ${number} jump server`;
    }),
  );
  const hook = (name: string, body: readonly string[]) => [
    `chain ${name} {`,
    `  type filter hook ${name} priority filter + 20; policy accept;`,
    ...body.map((line) => `  ${line}`),
    "}",
  ];
  const element = "{ ct id }";
  const lists = Math.max(1, Math.floor(server / listed));
  const list = `meta mark . numgen random mod ${lists}`;
  return tableText("inet", "flows", [
    "counter crowded { }",
    "set pace { type mark; size 65535; flags dynamic; }",
    // Of a server and one of its lists.
    `set servers { typeof meta mark . ct id; size ${Math.max(65_535, 2 * network)}; flags dynamic; }`,
    ...families.map(
      (family) => `set asked_${family} { type ${typeOf(family)}; size 4096; timeout 10s; flags dynamic,timeout; }`,
    ),
    `set whole { typeof ct id; size ${network}; timeout ${memory}s; flags dynamic,timeout; }`,
    "chain full {",
    "  counter name crowded drop",
    "}",
    "chain server {",
    `  update @pace { meta mark ${pace(server)} } goto full`,
    `  add @servers { ${list} ct count over ${Math.ceil(server / lists)} } goto full`,
    "}",
    "chain keep {",
    `  tcp flags & (fin | rst) != 0 update @whole ${element} accept`,
    // Now and then is often enough.
    "  numgen random mod 16 != 0 accept",
    // So long the kernel remembers only what is established.
    "  ct expiration > 600s update @whole { ct id timeout 2h } accept",
    `  update @whole ${element}`,
    "}",
    "chain fresh {",
    // Neighbours that IPv6 looks for: they have no connection, and so no element below.
    "  ct state untracked accept",
    "  ct status confirmed goto keep",
    ...ends,
    "  meta mark set 0",
    `  ${pace(network)} goto full`,
    `  add @whole ${element} accept`,
    "  goto full",
    "}",
    ...hook("forward", ["goto fresh"]),
    // Questions that the edge answers or asks on are connections too.
    ...hook("input", [
      ...families.flatMap((family) =>
        ["udp dport 53", "tcp dport 53 tcp flags & (syn | ack) == syn"].map(
          (question) => `iifname "${BRIDGE}" ${question} update @asked_${family} { ${family} saddr ${asked} } drop`,
        ),
      ),
      `iifname "${BRIDGE}" goto fresh`,
    ]),
    ...hook("output", [`oifname "${UPLINK}" meta l4proto { tcp, udp } th dport 53 goto fresh`]),
  ]);
}
