/** Which edge the ports lead to that a network's peers call, read from the rows of all networks as the router decides it: the first. */
import { isIPv4 } from "node:net";
import type { Translated } from "../drivers/router/interface.ts";
import type { Reader } from "../store/db.ts";
import { firstWireguardPort } from "./model/networkspec.ts";
import { meetingPoint, natOf, peerAddressOf } from "./model/outside.ts";
import { showAddress } from "./model/plan.ts";
import type { Reach } from "./model/vpn/reach.ts";
import type { StoredTunnel, TunnelSettings } from "./model/vpn/tunnel.ts";
import * as table from "./table.ts";

interface Ways {
  readonly nat: Translated;
  /** Ports that a program of the machine has. */
  readonly held: readonly number[];
}

const isCalledByIke = ({ Type, PeerEndpoint, Enabled }: TunnelSettings): boolean =>
  Type === "IPsec" && PeerEndpoint === "any" && Enabled;

/** Of each of the network's tunnels. */
export async function readReach(
  db: Reader,
  network: table.NetworkRow,
  tunnels: readonly Pick<StoredTunnel, "settings">[],
  { nat, held }: Ways,
): Promise<(tunnel: Pick<StoredTunnel, "settings">) => Reach | null> {
  const edge = network.edge === null ? "" : showAddress(network.edge);
  const port = network.wireguard_port ?? firstWireguardPort;
  const isTranslated = natOf(network, nat) !== "never";
  const mayBeCalled = tunnels.some(({ settings }) => settings.Type === "WireGuard" || isCalledByIke(settings));
  const before = isTranslated && mayBeCalled ? await table.listCalledBefore(db, network.id) : [];
  const others = before
    .filter((row) => natOf(row, nat) !== "never")
    .map((row) => ({ port: row.wireguard_port, settings: JSON.parse(row.spec) as TunnelSettings }));
  const ikeIsTaken = others.some(({ settings }) => isCalledByIke(settings));
  const portIsTaken = others.some((other) => other.settings.Type === "WireGuard" && other.port === port);
  return ({ settings }) => {
    const address = meetingPoint(network, settings);
    const isIpsec = settings.Type === "IPsec";
    const isHeld = isIpsec ? held.includes(500) || held.includes(4500) : held.includes(port);
    const isTaken = isIpsec ? ikeIsTaken : portIsTaken;
    const leadsTo = isHeld ? "a program" : isTaken ? "another edge" : "edge";
    const isNeighbour = isTranslated && address === edge && isIPv4(peerAddressOf(settings)) && nat === "always";
    return { edge, address, port, leadsTo, isNeighbour };
  };
}
