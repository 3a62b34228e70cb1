/**
 * Why a peer and the edge may not find each other although both are set up: the edge is behind the machine's address. What the
 * engine says of a tunnel that is down gets a sentence more, which names the cause and what to do.
 */
import { isUnrouted } from "../plan.ts";
import type { TunnelSettings } from "./tunnel.ts";

export interface Reach {
  /** The edge's own address, and where this peer meets it. */
  readonly edge: string;
  readonly address: string;
  /** WireGuard's port. */
  readonly port: number;
  /** Where the UDP ports lead that the peer calls at `address`. */
  readonly leadsTo: "edge" | "another edge" | "a program";
  /** The peer is in another network of this installation, with which nothing is translated. */
  readonly isNeighbour: boolean;
}

export interface Cause {
  readonly detail: string;
  /** The peer cannot reach the edge, whatever the engine says of it. */
  readonly isCertain: boolean;
}

/** Null: nothing stands between them that is known here. */
export function explainReach(
  tunnel: TunnelSettings,
  { edge, address, port, leadsTo, isNeighbour }: Reach,
): Cause | null {
  const isIpsec = tunnel.Type === "IPsec";
  const isCalled = isIpsec ? tunnel.PeerEndpoint === "any" : tunnel.PeerEndpoint === "";
  const ports = isIpsec ? "UDP 500 and 4500" : `UDP ${port}`;
  if (isNeighbour) return null;
  if (address === edge) {
    if (!isUnrouted(edge)) return null;
    const detail = `${edge} is a private address that is not translated on its way to the peer (BRUME_NAT): the peer needs a route to it.`;
    return { detail, isCertain: false };
  }
  const behind = "The edge is behind translation";
  if (isCalled && leadsTo !== "edge") {
    const owner = leadsTo === "a program" ? "belong to another program of the host" : "lead to another network";
    const instead = isIpsec
      ? "Set PeerEndpoint to the peer's address, so that the edge calls, or use WireGuard, of which each network has its own port."
      : "Set PeerEndpoint, so that the edge calls, or let the operator choose other ports (BRUME_WIREGUARD_PORT).";
    const detail = `${behind}, and ${ports} at ${address} ${owner}: the peer cannot reach this edge. ${instead}`;
    return { detail, isCertain: true };
  }
  if (isCalled && isUnrouted(address)) {
    const detail = `${behind} at ${address}, which is itself a private address: a peer beyond another router cannot reach it. Forward ${ports} from there to ${address}, and let the operator set BRUME_PUBLIC_ADDRESS.`;
    return { detail, isCertain: false };
  }
  const detail = `${behind}: the peer meets it at ${address} (${ports}), not at ${edge}, and needs what PeerConfig says: that address and NAT traversal.`;
  return { detail, isCertain: false };
}
