/**
 * Renders table `lock`, which binds a server to its port: it can send only with its own hardware and network addresses, and its port
 * delivers only frames for it. One table of the bridge family per network, with maps by port, so that the cost per packet does not grow
 * with the number of ports.
 */
import { parseAddress } from "../../../base/address.ts";
import type { NetworkSpec, Port } from "../interface.ts";
import { portOf } from "../model/name.ts";
import { usualLimits } from "../nft/connectionlimits.ts";
import { tableText } from "../nft/firewall.ts";
import { chainLines, digestWith, type PortParts, setText } from "../nft/porttable.ts";

const MAC = /^[0-9a-f]{2}(:[0-9a-f]{2}){5}$/;

/** Returns what a port has in the table. Throws for an invalid address. */
export function lockParts({ id, mac, addresses }: Port, hasSix: boolean): PortParts {
  if (!MAC.test(mac)) throw new Error(`"${mac}" is not a hardware address (expected aa:bb:cc:dd:ee:ff in lower case)`);
  const name = portOf(id);
  const parsed = addresses.map((text) => ({ text, ...parseAddress(text) }));
  const six = hasSix ? parsed.filter(({ family }) => family === 6) : [];
  const own = `"${name}" . ${mac}`;
  return {
    elements: [
      { set: "l2", element: own },
      ...parsed.map(({ text, family }) => ({ set: `v${family}`, element: `${own} . ${text}` })),
      ...(six.length > 0 ? [{ set: "by_port", element: `"${name}" : goto a${name}` }] : []),
    ],
    chains: six.length > 0 ? [advertising(`a${name}`, six)] : [],
  };
}

/** Renders the table; counter `spoofed` counts dropped frames. Throws for an invalid address. `packets`: limit per server and second. */
export function lockText(spec: NetworkSpec, packets = usualLimits.packets): string {
  const ports = spec.ports.map((port) => lockParts(port, spec.v6 !== null));
  const body = (parts: readonly PortParts[]): string[] => bodyOf(spec, packets, parts);
  return tableText("bridge", "lock", body(ports), digestWith(body([]).join("\n"), ports));
}

function bodyOf(spec: NetworkSpec, packets: number, ports: readonly PortParts[]): string[] {
  return [
    "counter spoofed { }",
    "set pace { type ifname; size 65535; flags dynamic; }",
    setText("l2", "ifname . ether_addr", ports),
    setText("v4", "ifname . ether_addr . ipv4_addr", ports),
    setText("v6", "ifname . ether_addr . ipv6_addr", ports),
    ...(spec.v6 === null
      ? []
      : ["set discovery { type ifname; size 65535; flags dynamic; }", ...advertisements(ports)]),
    "chain prerouting {",
    "  type filter hook prerouting priority filter; policy accept;",
    '  iifname "p*" jump from',
    "}",
    "chain from {",
    // Small packets cost the host as much as large ones, so a bandwidth limit is not enough.
    `  update @pace { iifname limit rate over ${packets}/second burst ${Math.max(1, Math.ceil(packets / 10))} packets } drop`,
    "  iifname . ether saddr != @l2 counter name spoofed drop",
    "  ether type arp iifname . arp saddr ether . arp saddr ip != @v4 counter name spoofed drop",
    // A second DHCP server could redirect the traffic of its neighbours.
    ...(spec.dhcp.enabled ? ["  ether type ip udp sport 67 udp dport 68 counter name spoofed drop"] : []),
    "  ether type ip ip saddr 0.0.0.0 udp sport 68 udp dport 67 accept",
    "  ether type ip iifname . ether saddr . ip saddr != @v4 counter name spoofed drop",
    ...(spec.v6 === null ? [] : fromLines),
    `  ether type { ip, arp${spec.v6 === null ? "" : ", ip6"} } accept`,
    // In a network without IPv6, a guest's IPv6 packets are dropped but not counted as spoofed.
    ...(spec.v6 === null ? ["  ether type ip6 drop"] : []),
    "  counter name spoofed drop",
    "}",
    "chain postrouting {",
    "  type filter hook postrouting priority filter; policy accept;",
    '  oifname "p*" ether daddr & 01:00:00:00:00:00 == 00:00:00:00:00:00 oifname . ether daddr != @l2 drop',
    "}",
  ];
}

/** Each neighbour solicitation can add an entry to the host's only neighbour table, with any link-local source address. */
const discovery = "limit rate over 100/second burst 300 packets";

const fromLines: readonly string[] = [
  `  ether type ip6 icmpv6 type { nd-neighbor-solicit, nd-neighbor-advert, nd-router-solicit } update @discovery { iifname ${discovery} } drop`,
  "  ether type ip6 ip6 saddr :: icmpv6 type { nd-neighbor-solicit, mld-listener-report, mld2-listener-report, nd-router-solicit } accept",
  "  ether type ip6 icmpv6 type { nd-router-advert, nd-redirect } counter name spoofed drop",
  "  ether type ip6 icmpv6 type nd-neighbor-advert jump advertised",
  "  ether type ip6 ip6 saddr fe80::/10 icmpv6 type { nd-neighbor-solicit, nd-neighbor-advert, nd-router-solicit, mld-listener-report, mld2-listener-report } accept",
  "  ether type ip6 iifname . ether saddr . ip6 saddr != @v6 counter name spoofed drop",
];

/**
 * Returns the chain that checks that the target of a neighbour advertisement (RFC 4861 section 4.4: 16 bytes, 8 bytes into it) is one of
 * the server's own addresses.
 */
const advertising = (name: string, six: readonly { readonly value: bigint }[]): PortParts["chains"][number] => ({
  name,
  rules: [
    ...six.map(({ value }) => `@th,64,128 0x${value.toString(16).padStart(32, "0")} return`),
    "counter name spoofed drop",
  ],
});

/** Renders the check of all neighbour advertisements; link-local targets are allowed. */
const advertisements = (ports: readonly PortParts[]): string[] => [
  ...chainLines(ports),
  setText("by_port", "ifname : verdict", ports),
  "chain advertised {",
  "  @th,64,10 0x3fa return",
  "  iifname vmap @by_port",
  "  counter name spoofed drop",
  "}",
];
