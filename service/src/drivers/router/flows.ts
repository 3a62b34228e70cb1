/**
 * How many connections a network and each of its servers may have, so that none fills the tables of connections of the edge and of the
 * host, where translated ones are counted too. The kernel's own count of connections takes longer the more there are, so here each
 * connection has an element in a set of limited size, which goes when the connection was idle for about as long as the kernel
 * remembers it. A connection that ended is remembered for two minutes, so new ones are admitted at such a rate that they are renewed
 * in that time. Only new connections are refused.
 */
import { BRIDGE, UPLINK } from "./name.ts";
import { tableText } from "./nft.ts";

export interface Limits {
  /** Connections of a network. */
  readonly network: number;
  /** Connections of a server. */
  readonly server: number;
  /** A second, that a server sends. */
  readonly packets: number;
}

export const usualLimits: Limits = { network: 65_536, server: 16_384, packets: 200_000 };

/** Servers share a set when their addresses have the same last four bits. */
const groups = 16;
/** Seconds that the kernel remembers a connection that has ended. */
const memory = 120;

/** Questions to the DNS of the edge that a server may ask, a second and at once: dnsmasq keeps one that has no answer for 10 seconds, and takes 2000 of all servers together. */
const asked = "limit rate over 100/second burst 200 packets";

const pace = (limit: number): string =>
  `limit rate over ${Math.max(1, Math.floor(limit / memory))}/second burst ${limit} packets`;

/** Table `flows`: counter `crowded` for the connections that were refused. It depends on nothing that changes often, since a new one counts anew. */
export function flowsText({ network, server }: Limits, v6: boolean): string {
  const families = v6 ? (["ip", "ip6"] as const) : (["ip"] as const);
  const numbers = Array.from({ length: groups }, (_, number) => number);
  const typeOf = (family: "ip" | "ip6") => (family === "ip" ? "ipv4_addr" : "ipv6_addr");
  const set = (name: string, size: number) =>
    `set ${name} { typeof ct id; size ${size}; timeout ${memory}s; flags dynamic,timeout; }`;
  /** Of the server at either end. */
  const ends = ["iifname", "oifname"] as const;
  const grouped = (prefix: string) =>
    families.flatMap((family) => {
      const [mask, of] =
        family === "ip" ? ["0.0.0.15", (n: number) => `0.0.0.${n}`] : ["::f", (n: number) => `::${n.toString(16)}`];
      const places = numbers.map((number) => `${of(number)} : goto ${prefix}${number}`).join(", ");
      return ends.map(
        (end) => `  ${end} "${BRIDGE}" ${family} ${end === "iifname" ? "saddr" : "daddr"} & ${mask} vmap { ${places} }`,
      );
    });
  const hook = (name: string, body: readonly string[]) => [
    `chain ${name} {`,
    `  type filter hook ${name} priority filter + 20; policy accept;`,
    ...body.map((line) => `  ${line}`),
    "}",
  ];
  const element = "{ ct id }";
  const long = "{ ct id timeout 2h }";
  return tableText("inet", "flows", [
    "counter crowded { }",
    ...families.map((family) => `set pace_${family} { type ${typeOf(family)}; size 65535; flags dynamic; }`),
    ...families.map(
      (family) => `set asked_${family} { type ${typeOf(family)}; size 4096; timeout 10s; flags dynamic,timeout; }`,
    ),
    set("whole", network),
    ...numbers.map((number) => set(`group${number}`, server)),
    "chain full {",
    "  counter name crowded drop",
    "}",
    "chain counted {",
    `  add @whole ${element} accept`,
    "  goto full",
    "}",
    ...numbers.flatMap((number) => [
      `chain new${number} {`,
      `  add @group${number} ${element} goto counted`,
      "  goto full",
      "}",
      ...[`long${number}`, `short${number}`].flatMap((name) => [
        `chain ${name} {`,
        `  update @group${number} ${name.startsWith("long") ? long : element}`,
        "}",
      ]),
    ]),
    "chain long {",
    `  update @whole ${long}`,
    ...grouped("long"),
    "}",
    "chain short {",
    `  update @whole ${element}`,
    ...grouped("short"),
    "}",
    "chain keep {",
    "  tcp flags & (fin | rst) != 0 goto short",
    // Now and then is often enough.
    "  numgen random mod 16 != 0 accept",
    // So long the kernel remembers only what is established.
    "  ct expiration > 600s goto long",
    "  goto short",
    "}",
    "chain fresh {",
    // Neighbours that IPv6 looks for: they have no connection, and so no element below.
    "  ct state untracked accept",
    "  ct status confirmed goto keep",
    ...families.flatMap((family) => [
      `  iifname "${BRIDGE}" update @pace_${family} { ${family} saddr ${pace(server)} } goto full`,
      `  oifname "${BRIDGE}" update @pace_${family} { ${family} daddr ${pace(server)} } goto full`,
    ]),
    `  ${pace(network)} goto full`,
    ...grouped("new"),
    "  goto counted",
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
