/** The two kinds of tunnels as a network's driver sees them: given a whole image, each takes what is its own. */

import type { NetworkSpec, TunnelStatus } from "../interface.ts";
import type { Edge, Ipsec } from "../ipsec/ipsec.ts";
import type { Wireguard, WireguardEdge } from "../wireguard/wireguard.ts";

/** Where the tunnels of a network begin. */
export type TunnelEdge = Edge & WireguardEdge;

export interface TunnelEngine {
  /** The network's tunnels of this kind become those of the image; unchanged ones go on. */
  apply(edge: TunnelEdge, spec: NetworkSpec): Promise<void>;
  /** Nothing of them is left; an unknown network is fine. */
  remove(edge: Pick<TunnelEdge, "namespace" | "device">): Promise<void>;
  /** By namespace, of the networks that were applied, or of one of them. */
  observe(namespace?: string): Promise<ReadonlyMap<string, readonly TunnelStatus[]>>;
  /** The tunnels go on. */
  close(): void;
}

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
