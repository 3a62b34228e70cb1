/**
 * What an edge takes that is meant for itself, whatever the firewall says. The guard lets in exactly this, and the firewall check
 * answers from it; everything else that is sent to the edge is dropped.
 */
import { parseAddress } from "../../../base/address.ts";
import type { NetworkSpec, TunnelSpec } from "../interface.ts";
import { icmpOf, type Packet, TCP, UDP } from "./verdict.ts";

export interface Opening {
  /** What comes in there. */
  readonly name: "echo" | "DHCP" | "DNS" | "IKE" | "ESP" | "WireGuard";
  /** Who may come: the network's servers, those beyond the uplink, or both. */
  readonly from: "inside" | "outside" | "anywhere";
  readonly protocol: "icmp" | "tcp" | "udp" | "esp";
  /** Of the edge; null: the protocol has none. */
  readonly port: number | null;
}

/** The parts of an image that say it. */
export type Host = Pick<NetworkSpec, "edgeAddress" | "dhcp" | "dnsForwarders" | "wireguard"> & {
  readonly tunnels: readonly Pick<TunnelSpec, "type" | "enabled">[];
};

const udp = (name: Opening["name"], from: Opening["from"], port: number): Opening => ({
  name,
  from,
  protocol: "udp",
  port,
});

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

/** Those at which somebody of that side may knock. */
export const openTo = (openings: readonly Opening[], side: "inside" | "outside"): Opening[] =>
  openings.filter(({ from }) => from === side || from === "anywhere");

/** Of a packet that is addressed to the edge: whether one of the openings takes it. */
export function takes(openings: readonly Opening[], { protocol, destination, destinationPort }: Packet): boolean {
  const numbers = { icmp: icmpOf(parseAddress(destination).family), tcp: TCP, udp: UDP, esp: 50 };
  return openings.some(
    (opening) => numbers[opening.protocol] === protocol && (opening.port === null || opening.port === destinationPort),
  );
}
