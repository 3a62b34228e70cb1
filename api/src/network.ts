/**
 * Networks. A public network has an edge: a router with firewall and VPN tunnels. A private network is a switch without a router.
 * Firewall and tunnels are set by operations of their own and returned as part of the public network.
 */
import { type Static, Type } from "typebox";
import {
  boolean,
  date,
  id,
  integer,
  Labels,
  labelFilter,
  list,
  listQuery,
  name,
  nameFilter,
  nullable,
  optional,
  text,
  word,
  wordsFilter,
} from "./common.ts";
import { Firewall, FirewallInput, FirewallVerdict, firewallLimits, PacketInput } from "./firewall.ts";
import { operations } from "./operation.ts";
import { peerDialectNames, Tunnel, TunnelPeer, TunnelStatus, Vpn } from "./vpn.ts";
import { WorkError } from "./work.ts";

const publicStates = ["FromPool", "Active", "Deleting"] as const;
const privateStates = ["New", "Active"] as const;

/** Mbit/s (docs/spec.md#defaults-and-limits). */
export const bandwidths = { minimum: 1, maximum: 10_000, public: 100, private: 1000 } as const;

const bandwidth = (description: string) => integer(bandwidths.minimum, bandwidths.maximum, { description });
const generation = (minimum: number, description: string) => integer(minimum, Number.MAX_SAFE_INTEGER, { description });

/** A link of a network to a server. */
export const NetworkLink = Type.Object(
  {
    LinkState: word(["New", "Active"]),
    IP: text(),
    MAC: text(),
    ServerID: id(),
    LinkID: id(),
    IP6: text({ description: "IPv6 address. Empty if the network has no IPv6." }),
  },
  { title: "NetworkLink" },
);
/** TypeScript type of this schema. */
export type NetworkLink = Static<typeof NetworkLink>;

/** A public network with its edge router. */
export const PublicNetwork = Type.Object(
  {
    Id: id(),
    Name: name(),
    State: word(publicStates),
    Mask: text(),
    Gateway: text({ description: "Address of the edge router inside the block: its first usable address." }),
    CIDR: text(),
    EdgeExternalIp: text({ description: "External address of the edge router; the endpoint of tunnels." }),
    LinkedServers: list(NetworkLink),
    IsDHCP: boolean(),
    DCLocation: text(),
    NetworkCapacity: text({ description: "Prefix length." }),
    Type: word(["PublicClient"]),
    Bandwidth: bandwidth("Mbit/s across the edge, in each direction."),
    Firewall,
    Vpn: Type.Object({ Tunnels: list(Tunnel) }),
    DateCreate: date(),
    Generation: generation(1, "Number of the desired state. Every change of the network increases it."),
    AppliedGeneration: generation(
      0,
      "Generation that the edge applies to packets now. Less than `Generation`: a change is being applied.",
    ),
    Error: nullable(WorkError),
    CIDR6: nullable(text({ description: "IPv6 block, a /64. `null`: no IPv6." })),
    Gateway6: nullable(text()),
    Labels,
  },
  { title: "PublicNetwork" },
);
/** TypeScript type of this schema. */
export type PublicNetwork = Static<typeof PublicNetwork>;

/** A private network. */
export const Network = Type.Object(
  {
    ID: id(),
    Name: name(),
    State: word(privateStates),
    Mask: text(),
    Gateway: text({ description: "Default route of the servers. Empty: none." }),
    Bandwidth: integer(bandwidths.private, bandwidths.private, {
      description: "Default bandwidth of a new link, in Mbit/s.",
    }),
    LinkedServers: list(NetworkLink),
    IsDHCP: boolean(),
    DCLocation: text(),
    NetworkCapacity: text({ description: "Prefix length." }),
    Type: word(["PrivateClient"]),
    CIDR: text(),
    DateCreate: date(),
    Error: nullable(WorkError),
    Labels,
  },
  { title: "Network" },
);
/** TypeScript type of this schema. */
export type Network = Static<typeof Network>;

const peerQuery = Type.Object({
  peer: optional(
    word(peerDialectNames, { description: "Output format (vendor). Default `strongswan`, for WireGuard `wg-quick`." }),
  ),
});

