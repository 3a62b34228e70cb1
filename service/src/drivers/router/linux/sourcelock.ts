/**
 * Renders table `lock`, which binds a server to its port: it can send only with its own hardware and network addresses, and its port
 * delivers only frames for it. One table of the bridge family per network, with maps by port, so that the cost per packet does not grow
 * with the number of ports.
 */
import { parseAddress } from "../../../base/address.ts";
import type { NetworkSpec } from "../interface.ts";
import { portOf } from "../model/name.ts";
import { usualLimits } from "../nft/connectionlimits.ts";
import { tableText } from "../nft/firewall.ts";

const MAC = /^[0-9a-f]{2}(:[0-9a-f]{2}){5}$/;

function set(name: string, type: string, elements: readonly string[]): string {
  return `set ${name} { type ${type};${elements.length > 0 ? ` elements = { ${elements.join(", ")} };` : ""} }`;
}

/** Renders the table; counter `spoofed` counts dropped frames. Throws for an invalid address. `packets`: limit per server and second. */
export function lockText(spec: NetworkSpec, packets = usualLimits.packets): string {
  const nics = spec.ports.map((port) => {
    if (!MAC.test(port.mac))
      throw new Error(`"${port.mac}" is not a hardware address (expected aa:bb:cc:dd:ee:ff in lower case)`);
    const addresses = port.addresses.map((text) => ({ text, ...parseAddress(text) }));
    return { name: `"${portOf(port.id)}"`, mac: port.mac, addresses };
  });
  const pairs = (family: 4 | 6) =>
    nics.flatMap(({ name, mac, addresses }) =>
      addresses.filter((address) => address.family === family).map(({ text }) => `${name} . ${mac} . ${text}`),
    );
  const six = nics.flatMap(({ name, addresses }) =>
    addresses
      .filter((address) => address.family === 6)
      .map(({ value }) => ({ name, value: value.toString(16).padStart(32, "0") })),
  );
  return tableText("bridge", "lock", [
    "counter spoofed { }",
    "set pace { type ifname; size 65535; flags dynamic; }",
    set(
      "l2",
      "ifname . ether_addr",
      nics.map(({ name, mac }) => `${name} . ${mac}`),
    ),
    set("v4", "ifname . ether_addr . ipv4_addr", pairs(4)),
    set("v6", "ifname . ether_addr . ipv6_addr", pairs(6)),
    ...(spec.v6 === null ? [] : ["set discovery { type ifname; size 65535; flags dynamic; }", ...advertisements(six)]),
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
  ]);
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
 * Renders the check that the target of a neighbour advertisement (RFC 4861 section 4.4: 16 bytes, 8 bytes into it) is the server's own
 * address or link-local.
 */
function advertisements(six: readonly { readonly name: string; readonly value: string }[]): string[] {
  const chains = six.flatMap(({ value }, index) => [
    `chain a${index + 1} {`,
    `  @th,64,128 0x${value} return`,
    "  counter name spoofed drop",
    "}",
  ]);
  const elements = six.map(({ name }, index) => `${name} : goto a${index + 1}`);
  return [
    ...chains,
    "chain advertised {",
    "  @th,64,10 0x3fa return",
    ...(elements.length > 0 ? [`  iifname vmap { ${elements.join(", ")} }`] : []),
    "  counter name spoofed drop",
    "}",
  ];
}
