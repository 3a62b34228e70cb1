/**
 * Renders table `guard`: rules of an edge that apply regardless of the firewall. They decide who may reach the edge itself, drop packets
 * from outside with an inside source address, drop traffic with closed addresses, and prevent that tunnel traffic leaves or arrives
 * unencrypted, also while the tunnel is down.
 */
import { formatAddresses, join, parseAddresses } from "../../../base/address.ts";
import type { NetworkSpec, Port } from "../interface.ts";
import { ofFamily, setLines } from "../model/closedaddresses.ts";
import { BRIDGE, NEXT_HOP, UPLINK } from "../model/name.ts";
import { type Opening, openingsOf } from "../model/openings.ts";
import { tableText } from "../nft/firewall.ts";
import { digestWith, type PortParts, setText } from "../nft/porttable.ts";

const sides = { inside: `iifname "${BRIDGE}" `, outside: `iifname "${UPLINK}" `, anywhere: "" } as const;

/** Echo exists in both families. */
const protocolsOf = ({ protocol }: Opening): string[] => (protocol === "icmp" ? ["icmp", "ipv6-icmp"] : [protocol]);

const accepting = (opening: Opening): string[] =>
  protocolsOf(opening).map((protocol) => {
    const what = opening.port === null ? `meta l4proto ${protocol}` : `${protocol} dport ${opening.port}`;
    return `  ${sides[opening.from]}${what} accept`;
  });

const input = (spec: NetworkSpec): string[] => [
  "chain input {",
  "  type filter hook input priority filter; policy accept;",
  '  iifname "lo" accept',
  "  ct state invalid drop",
  "  ct state established,related accept",
  ...openingsOf(spec).flatMap(accepting),
  "  drop",
  "}",
];

/** Returns what a port has in the table: its addresses. */
export const guardParts = ({ addresses }: Port): PortParts => ({
  elements: ([4, 6] as const).flatMap((family) =>
    ofFamily(addresses, family).map((range) => ({ set: `servers${family}`, element: formatAddresses(family, range) })),
  ),
  chains: [],
});

/** Rules that send packets into the network only to addresses of its servers. */
const serving = (ports: readonly PortParts[]): string[] => [
  setText("servers4", "ipv4_addr", ports),
  setText("servers6", "ipv6_addr", ports),
  "chain there {",
  "  type filter hook forward priority filter + 10; policy accept;",
  `  oifname "${BRIDGE}" ip daddr @servers4 accept`,
  `  oifname "${BRIDGE}" ip6 daddr @servers6 accept`,
  `  oifname "${BRIDGE}" drop`,
  "}",
];

/** Conditions of packets that come or go outside of a tunnel. */
const crossing = (kernelEsp: boolean) =>
  kernelEsp ? { came: "meta ipsec missing ", goes: "rt ipsec missing " } : { came: "", goes: "" };

/**
 * Rules that drop traffic with closed addresses in both directions, except for replies to the host, which sends from the far end of the
 * uplink.
 */
function closing(spec: NetworkSpec, kernelEsp: boolean) {
  const { came, goes } = crossing(kernelEsp);
  const families = ([4, 6] as const).flatMap((family) => {
    const sets = setLines("closed", spec.closed, family);
    return sets.length === 0 ? [] : [{ family, sets, ip: family === 4 ? "ip" : "ip6" }];
  });
  return {
    sets: [
      ...families.flatMap(({ sets }) => sets),
      ...(families.length === 0 ? [] : ["chain closed {", "  ct direction reply return", "  drop", "}"]),
    ],
    lines: families.flatMap(({ family, ip }) => [
      `iifname "${BRIDGE}" oifname "${UPLINK}" ${ip} daddr @closed${family} ${goes}jump closed`,
      `iifname "${UPLINK}" ${family === 4 ? `ip saddr != ${NEXT_HOP} ` : ""}${ip} saddr @closed${family} ${came}jump closed`,
    ]),
  };
}

/** Renders the table. `kernelEsp`: the kernel does ESP itself, so tunnel traffic crosses the uplink like other packets. */
export function guardText(spec: NetworkSpec, kernelEsp: boolean): string {
  // A private network has no edge, through which packets could come.
  const ports = spec.edgeAddress === null ? [] : spec.ports.map(guardParts);
  const closed = closing(spec, kernelEsp);
  const body = (parts: readonly PortParts[]): string[] => bodyOf(spec, kernelEsp, parts, closed);
  return tableText("inet", "guard", body(ports), digestWith(body([]).join("\n"), ports));
}

function bodyOf(
  spec: NetworkSpec,
  kernelEsp: boolean,
  ports: readonly PortParts[],
  closed: ReturnType<typeof closing>,
): string[] {
  const forward = (body: readonly string[]) => [
    "chain forward {",
    // Before the firewall's own chain.
    "  type filter hook forward priority filter - 10; policy accept;",
    ...body.map((line) => `  ${line}`),
    "}",
  ];
  const output = (body: readonly string[]) => [
    "chain output {",
    "  type filter hook output priority filter; policy accept;",
    ...body.map((line) => `  ${line}`),
    "}",
  ];
  if (spec.edgeAddress === null) return [...input(spec), ...forward(["drop"]), ...output([])];
  const live = spec.tunnels.filter((tunnel) => tunnel.enabled);
  const far = join(live.flatMap((tunnel) => tunnel.peerSubnets.map(parseAddresses)));
  const peers = far.map((range) => formatAddresses(4, range)).join(", ");
  const { came, goes } = crossing(kernelEsp);
  const { cidr } = spec.v4;
  return [
    ...(far.length > 0 ? [`set peers { type ipv4_addr; flags interval; elements = { ${peers} }; }`] : []),
    ...closed.sets,
    ...input(spec),
    ...forward([
      `iifname != "${BRIDGE}" oifname != "${BRIDGE}" drop`,
      ...closed.lines,
      ...(spec.v6 === null ? ["meta nfproto ipv6 drop"] : [`iifname "${UPLINK}" ip6 saddr ${spec.v6.cidr} drop`]),
      `iifname "${UPLINK}" ip saddr ${cidr} drop`,
      ...(far.length > 0
        ? [
            `iifname "${UPLINK}" ip saddr @peers ${came}drop`,
            `oifname "${UPLINK}" ip daddr @peers ${goes}drop`,
            "tcp flags syn tcp option maxseg size set rt mtu",
          ]
        : []),
    ]),
    // A packet to an address without server would add an entry to the host's only neighbour table.
    ...serving(ports),
    ...output(far.length > 0 ? [`oifname "${UPLINK}" ip saddr ${cidr} ip daddr @peers ${goes}drop`] : []),
  ];
}
