/**
 * Finds the addresses where the peers of a network's tunnels reach its edge. With NAT, packets of the edge leave with the host's
 * address, or that of a router before it, so peers must use that one. It depends on the route to the peer, so it is found for each
 * peer and stored with the network, for the peer configurations.
 */
import { isIPv4 } from "node:net";
import { parseAddress, type Range } from "../../base/address.ts";
import type { Router, Translated } from "../../drivers/router/interface.ts";
import type { NetworkRow, TunnelRow } from "../table.ts";
import { isPrivate, isUnrouted, showAddress } from "./plan.ts";
import type { TunnelSettings } from "./vpn/tunnel.ts";

/** Settings of the operator that decide about NAT. */
export interface OutsideSettings {
  readonly nat: Translated;
  /** Public IPv4 address of this host, if a router before it translates; null: its own. */
  readonly publicAddress: string | null;
  /** Pools of public and shared networks; there is no NAT between their addresses. */
  readonly pools: readonly Range[];
}

/** Returns the NAT of the network's outgoing packets; `never` for private networks and for blocks that the internet routes. */
export const natOf = (network: Pick<NetworkRow, "kind" | "first" | "last">, nat: Translated): Translated =>
  network.kind !== "private" && isPrivate(network) ? nat : "never";

/** Returns the peer's IPv4 address; "" if it is unknown: the peer initiates, or has a host name. */
export function peerAddressOf({ Type, PeerEndpoint }: TunnelSettings): string {
  const host = Type === "WireGuard" ? PeerEndpoint.replace(/:\d+$/, "") : PeerEndpoint;
  return isIPv4(host) ? host : "";
}

/** Resolves to the text of the column `outside`; see `findOutside`. */
export type Locate = (network: NetworkRow, tunnels: readonly Pick<TunnelRow, "spec">[]) => Promise<string | null>;

/**
 * Resolves to the text of the column `outside`: JSON of the edge's address by peer address, "" for unknown ones. Null: no tunnels, or
 * no NAT. `sourceTo` finds the host's address on the route to a peer.
 */
export async function findOutside(
  network: NetworkRow,
  tunnels: readonly Pick<TunnelRow, "spec">[],
  { nat, publicAddress, pools }: OutsideSettings,
  sourceTo: Router["sourceTo"],
): Promise<string | null> {
  const mode = natOf(network, nat);
  if (tunnels.length === 0 || mode === "never" || network.edge === null) return null;
  const edge = showAddress(network.edge);
  const isDirect = (peer: string): boolean => {
    if (peer === "") return false;
    const { value } = parseAddress(peer);
    if (pools.some(({ first, last }) => first <= value && value <= last)) return true;
    return mode === "outside-private" && isUnrouted(peer);
  };
  const hostAddressTo = (peer: string | null): Promise<string | null> => sourceTo(peer).catch(() => null);
  const addressFor = async (peer: string): Promise<string> => {
    if (isDirect(peer)) return edge;
    return publicAddress ?? (await hostAddressTo(peer === "" ? null : peer)) ?? (await hostAddressTo(null)) ?? edge;
  };
  const peers = new Set(["", ...tunnels.map(({ spec }) => peerAddressOf(JSON.parse(spec) as TunnelSettings))]);
  return JSON.stringify(
    Object.fromEntries(
      await Promise.all([...peers].sort().map(async (peer) => [peer, await addressFor(peer)] as const)),
    ),
  );
}

/** Returns the address where the peer of this tunnel reaches the edge; "" if the network has no edge. */
export function reachableAddress(
  { outside, edge }: Pick<NetworkRow, "outside" | "edge">,
  tunnel: TunnelSettings,
): string {
  const edgeAddress = edge === null ? "" : showAddress(edge);
  if (outside === null) return edgeAddress;
  const known = JSON.parse(outside) as Readonly<Record<string, string>>;
  return known[peerAddressOf(tunnel)] ?? known[""] ?? edgeAddress;
}
