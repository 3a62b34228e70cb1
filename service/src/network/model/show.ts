/** Converts networks, their links and tunnels into response bodies and event data: from rows and the state on the host. */
import { formatDate, type Labels } from "@brume/api/common.ts";
import type { Network, NetworkLink, PublicNetwork } from "@brume/api/network.ts";
import type { PeerDialect, Tunnel, TunnelPeer } from "@brume/api/vpn.ts";
import type { WorkError } from "@brume/api/work.ts";
import type { Sealer } from "../../base/secret.ts";
import type { NetworkStatus, TunnelSpec } from "../../drivers/router/interface.ts";
import type { NearEnd, Secrets } from "../../drivers/router/model/peertext.ts";
import type { NetworkAggregate } from "../aggregate.ts";
import type { LinkRow } from "../linktable.ts";
import type { NetworkRow, TunnelRow } from "../table.ts";
import { abridge, createFirewallParser, firewallOf, showFirewall } from "./firewall/firewall.ts";
import { firstWireguardPort } from "./networkspec.ts";
import { reachableAddress } from "./outside.ts";
import { address6Of, cidr6Of, cidrOf, gateway6Of, macOf, maskOf, prefixOf, showAddress } from "./plan.ts";
import { describePeer, renderConfig } from "./vpn/peer.ts";
import { openKey, readTunnel, showTunnel, type TunnelSettings, toSpec } from "./vpn/tunnel.ts";

/** What a response shows besides the rows. */
export interface View {
  /** State on the host with the rule counters; null: counters are not shown. */
  readonly live: Pick<NetworkStatus, "rules"> | null;
  /** Decrypts shared keys; null: the caller may not see them, and they are empty. */
  readonly secrets: Sealer | null;
  /** Vendor format of the peer configurations. */
  readonly peer?: PeerDialect | undefined;
}

const readLabels = (row: { readonly labels: string }): Labels => JSON.parse(row.labels) as Labels;
const readError = ({ error }: NetworkRow): WorkError | null =>
  error === null ? null : (JSON.parse(error) as WorkError);
const textOf = (address: string | null): string => (address === null ? "" : showAddress(address));

/** Returns the state of a public network as the API names it. */
export const publicState = ({ state }: Pick<NetworkRow, "state">): PublicNetwork["State"] =>
  state === "New" ? "FromPool" : state;

const showLink = (link: LinkRow, network: NetworkRow): NetworkLink => ({
  LinkState: link.state,
  IP: showAddress(link.ip),
  MAC: macOf(link.id),
  ServerID: link.server_id,
  LinkID: link.id,
  IP6: network.first6 === null ? "" : address6Of(network.first6, network, link.ip),
});

/** Returns what the peer of a tunnel needs to know of the edge. */
function nearEnd(network: NetworkRow, tunnel: TunnelSettings): NearEnd {
  const { wireguard_public: publicKey, wireguard_port } = network;
  return {
    address: reachableAddress(network, tunnel),
    wireguard: publicKey === null ? null : { publicKey, listenPort: wireguard_port ?? firstWireguardPort },
  };
}

/** Returns the spec with an empty shared key: the peer configuration shows only that there is one. */
const specFor = (row: TunnelRow): TunnelSpec => toSpec(readTunnel(row), row.shared_key === null ? null : "");

/** Returns the peer configuration of a tunnel. Throws `query_invalid` if its type does not have the format `peer`. */
export const showPeer = (row: TunnelRow, network: NetworkRow, peer?: PeerDialect, secrets?: Secrets): TunnelPeer =>
  describePeer(specFor(row), nearEnd(network, readTunnel(row).settings), peer, secrets);

function showOneTunnel(row: TunnelRow, network: NetworkRow, { secrets, peer }: View): Tunnel {
  const stored = readTunnel(row);
  const near = nearEnd(network, stored.settings);
  return showTunnel(stored, {
    state: row.generation <= network.applied ? "Active" : "New",
    sharedKey: secrets === null ? "" : openKey(row, secrets),
    wireguard: near.wireguard,
    peerConfig: renderConfig(specFor(row), near, peer),
  });
}

/** Returns a public network as a response body. */
export function showPublicNetwork(aggregate: NetworkAggregate, view: View, parse = firewallOf): PublicNetwork {
  const { network } = aggregate;
  const Firewall = showFirewall(parse(network), {
    confirmBy: network.confirm_by,
    // The host counts the applied rules, which may still be the previous ones.
    counts: view.live !== null && network.applied === network.generation ? view.live.rules : null,
  });
  return showWith(Firewall, aggregate, view);
}

/** Returns a public network with this form of its firewall. */
export function showWith(
  Firewall: PublicNetwork["Firewall"],
  { network, links, tunnels }: NetworkAggregate,
  view: View,
): PublicNetwork {
  const { first6 } = network;
  return {
    Id: network.id,
    Name: network.name,
    State: publicState(network),
    Mask: maskOf(prefixOf(network)),
    Gateway: textOf(network.gateway),
    CIDR: cidrOf(network),
    EdgeExternalIp: textOf(network.edge),
    LinkedServers: links.map((link) => showLink(link, network)),
    IsDHCP: network.is_dhcp === 1,
    DCLocation: network.location,
    NetworkCapacity: String(prefixOf(network)),
    Type: "PublicClient",
    Bandwidth: network.bandwidth,
    Firewall,
    Vpn: { Tunnels: tunnels.map((row) => showOneTunnel(row, network, view)) },
    DateCreate: formatDate(network.created),
    Generation: network.generation,
    AppliedGeneration: network.applied,
    Error: readError(network),
    CIDR6: first6 === null ? null : cidr6Of(first6),
    Gateway6: first6 === null ? null : gateway6Of(first6),
    Labels: readLabels(network),
  };
}

/** Returns a private network as a response body. */
export function showNetwork(network: NetworkRow, links: readonly LinkRow[]): Network {
  return {
    ID: network.id,
    Name: network.name,
    State: network.state === "New" ? "New" : "Active",
    Mask: maskOf(prefixOf(network)),
    Gateway: textOf(network.gateway),
    Bandwidth: network.bandwidth,
    LinkedServers: links.map((link) => showLink(link, network)),
    IsDHCP: network.is_dhcp === 1,
    DCLocation: network.location,
    NetworkCapacity: String(prefixOf(network)),
    Type: "PrivateClient",
    CIDR: cidrOf(network),
    DateCreate: formatDate(network.created),
    Error: readError(network),
    Labels: readLabels(network),
  };
}

/**
 * Returns a network for events and the audit log: without secrets and counters, and of a large firewall only the rules that differ
 * from `other`, the network before or after.
 */
export function showForEvent(
  aggregate: NetworkAggregate,
  other: NetworkRow | null,
  parse = createFirewallParser(),
): { readonly resource: "publicnetwork" | "network"; readonly data: unknown } {
  const { network } = aggregate;
  if (network.kind === "private") return { resource: "network", data: showNetwork(network, aggregate.links) };
  const Firewall = abridge(parse(network), other && parse(other), network.confirm_by);
  return { resource: "publicnetwork", data: showWith(Firewall, aggregate, { live: null, secrets: null }) };
}
