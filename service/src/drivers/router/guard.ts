/**
 * What holds at an edge whatever the firewall says: who may speak with the edge itself, that nobody outside poses as somebody
 * inside, and that nothing for the far side of a tunnel leaves or comes in the open, also while the tunnel is down.
 */
import { formatAddresses, join, parseAddresses } from "../../base/address.ts";
import { BRIDGE, UPLINK } from "./name.ts";
import { tableText } from "./nft.ts";
import { type Opening, openingsOf } from "./openings.ts";
import type { Image } from "./port.ts";

const sides = { inside: `iifname "${BRIDGE}" `, outside: `iifname "${UPLINK}" `, anywhere: "" } as const;

/** Echo is of both families. */
const protocolsOf = ({ protocol }: Opening): string[] => (protocol === "icmp" ? ["icmp", "ipv6-icmp"] : [protocol]);

const accepting = (opening: Opening): string[] =>
  protocolsOf(opening).map((protocol) => {
    const what = opening.port === null ? `meta l4proto ${protocol}` : `${protocol} dport ${opening.port}`;
    return `  ${sides[opening.from]}${what} accept`;
  });

const input = (image: Image): string[] => [
  "chain input {",
  "  type filter hook input priority filter; policy accept;",
  '  iifname "lo" accept',
  "  ct state invalid drop",
  "  ct state established,related accept",
  ...openingsOf(image).flatMap(accepting),
  "  drop",
  "}",
];

/** Table `guard`. `kernelEsp`: the kernel does ESP itself, so what it protects crosses the uplink like the rest. */
export function guardText(image: Image, kernelEsp: boolean): string {
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
  if (image.edgeAddress === null)
    return tableText("inet", "guard", [...input(image), ...forward(["drop"]), ...output([])]);
  const live = image.tunnels.filter((tunnel) => tunnel.enabled);
  const far = join(live.flatMap((tunnel) => tunnel.peerSubnets.map(parseAddresses)));
  const peers = far.map((range) => formatAddresses(4, range)).join(", ");
  const [came, goes] = kernelEsp ? ["meta ipsec missing ", "rt ipsec missing "] : ["", ""];
  const { cidr } = image.v4;
  return tableText("inet", "guard", [
    ...(far.length > 0 ? [`set peers { type ipv4_addr; flags interval; elements = { ${peers} }; }`] : []),
    ...input(image),
    ...forward([
      `iifname != "${BRIDGE}" oifname != "${BRIDGE}" drop`,
      ...(image.v6 === null ? ["meta nfproto ipv6 drop"] : [`iifname "${UPLINK}" ip6 saddr ${image.v6.cidr} drop`]),
      `iifname "${UPLINK}" ip saddr ${cidr} drop`,
      ...(far.length > 0
        ? [
            `iifname "${UPLINK}" ip saddr @peers ${came}drop`,
            `oifname "${UPLINK}" ip daddr @peers ${goes}drop`,
            "tcp flags syn tcp option maxseg size set rt mtu",
          ]
        : []),
    ]),
    ...output(far.length > 0 ? [`oifname "${UPLINK}" ip saddr ${cidr} ip daddr @peers ${goes}drop`] : []),
  ]);
}
