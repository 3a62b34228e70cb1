/**
 * Explains why a peer may not reach an edge that is behind the host's address (NAT). The sentence names the cause and the remedy and
 * is appended to the engine's reason for a tunnel that is down.
 */
import { isUnrouted } from "../plan.ts";
import type { TunnelSettings } from "./tunnel.ts";

/** How a peer reaches the edge. */
export interface Reach {
  /** The edge's own address, and the address at which this peer reaches it. */
  readonly edge: string;
  readonly address: string;
  /** UDP port of the edge's WireGuard. */
  readonly port: number;
  /** What receives the peer's packets to the UDP ports of `address`. */
  readonly leadsTo: "edge" | "another edge" | "a program";
  /** The peer is in another network of this installation, without NAT between them. */
  readonly isNeighbour: boolean;
}

/** A probable cause of a tunnel that is down. */
export interface Cause {
  /** Cause and remedy, as sentences. */
  readonly detail: string;
  /** The peer certainly cannot reach the edge, also if the engine has no reason. */
  readonly isCertain: boolean;
}

/** Returns the cause of a tunnel that is down; null: no obstacle is known. */
export function explainReach(
  tunnel: TunnelSettings,
  { edge, address, port, leadsTo, isNeighbour }: Reach,
): Cause | null {
  const isIpsec = tunnel.Type === "IPsec";
  const peerInitiates = isIpsec ? tunnel.PeerEndpoint === "any" : tunnel.PeerEndpoint === "";
  const ports = isIpsec ? "UDP 500 and 4500" : `UDP ${port}`;
  if (isNeighbour) return null;
  if (address === edge) {
    if (!isUnrouted(edge)) return null;
    const detail = `${edge} is a private address without NAT on the way to the peer (BRUME_NAT): the peer needs a route to it.`;
    return { detail, isCertain: false };
  }
  const behind = "The edge is behind NAT";
  if (peerInitiates && leadsTo !== "edge") {
    const owner = leadsTo === "a program" ? "belong to another program of the host" : "lead to another network";
    const instead = isIpsec
      ? "Set PeerEndpoint to the peer's address, so that the edge initiates, or use WireGuard, where each network has its own port."
      : "Set PeerEndpoint, so that the edge initiates, or let the operator choose other ports (BRUME_WIREGUARD_PORT).";
    const detail = `${behind}, and ${ports} at ${address} ${owner}: the peer cannot reach this edge. ${instead}`;
    return { detail, isCertain: true };
  }
  if (peerInitiates && isUnrouted(address)) {
    const detail = `${behind} at ${address}, which is a private address too: a peer on the internet cannot reach it. Forward ${ports} on the router before the host to ${address}, and let the operator set BRUME_PUBLIC_ADDRESS.`;
    return { detail, isCertain: false };
  }
  const detail = `${behind}: the peer reaches it at ${address} (${ports}), not at ${edge}, and must use that address and NAT traversal, as in the configuration for the peer.`;
  return { detail, isCertain: false };
}
