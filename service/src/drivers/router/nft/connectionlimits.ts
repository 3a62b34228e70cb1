/**
 * Renders table `flows`, which limits the connections of a network and of each server, so that none fills the connection tables of the edge
 * and of the host. Only new connections are refused. For a server the kernel counts live connections (`ct count`) under the server's number
 * in its network, which is the same for IPv4 and IPv6. That count walks a list, so it is split into short lists of which each connection
 * uses a random one; it does not include ended connections. So each connection of the network also has an element in a set of limited size,
 * which expires when the kernel drops the idle connection. The kernel remembers an ended connection for two minutes, so the rate of new
 * connections is limited accordingly.
 */
import { prefixLength } from "../../../base/address.ts";
import { BRIDGE, UPLINK } from "../model/name.ts";
import { tableText } from "./firewall.ts";

/** Limits of connections and packets. */
export interface Limits {
  /** Most connections of a network. */
  readonly network: number;
  /** Most connections of a server. */
  readonly server: number;
  /** Most packets per second that a server sends. */
  readonly packets: number;
}

/** Default limits. */
export const usualLimits: Limits = { network: 65_536, server: 16_384, packets: 200_000 };

/** Seconds that the kernel remembers an ended connection. */
const rememberedFor = 120;

/**
 * Rate of DNS queries of one server to the edge. dnsmasq keeps an unanswered query for 10 seconds, and accepts 2000 of all servers
 * together.
 */
const queryRate = "limit rate over 100/second burst 200 packets";

const pace = (limit: number): string =>
  `limit rate over ${Math.max(1, Math.floor(limit / rememberedFor))}/second burst ${limit} packets`;

/** Length of a list that the kernel walks for each new connection. */
const listed = 64;

/** Bit offset in the network header of the last 32 bits of an address. */
const addressEnds = {
  ipv4: { saddr: 96, daddr: 128 },
  ipv6: { saddr: 160, daddr: 288 },
} as const;

/**
 * Renders the table; counter `crowded` counts refused connections. The text contains nothing that changes often, because a new table counts
 * anew. `cidr` is the network's IPv4 block: a server has the same number in it as in the IPv6 block.
 */
export function flowsText({ network, server }: Limits, cidr: string, v6: boolean): string {
  const families = v6 ? (["ip", "ip6"] as const) : (["ip"] as const);
  const protocols = v6 ? (["ipv4", "ipv6"] as const) : (["ipv4"] as const);
  const mask = `0x${(2 ** (32 - prefixLength(cidr)) - 1).toString(16).padStart(8, "0")}`;
  const typeOf = (family: "ip" | "ip6") => (family === "ip" ? "ipv4_addr" : "ipv6_addr");
  /** Rules for the server at either end: two servers of a shared network have one each. */
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
    // Elements: server with list number, connection.
    `set servers { typeof meta mark . ct id; size ${Math.max(65_535, 2 * network)}; flags dynamic; }`,
    ...families.map(
      (family) => `set asked_${family} { type ${typeOf(family)}; size 4096; timeout 10s; flags dynamic,timeout; }`,
    ),
    `set whole { typeof ct id; size ${network}; timeout ${rememberedFor}s; flags dynamic,timeout; }`,
    "chain full {",
    "  counter name crowded drop",
    "}",
    "chain server {",
    `  update @pace { meta mark ${pace(server)} } goto full`,
    `  add @servers { ${list} ct count over ${Math.ceil(server / lists)} } goto full`,
    "}",
    "chain keep {",
    `  tcp flags & (fin | rst) != 0 update @whole ${element} accept`,
    // One packet in 16 is enough to renew the element.
    "  numgen random mod 16 != 0 accept",
    // The kernel remembers only established connections for so long.
    "  ct expiration > 600s update @whole { ct id timeout 2h } accept",
    `  update @whole ${element}`,
    "}",
    "chain fresh {",
    // IPv6 neighbour discovery has no connection, and so no element below.
    "  ct state untracked accept",
    "  ct status confirmed goto keep",
    ...ends,
    "  meta mark set 0",
    `  ${pace(network)} goto full`,
    `  add @whole ${element} accept`,
    "  goto full",
    "}",
    ...hook("forward", ["goto fresh"]),
    // DNS queries that the edge resolves or forwards are connections too.
    ...hook("input", [
      ...families.flatMap((family) =>
        ["udp dport 53", "tcp dport 53 tcp flags & (syn | ack) == syn"].map(
          (question) => `iifname "${BRIDGE}" ${question} update @asked_${family} { ${family} saddr ${queryRate} } drop`,
        ),
      ),
      `iifname "${BRIDGE}" goto fresh`,
    ]),
    ...hook("output", [`oifname "${UPLINK}" meta l4proto { tcp, udp } th dport 53 goto fresh`]),
  ]);
}
