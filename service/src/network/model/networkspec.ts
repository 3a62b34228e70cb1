/**
 * Renders the rows of a network as the spec that the router driver applies. Pure: the caller passes decrypted keys and the
 * names of network devices.
 */
import { runAtOnce } from "../../base/turn.ts";
import type { NetworkSpec, Port, Translated, TunnelSpec } from "../../drivers/router/interface.ts";
import type { LinkRow } from "../linktable.ts";
import type { NetworkRow } from "../table.ts";
import { defaultFirewall, firewallOf, type ParseFirewall } from "./firewall/firewall.ts";
import { convertFirewall } from "./firewall/routerform.ts";
import { natOf } from "./outside.ts";
import { address6Of, cidr6Of, cidrOf, gateway6Of, macOf, showAddress } from "./plan.ts";

/** Settings of the host that are part of every spec. */
export interface NetworkEnvironment {
  /** Returns the host device of a link's NIC, by the link's id. The machine driver of the host creates it. */
  readonly deviceOf: (link: number) => string;
  /** Addresses of the DNS resolvers that servers get by DHCP. */
  readonly resolvers: readonly string[];
  /** Addresses to which the edge forwards DNS queries of its servers; empty: it does not forward. */
  readonly forwarders: readonly string[];
  /** Addresses, blocks and ranges beyond the edge that servers cannot reach. */
  readonly closed: readonly string[];
}

/** Largest packet on a network, in bytes. */
const mtu = 1500;
/** Default UDP port of the first edge with WireGuard (docs/spec.md#vpn-tunnel); each further edge has the next free one. */
export const firstWireguardPort = 51_820;

/** Returns the same as `renderInTurns`, at once. */
export const renderNetworkSpec = (...input: Parameters<typeof renderInTurns>): NetworkSpec =>
  runAtOnce(renderInTurns(...input));

/** Returns the spec of a network, with yields. `privateKey`: the edge's WireGuard key, decrypted; null: it has none. */
export function* renderInTurns(
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
    /** NAT of networks with private addresses. */
    readonly nat: Translated;
  },
  parse: ParseFirewall = firewallOf,
): Generator<void, NetworkSpec> {
  const { kind, first6 } = network;
  const gateway = network.gateway === null ? null : showAddress(network.gateway);
  // A private network has no edge; its gateway is one of its servers.
  const hasEdge = kind !== "private";
  const firewall = kind === "public" ? parse(network) : defaultFirewall;
  const ports: Port[] = [];
  for (const { id, ip, bandwidth, host_name } of links) {
    const addresses = [showAddress(ip), ...(first6 === null ? [] : [address6Of(first6, network, ip)])];
    ports.push({ id, device: deviceOf(id), mac: macOf(id), addresses, bandwidth, name: host_name });
    yield;
  }
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
    firewall: yield* convertFirewall(firewall),
    tunnels,
    wireguard: privateKey === null ? null : { privateKey, listenPort: network.wireguard_port ?? firstWireguardPort },
    ports,
    dhcp: { enabled: network.is_dhcp === 1, router: gateway, dns: hasEdge ? resolvers : [] },
    dnsForwarders: hasEdge ? forwarders : [],
    closed: hasEdge ? closed : [],
  };
}
