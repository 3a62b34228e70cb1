/**
 * Renders the host's address translation for a network whose block is not routed: outgoing packets get the host's address, and the UDP
 * ports of its tunnels at the host's address lead to its edge. One small table per network, so that creating or removing one does not
 * affect others.
 */

import type { NetworkSpec } from "../interface.ts";
import { hostTable, text36, uplinkPrefix } from "../model/name.ts";
import { tableText } from "./firewall.ts";

/** Returns the name of a network's table on the host. */
export const natTable = (tag: string, network: number): string => `${hostTable(tag)}_${text36(network)}`;

/**
 * Private and shared blocks (RFC 1918, RFC 6598) and link-local ones: with `outside-private`, packets to these keep their source address.
 */
const privateBlocks = ["10.0.0.0/8", "100.64.0.0/10", "169.254.0.0/16", "172.16.0.0/12", "192.168.0.0/16"];

/**
 * Returns the UDP ports of the host that must lead to the edge: those to which peers connect. Where the edge connects, replies find the way
 * back.
 */
export function forwardsOf({ nat, edgeAddress, tunnels, wireguard }: NetworkSpec): number[] {
  if (nat === "never" || edgeAddress === null) return [];
  const live = tunnels.filter(({ enabled }) => enabled);
  const isCalled = live.some((tunnel) => tunnel.type === "ipsec" && tunnel.peer === null);
  const hasWireguard = wireguard !== null && live.some(({ type }) => type === "wireguard");
  return [...(isCalled ? [500, 4500] : []), ...(hasWireguard ? [wireguard.listenPort] : [])];
}

/**
 * Renders the table, null if none is needed. `held`: ports at which a program of the host listens; they are left to it. A port that several
 * networks use leads to the one with the lowest id, regardless of the order of creation, because the chain with the lowest priority runs
 * first.
 */
export function natText(spec: NetworkSpec, tag: string, held: readonly number[] = []): string | null {
  if (spec.nat === "never" || spec.edgeAddress === null) return null;
  const ports = forwardsOf(spec).filter((port) => !held.includes(port));
  const abroad = spec.nat === "outside-private" ? `ip daddr != { ${privateBlocks.join(", ")} } ` : "";
  return tableText("inet", natTable(tag, spec.id), [
    "chain postrouting {",
    "  type nat hook postrouting priority srcnat; policy accept;",
    `  ip saddr { ${spec.v4.cidr}, ${spec.edgeAddress} } ${abroad}oifname != { "lo", "${uplinkPrefix(tag)}*" } masquerade`,
    "}",
    ...(ports.length === 0
      ? []
      : [
          "chain prerouting {",
          `  type nat hook prerouting priority ${-100 + spec.id}; policy accept;`,
          `  fib daddr type local udp dport { ${ports.join(", ")} } dnat ip to ${spec.edgeAddress}`,
          "}",
        ]),
  ]);
}

/** Renders the removal of the table; adding it first makes the deletion succeed if there is none. */
export const natRemoval = (tag: string, network: number): string =>
  `add table inet ${natTable(tag, network)}\ndelete table inet ${natTable(tag, network)}\n`;
