/**
 * Finds out which edge receives the packets of a network's peers, if several edges share the host's address. As in the router driver,
 * the edge of the network with the lowest id gets a port.
 */
import { isIPv4 } from "node:net";
import type { Translated } from "../drivers/router/interface.ts";
import type { Reader } from "../store/db.ts";
import { firstWireguardPort } from "./model/networkspec.ts";
import { natOf, peerAddressOf, reachableAddress } from "./model/outside.ts";
import { showAddress } from "./model/plan.ts";
import type { Reach } from "./model/vpn/reach.ts";
import type { StoredTunnel, TunnelSettings } from "./model/vpn/tunnel.ts";
import * as table from "./table.ts";

interface HostState {
  readonly nat: Translated;
  /** UDP ports that a program of the host uses. */
  readonly held: readonly number[];
}

const acceptsIke = ({ Type, PeerEndpoint, Enabled }: TunnelSettings): boolean =>
  Type === "IPsec" && PeerEndpoint === "any" && Enabled;

/** Returns a function that returns how the peer of a tunnel of the network reaches the edge. */
export async function readReach(
  db: Reader,
  network: table.NetworkRow,
  tunnels: readonly Pick<StoredTunnel, "settings">[],
  { nat, held }: HostState,
): Promise<(tunnel: Pick<StoredTunnel, "settings">) => Reach | null> {
  const edge = network.edge === null ? "" : showAddress(network.edge);
  const port = network.wireguard_port ?? firstWireguardPort;
  const isTranslated = natOf(network, nat) !== "never";
  const acceptsPeers = tunnels.some(({ settings }) => settings.Type === "WireGuard" || acceptsIke(settings));
  const before = isTranslated && acceptsPeers ? await table.listEarlierResponders(db, network.id) : [];
  const others = before
    .filter((row) => natOf(row, nat) !== "never")
    .map((row) => ({ port: row.wireguard_port, settings: JSON.parse(row.spec) as TunnelSettings }));
  const ikeIsTaken = others.some(({ settings }) => acceptsIke(settings));
  const portIsTaken = others.some((other) => other.settings.Type === "WireGuard" && other.port === port);
  return ({ settings }) => {
    const address = reachableAddress(network, settings);
    const isIpsec = settings.Type === "IPsec";
    const isHeld = isIpsec ? held.includes(500) || held.includes(4500) : held.includes(port);
    const isTaken = isIpsec ? ikeIsTaken : portIsTaken;
    const leadsTo = isHeld ? "a program" : isTaken ? "another edge" : "edge";
    const isNeighbour = isTranslated && address === edge && isIPv4(peerAddressOf(settings)) && nat === "always";
    return { edge, address, port, leadsTo, isNeighbour };
  };
}
