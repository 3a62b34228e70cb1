/**
 * Networks. A public network has an edge: a router with firewall and VPN tunnels. A private network is a switch without a router.
 * Firewall and tunnels are set by operations of their own and returned as part of the public network.
 */
import type { Static } from "typebox";
import {
  boolean,
  date,
  fields,
  id,
  integer,
  Labels,
  labelFilter,
  list,
  listQuery,
  name,
  nameFilter,
  nullable,
  object,
  optional,
  shownAs,
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

const bandwidth = <const D extends string>(description: D) =>
  integer(bandwidths.minimum, bandwidths.maximum, { description });
const generation = <const D extends string>(minimum: number, description: D) =>
  integer(minimum, Number.MAX_SAFE_INTEGER, { description });

/** A link of a network to a server. */
export const NetworkLink = object("NetworkLink", "A link of a network to a server.", {
  LinkState: word(["New", "Active"], {
    description: "`New`: being created. `Active`: the VM has the NIC, and its address is served.",
  }),
  IP: text({ description: "IPv4 address of the server in this network." }),
  MAC: text({ description: "MAC address of the NIC: six pairs of lower-case hexadecimal digits." }),
  ServerID: id({ description: "Id of the server." }),
  LinkID: id({ description: "Id of the link." }),
  IP6: text({ description: "IPv6 address. Empty if the network has no IPv6." }),
});
/** TypeScript type of this schema. */
export type NetworkLink = Static<typeof NetworkLink>;

/** A public network with its edge router. */
export const PublicNetwork = object(
  "PublicNetwork",
  "A public network: an address block behind an edge router with firewall and VPN.",
  {
    Id: id({ description: "Id of the network." }),
    Name: name({ description: "Name of the network." }),
    State: word(publicStates, {
      description: "`FromPool`: being created. `Active`: the edge works. `Deleting`: being deleted.",
    }),
    Mask: text({ description: "Network mask of `CIDR`, such as `255.255.255.248`." }),
    Gateway: text({ description: "Address of the edge router inside the block: its first usable address." }),
    CIDR: text({ description: "Address block of the network." }),
    EdgeExternalIp: text({ description: "External address of the edge router; the endpoint of tunnels." }),
    LinkedServers: list(NetworkLink, { description: "Links to servers, by `LinkID`." }),
    IsDHCP: boolean({ description: "`true`: linked servers get their addresses by DHCP." }),
    DCLocation: text({ description: "`TechTitle` of the location." }),
    NetworkCapacity: text({ description: "Prefix length." }),
    Type: word(["PublicClient"], { description: "Always `PublicClient`." }),
    Bandwidth: bandwidth("Mbit/s across the edge, in each direction."),
    Firewall,
    Vpn: object("Vpn", "The VPN of a public network.", {
      Tunnels: list(Tunnel, { description: "Tunnels in the order of the request." }),
    }),
    DateCreate: date({ description: "When the network was created." }),
    Generation: generation(1, "Number of the desired state. Every change of the network increases it."),
    AppliedGeneration: generation(
      0,
      "Generation that the edge applies to packets now. Less than `Generation`: a change is being applied.",
    ),
    Error: nullable(WorkError),
    CIDR6: nullable(text({ description: "IPv6 block, a /64. `null`: no IPv6." })),
    Gateway6: nullable(text({ description: "IPv6 address of the edge router inside the block. `null`: no IPv6." })),
    Labels,
  },
);
/** TypeScript type of this schema. */
export type PublicNetwork = Static<typeof PublicNetwork>;

/** A private network. */
export const Network = object("Network", "A private network: a switch without a router.", {
  ID: id({ description: "Id of the network." }),
  Name: name({ description: "Name of the network." }),
  State: word(privateStates, { description: "`New`: being created. `Active`: it works." }),
  Mask: text({ description: "Network mask of `CIDR`, such as `255.255.255.0`." }),
  Gateway: text({ description: "Default route of the servers. Empty: none." }),
  Bandwidth: integer(bandwidths.private, bandwidths.private, {
    description: "Default bandwidth of a new link, in Mbit/s.",
  }),
  LinkedServers: list(NetworkLink, { description: "Links to servers, by `LinkID`." }),
  IsDHCP: boolean({ description: "`true`: linked servers get their addresses by DHCP." }),
  DCLocation: text({ description: "`TechTitle` of the location." }),
  NetworkCapacity: text({ description: "Prefix length." }),
  Type: word(["PrivateClient"], { description: "Always `PrivateClient`." }),
  CIDR: text({ description: "Address block of the network." }),
  DateCreate: date({ description: "When the network was created." }),
  Error: nullable(WorkError),
  Labels,
});
/** TypeScript type of this schema. */
export type Network = Static<typeof Network>;

const peerQuery = fields({
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
const location = optional(text({ maxLength: 64, description: "Name of a location. Default: the first location." }));

/** Operations on public and private networks, firewalls and tunnels. */
export const networkOperations = operations({
  listPublicNetworks: {
    method: "GET",
    path: "/publicnetwork",
    access: "network:read",
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
    body: object("CreatePublicNetworkRequest", "A new public network.", {
      Name: name({ description: "Name of the network." }),
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
    description: "Returns the present counters of the firewall rules.",
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
    body: object(
      "UpdatePublicNetworkRequest",
      "What changes. Absent fields stay unchanged.",
      {
        Name: optional(name({ description: "Name of the network." })),
        Bandwidth: optional(bandwidth("Mbit/s in each direction.")),
        Labels: optional(Labels),
      },
      shownAs(PublicNetwork),
    ),
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
    answer: list(TunnelStatus, { description: "One item for each tunnel." }),
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
    errors: ["quota_exceeded"],
  },
  listNetworks: {
    method: "GET",
    path: "/network",
    access: "network:read",
    summary: "List private networks",
    description: "Returns the private networks of the project, by id.",
    query: filters(privateStates),
    answer: list(Network),
    list: true,
  },
  readNetwork: {
    method: "GET",
    path: "/network/{id}",
    access: "network:read",
    summary: "Get a private network",
    description: "Returns the network with its links.",
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
    body: object("CreateNetworkRequest", "A new private network.", {
      Name: name({ description: "Name of the network." }),
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
    description: "Address block, gateway and DHCP cannot be changed.",
    params: privateParam,
    body: object(
      "UpdateNetworkRequest",
      "What changes. Absent fields stay unchanged.",
      { Name: optional(name({ description: "Name of the network." })), Labels: optional(Labels) },
      shownAs(Network),
    ),
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
