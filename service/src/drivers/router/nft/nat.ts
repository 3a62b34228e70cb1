/**
 * What the machine does for networks that the world does not route: what leaves them goes out under the machine's address, and the
 * UDP ports of their tunnels at the machine's address lead to their edges. One small table per network, so that making and
 * removing one never touches another.
 */

import type { NetworkSpec } from "../interface.ts";
import { hostTable, text36, uplinkPrefix } from "../model/name.ts";
import { tableText } from "./firewall.ts";

export const natTable = (tag: string, network: number): string => `${hostTable(tag)}_${text36(network)}`;

/** Private and shared blocks (RFC 1918, RFC 6598) and link-local ones: with `outside-private` these see the network's own addresses. */
const privateBlocks = ["10.0.0.0/8", "100.64.0.0/10", "169.254.0.0/16", "172.16.0.0/12", "192.168.0.0/16"];

/** UDP ports of the machine that are to lead to the edge: those at which peers call. Where the edge calls, answers find the way back. */
export function forwardsOf({ nat, edgeAddress, tunnels, wireguard }: NetworkSpec): number[] {
  if (nat === "never" || edgeAddress === null) return [];
  const live = tunnels.filter(({ enabled }) => enabled);
  const isCalled = live.some((tunnel) => tunnel.type === "ipsec" && tunnel.peer === null);
  const hasWireguard = wireguard !== null && live.some(({ type }) => type === "wireguard");
  return [...(isCalled ? [500, 4500] : []), ...(hasWireguard ? [wireguard.listenPort] : [])];
}

/**
 * Null: none is needed. `held`: ports that a program of the machine listens at, which are left to it. A port that several networks
 * want leads to the one with the lowest id, whatever the order in which their tables came: the chain with the lowest priority is asked first.
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

/** Adding before deleting makes it right whether or not the table is there. */
export const natRemoval = (tag: string, network: number): string =>
  `add table inet ${natTable(tag, network)}\ndelete table inet ${natTable(tag, network)}\n`;