const publicParam = { id: "public_network_not_found" } as const;
const privateParam = { id: "network_not_found" } as const;
const filters = (states: readonly string[]) =>
  listQuery({
    name: nameFilter,
    state: wordsFilter(states),
    label: labelFilter,
    location: optional(text({ description: "Names of locations, separated by commas." })),
  });
const dhcp = optional(boolean({ description: "DHCP for linked servers. Default `true`." }));
const location = optional(text({ maxLength: 64, description: "Default: the first location." }));

/** Operations on public and private networks, firewalls and tunnels. */
export const networkOperations = operations({
  listPublicNetworks: {
    method: "GET",
    path: "/publicnetwork",
    access: "network:read",
    observes: true,
    summary: "List public networks",
    description: "Includes firewalls and tunnels. Counters are `null`.",
    query: filters(publicStates),
    answer: list(PublicNetwork),
    list: true,
  },
  createPublicNetwork: {
    method: "POST",
    path: "/publicnetwork",
    access: "network:write",
    summary: "Create a public network",
    description:
      "Allocates an address block and an edge address from the pool, then creates the edge. `State` is `Active` when the edge works.",
    body: Type.Object({
      Name: name(),
      IsDHCP: dhcp,
      DCLocation: location,
      NetworkCapacity: optional(
        text({
          maxLength: 8,
          description:
            "Prefix length 24 to 30, with or without `/`, or 8, 16, 32, 64, 128, 256 addresses. Default `29`.",
        }),
      ),
      Bandwidth: optional(bandwidth("Mbit/s in each direction. Default 100.")),
      Labels: optional(Labels),
    }),
    answer: PublicNetwork,
    etag: true,
    resultOperation: "readPublicNetwork",
    wait: 2,
    errors: ["quota_exceeded", "pool_exhausted", "engine_unavailable"],
  },
  readPublicNetwork: {
    method: "GET",
    path: "/publicnetwork/{id}",
    access: "network:read",
    observes: true,
    summary: "Get a public network with firewall, counters and tunnels",
    params: publicParam,
    query: peerQuery,
    answer: PublicNetwork,
    etag: true,
  },
  updatePublicNetwork: {
    method: "PUT",
    path: "/publicnetwork/{id}",
    access: "network:write",
    summary: "Update a public network",
    description: "A new bandwidth applies at once; connections continue.",
    params: publicParam,
    body: Type.Object({
      Name: optional(name()),
      Bandwidth: optional(bandwidth("Mbit/s in each direction.")),
      Labels: optional(Labels),
    }),
    answer: PublicNetwork,
    etag: true,
    resultOperation: "readPublicNetwork",
    wait: 2,
    repeatable: true,
    errors: ["action_not_allowed"],
  },
  deletePublicNetwork: {
    method: "DELETE",
    path: "/publicnetwork/{id}",
    access: "network:write",
    summary: "Delete a public network, its firewall and tunnels",
    description: "Rejected while servers are linked. The addresses are not allocated again for 60 seconds.",
    params: publicParam,
    answer: null,
    resultOperation: "readPublicNetwork",
    wait: 2,
    errors: ["network_in_use"],
  },
  configureVpn: {
    method: "PUT",
    path: "/publicnetwork/{id}/vpn",
    access: "network:write",
    summary: "Configure the tunnels of a public network",
    description:
      "Replaces the list of tunnels: items with `Id` are updated, items without are created, and other tunnels are deleted. A success response means that the edge is configured. It does not mean that the peer is connected; see `GET …/vpn/status`.",
    params: publicParam,
    body: Vpn,
    answer: PublicNetwork,
    etag: true,
    resultOperation: "readPublicNetwork",
    wait: 2,
    errors: ["action_not_allowed", "tunnel_type_fixed", "peer_network_overlap", "quota_exceeded", "engine_unavailable"],
  },
  readVpnStatus: {
    method: "GET",
    path: "/publicnetwork/{id}/vpn/status",
    access: "network:read",
    observes: true,
    summary: "Get the status of the tunnels",
    description: "One item for each tunnel, read from the VPN engine now.",
    params: publicParam,
    answer: list(TunnelStatus),
  },
  readTunnelPeer: {
    method: "GET",
    path: "/publicnetwork/{id}/vpn/{tunnelId}/peer",
    access: "network:read",
    summary: "Get the peer configuration of a tunnel",
    description:
      "Contains the placeholders `<SharedKey>` and `<private key>` instead of secrets. For WireGuard also as a QR code.",
    params: { ...publicParam, tunnelId: "tunnel_not_found" },
    query: peerQuery,
    answer: TunnelPeer,
  },
  issueTunnelPeer: {
    method: "POST",
    path: "/publicnetwork/{id}/vpn/{tunnelId}/peer",
    access: "network:write",
    summary: "Issue a peer configuration with secrets",
    description:
      "Complete and ready to import. For WireGuard, each call creates a new key pair for the peer. `PeerPublicKey` changes, and a peer with the previous key is disconnected. Only this response contains the private key, also as a QR code.",
    params: { ...publicParam, tunnelId: "tunnel_not_found" },
    query: peerQuery,
    answer: TunnelPeer,
    wait: 2,
    errors: ["action_not_allowed"],
  },
  configureFirewall: {
    method: "PUT",
    path: "/publicnetwork/{id}/firewall",
    access: "network:write",
    summary: "Set the firewall of a public network",
    description:
      'Replaces all rules atomically: every packet is judged by the old set or by the new one. Connections that the new set allows continue; others are closed. With `ConfirmWithin`, the last confirmed set returns unless a request confirms the new one in time: `{"Confirm":true}`, or the same set without `ConfirmWithin`.',
    params: publicParam,
    body: FirewallInput,
    bodyBytes: firewallLimits.bytes,
    answer: PublicNetwork,
    etag: true,
    resultOperation: "readPublicNetwork",
    wait: 2,
    repeatable: true,
    errors: ["action_not_allowed", "quota_exceeded", "nothing_to_confirm"],
  },
  checkFirewall: {
    method: "POST",
    path: "/publicnetwork/{id}/firewall/check",
    access: "network:read",
    summary: "Test a packet against the firewall",
    description:
      "Returns the verdict on the first packet of a connection, by the stored rules or by the given ones. Changes nothing.",
    params: publicParam,
    body: PacketInput,
    bodyBytes: firewallLimits.bytes,
    answer: FirewallVerdict,
    readOnlyPost: true,
  },
  listNetworks: {
    method: "GET",
    path: "/network",
    access: "network:read",
    summary: "List private networks",
    query: filters(privateStates),
    answer: list(Network),
    list: true,
  },
  readNetwork: {
    method: "GET",
    path: "/network/{id}",
    access: "network:read",
    summary: "Get a private network",
    params: privateParam,
    answer: Network,
    etag: true,
  },
  createNetwork: {
    method: "POST",
    path: "/network",
    access: "network:write",
    summary: "Create a private network",
    description: "A separate switch without a router: packets neither enter nor leave it.",
    body: Type.Object({
      Name: name(),
      Gateway: optional(
        text({
          maxLength: 64,
          description:
            "Default route that DHCP gives to servers. Without `CIDR`, the network is the /24 that contains it.",
        }),
      ),
      IsDHCP: dhcp,
      DCLocation: location,
      CIDR: optional(
        text({
          maxLength: 64,
          description:
            "/16 to /29 inside 10.0.0.0/8, 172.16.0.0/12 or 192.168.0.0/16. Default: a free /24 of 172.16.0.0/12.",
        }),
      ),
      Labels: optional(Labels),
    }),
    answer: Network,
    etag: true,
    resultOperation: "readNetwork",
    errors: ["quota_exceeded", "pool_exhausted"],
  },
  updateNetwork: {
    method: "PUT",
    path: "/network/{id}",
    access: "network:write",
    summary: "Update a private network",
    params: privateParam,
    body: Type.Object({ Name: optional(name()), Labels: optional(Labels) }),
    answer: Network,
    etag: true,
    resultOperation: "readNetwork",
    repeatable: true,
  },
  deleteNetwork: {
    method: "DELETE",
    path: "/network/{id}",
    access: "network:write",
    summary: "Delete a private network",
    description: "Rejected while servers are linked.",
    params: privateParam,
    answer: null,
    errors: ["network_in_use"],
  },
});
