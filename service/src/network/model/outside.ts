/**
 * Where the peers of a network's tunnels meet its edge. Of a network that the world does not route the edge's packets leave under the
 * machine's address, or that of a router before it, and that is where a peer must call and whom it must expect. Which address that
 * is depends on the way to the peer, so it is asked for each, and stored with the network: its answers tell the far end.
 */
import { isIPv4 } from "node:net";
import { parseAddress, type Range } from "../../base/address.ts";
import type { Router, Translated } from "../../drivers/router/interface.ts";
import type { NetworkRow, TunnelRow } from "../table.ts";
import { isPrivate, isUnrouted, showAddress } from "./plan.ts";
import type { TunnelSettings } from "./vpn/tunnel.ts";

export interface OutsideSettings {
  readonly nat: Translated;
  /** The address that the world sees, where it is not the machine's own; null: it is. */
  readonly publicAddress: string | null;
  /** All that public and shared networks have their addresses from: between them nothing is translated. */
  readonly pools: readonly Range[];
}

/** What packets of the network meet on their way out. A network without an edge sends none. */
export const natOf = (network: Pick<NetworkRow, "kind" | "first" | "last">, nat: Translated): Translated =>
  network.kind !== "private" && isPrivate(network) ? nat : "never";

/** The peer's IPv4 address, "" where none is known: it calls, or has a name. */
export function peerAddressOf({ Type, PeerEndpoint }: TunnelSettings): string {
  const host = Type === "WireGuard" ? PeerEndpoint.replace(/:\d+$/, "") : PeerEndpoint;
  return isIPv4(host) ? host : "";
}

/** Resolves to the text of the column `outside`. */
export type Locate = (network: NetworkRow, tunnels: readonly Pick<TunnelRow, "spec">[]) => Promise<string | null>;

/** Text of the column `outside`. */
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
  const ask = (peer: string | null): Promise<string | null> => sourceTo(peer).catch(() => null);
  const addressFor = async (peer: string): Promise<string> => {
    if (isDirect(peer)) return edge;
    return publicAddress ?? (await ask(peer === "" ? null : peer)) ?? (await ask(null)) ?? edge;
  };
  const peers = new Set(["", ...tunnels.map(({ spec }) => peerAddressOf(JSON.parse(spec) as TunnelSettings))]);
  return JSON.stringify(
    Object.fromEntries(
      await Promise.all([...peers].sort().map(async (peer) => [peer, await addressFor(peer)] as const)),
    ),
  );
}

/** Where the peer of this tunnel meets the edge. */
export function meetingPoint({ outside, edge }: Pick<NetworkRow, "outside" | "edge">, tunnel: TunnelSettings): string {
  const own = edge === null ? "" : showAddress(edge);
  if (outside === null) return own;
  const known = JSON.parse(outside) as Readonly<Record<string, string>>;
  return known[peerAddressOf(tunnel)] ?? known[""] ?? own;
}
