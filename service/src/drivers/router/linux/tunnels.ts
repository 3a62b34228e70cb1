/**
 * Adapts the IPsec and WireGuard drivers to one interface, `TunnelEngine`. Each engine gets the complete spec of a network and takes the
 * tunnels of its own type.
 */

import type { NetworkSpec, TunnelStatus } from "../interface.ts";
import type { Edge, Ipsec } from "../ipsec/ipsec.ts";
import type { Wireguard, WireguardEdge } from "../wireguard/wireguard.ts";

/** The edge at which the tunnels of a network begin. */
export type TunnelEdge = Edge & WireguardEdge;

/** The driver of all tunnels of one type. */
export interface TunnelEngine {
  /** Brings the network's tunnels of this type to the spec. Unchanged tunnels are not interrupted. */
  apply(edge: TunnelEdge, spec: NetworkSpec): Promise<void>;
  /** Removes all tunnels of this type from the network. An unknown network is ignored. */
  remove(edge: Pick<TunnelEdge, "namespace" | "device">): Promise<void>;
  /** Returns tunnel statuses by namespace, of all applied networks or of one namespace. */
  observe(namespace?: string): Promise<ReadonlyMap<string, readonly TunnelStatus[]>>;
  /** Ends the driver; tunnels stay up. */
  close(): void;
}

/** Restricts the IPsec driver to the IPsec tunnels of a spec. */
export function ipsecTunnels(ipsec: Ipsec): TunnelEngine {
  return {
    async apply(edge, spec) {
      const tunnels = spec.tunnels.filter((tunnel) => tunnel.type === "ipsec");
      await (tunnels.length > 0 ? ipsec.apply(edge, tunnels) : ipsec.remove(edge.namespace));
    },
    remove: ({ namespace }) => ipsec.remove(namespace),
    observe: ipsec.observe,
    close: ipsec.close,
  };
}

/** Restricts the WireGuard driver to the WireGuard tunnels of a spec. */
export function wireguardTunnels(wireguard: Wireguard): TunnelEngine {
  return {
    async apply(edge, spec) {
      const tunnels = spec.tunnels.filter((tunnel) => tunnel.type === "wireguard");
      await (tunnels.length > 0 ? wireguard.apply(edge, spec.wireguard, tunnels) : wireguard.remove(edge));
    },
    remove: wireguard.remove,
    observe: wireguard.observe,
    close: wireguard.close,
  };
}
