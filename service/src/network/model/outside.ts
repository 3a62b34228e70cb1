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
export function peerAddressOf({ Type, PeerEndpoint }: Pick<TunnelSettings, "Type" | "PeerEndpoint">): string {
  const host = Type === "WireGuard" ? PeerEndpoint.replace(/:\d+$/, "") : PeerEndpoint;
  return isIPv4(host) ? host : "";
}

/** Returns the addresses of the peers of stored tunnels; see `peerAddressOf`. */
export const peersOf = (tunnels: readonly Pick<TunnelRow, "spec">[]): string[] =>
  tunnels.map(({ spec }) => peerAddressOf(JSON.parse(spec) as TunnelSettings));

/** Resolves to the text of the column `outside` for these peers; see `findOutside`. */
export type Locate = (network: NetworkRow, peers: readonly string[]) => Promise<string | null>;

type Addresses = Readonly<Record<string, string>>;

/** Returns the key of each address in the column `outside`, in its order. */
const keysOf = (peers: readonly string[]): string[] => [...new Set(["", ...peers])].sort();

/**
 * Resolves to the text of the column `outside`: JSON of the edge's address by peer address, "" for unknown ones. Null: no peers, or
 * no NAT. `sourceTo` finds the host's address on the route to a peer.
 */
export async function findOutside(
  network: NetworkRow,
  peers: readonly string[],
  { nat, publicAddress, pools }: OutsideSettings,
  sourceTo: Router["sourceTo"],
): Promise<string | null> {
  const mode = natOf(network, nat);
  if (peers.length === 0 || mode === "never" || network.edge === null) return null;
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
  return JSON.stringify(
    Object.fromEntries(await Promise.all(keysOf(peers).map(async (peer) => [peer, await addressFor(peer)] as const))),
  );
}

/**
 * Returns the text of the column `outside` for these peers, without a look-up: each address is that of the first text with this peer.
 * Null: no text has one.
 */
export function combineOutside(peers: readonly string[], texts: readonly (string | null)[]): string | null {
  if (peers.length === 0) return null;
  const known = texts.map((text): Addresses => (text === null ? {} : (JSON.parse(text) as Addresses)));
  const found = keysOf(peers).flatMap((peer) => {
    const address = known.find((one) => Object.hasOwn(one, peer))?.[peer];
    return address === undefined ? [] : [[peer, address] as const];
  });
  return found.length === 0 ? null : JSON.stringify(Object.fromEntries(found));
}

/** Returns the address where the peer of this tunnel reaches the edge; "" if the network has no edge. */
export function reachableAddress(
  { outside, edge }: Pick<NetworkRow, "outside" | "edge">,
  tunnel: TunnelSettings,
): string {
  const edgeAddress = edge === null ? "" : showAddress(edge);
  if (outside === null) return edgeAddress;
  const known = JSON.parse(outside) as Addresses;
  return known[peerAddressOf(tunnel)] ?? known[""] ?? edgeAddress;
}
