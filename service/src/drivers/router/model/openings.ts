/**
 * Lists the traffic to the edge itself that is allowed regardless of the firewall. The guard allows exactly this, and the firewall check of
 * the API uses it; all other packets to the edge are dropped.
 */
import { parseAddress } from "../../../base/address.ts";
import type { NetworkSpec, TunnelSpec } from "../interface.ts";
import { icmpOf, type Packet, TCP, UDP } from "./verdict.ts";

/** A kind of traffic that the edge accepts. */
export interface Opening {
  /** The service that receives it. */
  readonly name: "echo" | "DHCP" | "DNS" | "IKE" | "ESP" | "WireGuard";
  /** Who may send it: the network's servers, hosts beyond the uplink, or both. */
  readonly from: "inside" | "outside" | "anywhere";
  readonly protocol: "icmp" | "tcp" | "udp" | "esp";
  /** Destination port; null if the protocol has none. */
  readonly port: number | null;
}

/** The fields of a spec that determine the openings. */
export type Host = Pick<NetworkSpec, "edgeAddress" | "dhcp" | "dnsForwarders" | "wireguard"> & {
  readonly tunnels: readonly Pick<TunnelSpec, "type" | "enabled">[];
};

const udp = (name: Opening["name"], from: Opening["from"], port: number): Opening => ({
  name,
  from,
  protocol: "udp",
  port,
});

/** Returns the openings of an edge. */
export function openingsOf({ edgeAddress, dhcp, dnsForwarders, wireguard, tunnels }: Host): Opening[] {
  const has = (type: TunnelSpec["type"]) => tunnels.some((tunnel) => tunnel.enabled && tunnel.type === type);
  const dns = udp("DNS", "inside", 53);
  return [
    ...(edgeAddress === null ? [] : [{ name: "echo", from: "anywhere", protocol: "icmp", port: null } as const]),
    ...(dhcp.enabled ? [udp("DHCP", "inside", 67)] : []),
    ...(dnsForwarders.length > 0 ? [dns, { ...dns, protocol: "tcp" } as const] : []),
    ...(has("ipsec")
      ? [
          udp("IKE", "outside", 500),
          udp("IKE", "outside", 4500),
          { name: "ESP", from: "outside", protocol: "esp", port: null } as const,
        ]
      : []),
    ...(wireguard !== null && has("wireguard") ? [udp("WireGuard", "outside", wireguard.listenPort)] : []),
  ];
}

/** Returns the openings for traffic from one side. */
export const openTo = (openings: readonly Opening[], side: "inside" | "outside"): Opening[] =>
  openings.filter(({ from }) => from === side || from === "anywhere");

/** Returns whether one of the openings accepts a packet to the edge. */
export function takes(openings: readonly Opening[], { protocol, destination, destinationPort }: Packet): boolean {
  const numbers = { icmp: icmpOf(parseAddress(destination).family), tcp: TCP, udp: UDP, esp: 50 };
  return openings.some(
    (opening) => numbers[opening.protocol] === protocol && (opening.port === null || opening.port === destinationPort),
  );
}
