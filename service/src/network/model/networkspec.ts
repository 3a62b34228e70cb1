/** A network's rows as the image that the router driver makes true. Pure: secrets come opened, names of devices from outside. */
import type { NetworkSpec, Translated, TunnelSpec } from "../../drivers/router/interface.ts";
import type { LinkRow, NetworkRow } from "../table.ts";
import { defaultFirewall, firewallOf, toPort } from "./firewall/firewall.ts";
import { natOf } from "./outside.ts";
import { address6Of, cidr6Of, cidrOf, gateway6Of, macOf, showAddress } from "./plan.ts";

export interface NetworkEnvironment {
  /** As the machine driver of the same host has it: the device that is a card's other end, by the link's id. */
  readonly deviceOf: (link: number) => string;
  /** Name servers told to servers. */
  readonly resolvers: readonly string[];
  /** The edge answers its servers' DNS questions by asking these; empty: it does not. */
  readonly forwarders: readonly string[];
  /** Addresses beyond the edge that servers do not reach. */
  readonly closed: readonly string[];
}

/** Bytes of the largest packet on a network. */
const mtu = 1500;
/** Of edges with WireGuard tunnels (docs/spec.md#vpn-tunnel): the first has this one, the next the next. */
export const firstWireguardPort = 51_820;

export function renderNetworkSpec(
  network: NetworkRow,
  links: readonly LinkRow[],
  tunnels: readonly TunnelSpec[],
  privateKey: string | null,
  {
    deviceOf,
    resolvers,
    forwarders,
    closed,
    nat,
  }: NetworkEnvironment & {
    /** What is translated of networks that the world does not route. */
    readonly nat: Translated;
  },
): NetworkSpec {
  const { kind, first6 } = network;
  const gateway = network.gateway === null ? null : showAddress(network.gateway);
  // A private network's gateway is one of its servers: nobody here answers on it.
  const hasEdge = kind !== "private";
  const firewall = kind === "public" ? firewallOf(network) : defaultFirewall;
  return {
    id: network.id,
    generation: network.generation,
    kind,
    v4: { cidr: cidrOf(network), gateway: hasEdge ? gateway : null },
    v6: first6 === null ? null : { cidr: cidr6Of(first6), gateway: gateway6Of(first6) },
    edgeAddress: hasEdge && network.edge !== null ? showAddress(network.edge) : null,
    nat: natOf(network, nat),
    mtu,
    bandwidth: kind === "public" ? network.bandwidth : null,
    firewall: toPort(firewall),
    tunnels,
    wireguard: privateKey === null ? null : { privateKey, listenPort: network.wireguard_port ?? firstWireguardPort },
    ports: links.map(({ id, ip, bandwidth, host_name }) => ({
      id,
      device: deviceOf(id),
      mac: macOf(id),
      addresses: [showAddress(ip), ...(first6 === null ? [] : [address6Of(first6, network, ip)])],
      bandwidth,
      name: host_name,
    })),
    dhcp: { enabled: network.is_dhcp === 1, router: gateway, dns: hasEdge ? resolvers : [] },
    dnsForwarders: hasEdge ? forwarders : [],
    closed: hasEdge ? closed : [],
  };
}
