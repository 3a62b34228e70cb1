/**
 * Networks: public ones with an edge of their own (router, firewall, tunnels), and private ones, which are a switch and nothing
 * more. A public network is one object: its firewall and its tunnels are set by calls of their own, and shown within it.
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
import { Firewall, FirewallVerdict, FirewallWish, PacketWish } from "./firewall.ts";
import { operations } from "./operation.ts";
import { peerDialectWords, Tunnel, TunnelPeer, TunnelStatus, Vpn } from "./vpn.ts";
import { WorkError } from "./work.ts";

const publicStates = ["FromPool", "Active", "Deleting"] as const;
const privateStates = ["New", "Active"] as const;

/** Mbit/s (docs/spec.md#defaults-and-limits). */
export const bandwidths = { minimum: 1, maximum: 10_000, public: 100, private: 1000 } as const;

const bandwidth = (description: string) => integer(bandwidths.minimum, bandwidths.maximum, { description });
const generation = (minimum: number, description: string) => integer(minimum, Number.MAX_SAFE_INTEGER, { description });

export const NetworkLink = Type.Object(
  {
    LinkState: word(["New", "Active"]),
    IP: text(),
    MAC: text(),
    ServerID: id(),
    LinkID: id(),
    IP6: text({ description: "Empty where the network has no IPv6." }),
  },
  { title: "NetworkLink" },
);
export type NetworkLink = Static<typeof NetworkLink>;

export const PublicNetwork = Type.Object(
  {
    Id: id(),
    Name: name(),
    State: word(publicStates),
    Mask: text(),
    Gateway: text({ description: "First usable address of the block; the edge router's." }),
    CIDR: text(),
    EdgeExternalIp: text({ description: "The edge router's own address; end point of tunnels." }),
    LinkedServers: list(NetworkLink),
    IsDHCP: boolean(),
    DCLocation: text(),
    NetworkCapacity: text({ description: "Prefix length." }),
    Type: word(["PublicClient"]),
    Bandwidth: bandwidth("Mbit/s of what crosses the edge, each direction by itself."),
    Firewall,
    Vpn: Type.Object({ Tunnels: list(Tunnel) }),
    DateCreate: date(),
    Generation: generation(1, "Counts every change of what the network should be."),
    AppliedGeneration: generation(0, "What packets obey now. Less than `Generation`: a change is on its way."),
    Error: nullable(WorkError),
    CIDR6: nullable(text({ description: "The /64; `null` where there is no IPv6." })),
    Gateway6: nullable(text()),
    Labels,
  },
  { title: "PublicNetwork" },
);
export type PublicNetwork = Static<typeof PublicNetwork>;

export const Network = Type.Object(
  {
    ID: id(),
    Name: name(),
    State: word(privateStates),
    Mask: text(),
    Gateway: text({ description: "Default route of the servers; empty: none." }),
    Bandwidth: integer(bandwidths.private, bandwidths.private, { description: "Default of a new link, Mbit/s." }),
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
export type Network = Static<typeof Network>;

const peerQuery = Type.Object({
  peer: optional(
    word(peerDialectWords, { description: "In whose words. Default `strongswan`, for WireGuard `wg-quick`." }),
  ),
});

const publicParam = { id: "public_network_not_found" } as const;
const privateParam = { id: "network_not_found" } as const;
const filters = (states: readonly string[]) =>
  listQuery({
    name: nameFilter,
    state: wordsFilter(states),
    label: labelFilter,
    location: optional(text({ description: "One name or several with commas." })),
  });
const dhcp = optional(boolean({ description: "DHCP for linked servers. Default `true`." }));
const location = optional(text({ maxLength: 64, description: "Default: the first location." }));

export const networkOperations = operations({
  listPublicNetworks: {
    method: "GET",
    path: "/publicnetwork",
    access: "network:read",
    observes: true,
    summary: "List public networks",
    description: "With their firewalls and tunnels; counters are `null`.",
    query: filters(publicStates),
    answer: list(PublicNetwork),
    list: true,
  },
  createPublicNetwork: {
    method: "POST",
    path: "/publicnetwork",
    access: "network:write",
    summary: "Order a public network",
    description: "Takes a block and an edge address from the pool, then the edge is built. `Active`: it works.",
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
      Bandwidth: optional(bandwidth("Mbit/s, each direction by itself. Default 100.")),
      Labels: optional(Labels),
    }),
    answer: PublicNetwork,
    tagged: true,
    shows: "readPublicNetwork",
    wait: 2,
    faults: ["quota_exceeded", "pool_exhausted", "engine_unavailable"],
  },
  readPublicNetwork: {
    method: "GET",
    path: "/publicnetwork/{id}",
    access: "network:read",
    observes: true,
    summary: "Read a public network with firewall, counters and tunnels",
    params: publicParam,
    query: peerQuery,
    answer: PublicNetwork,
    tagged: true,
  },
  updatePublicNetwork: {
    method: "PUT",
    path: "/publicnetwork/{id}",
    access: "network:write",
    summary: "Edit name, bandwidth and labels of a public network",
    description: "Bandwidth changes live; connections go on.",
    params: publicParam,
    body: Type.Object({
      Name: optional(name()),
      Bandwidth: optional(bandwidth("Mbit/s, each direction by itself.")),
      Labels: optional(Labels),
    }),
    answer: PublicNetwork,
    tagged: true,
    shows: "readPublicNetwork",
    wait: 2,
    repeatable: true,
    faults: ["action_not_allowed"],
  },
  deletePublicNetwork: {
    method: "DELETE",
    path: "/publicnetwork/{id}",
    access: "network:write",
    summary: "Delete a public network with its firewall and tunnels",
    description: "Only without linked servers. Its addresses are not given out again for 60 seconds.",
    params: publicParam,
    answer: null,
    shows: "readPublicNetwork",
    wait: 2,
    faults: ["network_in_use"],
  },
  configureVpn: {
    method: "PUT",
    path: "/publicnetwork/{id}/vpn",
    access: "network:write",
    summary: "Configure the tunnels of a public network",
    description:
      "The whole list: items with `Id` are kept and changed, items without are made, tunnels that are not in it are removed. The answer means that the edge has the configuration, not that a peer has answered.",
    params: publicParam,
    body: Vpn,
    answer: PublicNetwork,
    tagged: true,
    shows: "readPublicNetwork",
    wait: 2,
    faults: ["action_not_allowed", "tunnel_type_fixed", "peer_network_overlap", "quota_exceeded", "engine_unavailable"],
  },
  readVpnStatus: {
    method: "GET",
    path: "/publicnetwork/{id}/vpn/status",
    access: "network:read",
    observes: true,
    summary: "Read the status of the tunnels",
    description: "One item per tunnel, asked from the engine at this moment.",
    params: publicParam,
    answer: list(TunnelStatus),
  },
  readTunnelPeer: {
    method: "GET",
    path: "/publicnetwork/{id}/vpn/{tunnelId}/peer",
    access: "network:read",
    summary: "Read a ready configuration for the far end of a tunnel",
    description: "With `<SharedKey>` and `<private key>` in place of secrets; of WireGuard also as a QR code.",
    params: { ...publicParam, tunnelId: "tunnel_not_found" },
    query: peerQuery,
    answer: TunnelPeer,
  },
  issueTunnelPeer: {
    method: "POST",
    path: "/publicnetwork/{id}/vpn/{tunnelId}/peer",
    access: "network:write",
    summary: "Issue a complete configuration for the far end of a tunnel",
    description:
      "With all secrets, ready to be imported. Of WireGuard each call makes a new key pair for the peer: `PeerPublicKey` changes, whoever has the key before is cut off, and the private half is in this answer only, also as a QR code.",
    params: { ...publicParam, tunnelId: "tunnel_not_found" },
    query: peerQuery,
    answer: TunnelPeer,
    wait: 2,
    faults: ["action_not_allowed"],
  },
  configureFirewall: {
    method: "PUT",
    path: "/publicnetwork/{id}/firewall",
    access: "network:write",
    summary: "Set the firewall of a public network",
    description:
      'The whole rule set, in one step: every packet meets the old set or the new one. Connections that the new set admits go on, others are cut. With `ConfirmWithin` the last confirmed set comes back unless `{"Confirm":true}`, or the set again without `ConfirmWithin`, follows in time.',
    params: publicParam,
    body: FirewallWish,
    answer: PublicNetwork,
    tagged: true,
    shows: "readPublicNetwork",
    wait: 2,
    repeatable: true,
    faults: ["action_not_allowed", "quota_exceeded", "nothing_to_confirm"],
  },
  checkFirewall: {
    method: "POST",
    path: "/publicnetwork/{id}/firewall/check",
    access: "network:read",
    summary: "Ask the firewall about a packet",
    description:
      "What would happen to the first packet of such a connection, by the stored rules or by those given. Changes nothing.",
    params: publicParam,
    body: PacketWish,
    answer: FirewallVerdict,
    asks: true,
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
    summary: "Read a private network",
    params: privateParam,
    answer: Network,
    tagged: true,
  },
  createNetwork: {
    method: "POST",
    path: "/network",
    access: "network:write",
    summary: "Create a private network",
    description: "A switch of its own: no router, no way in or out.",
    body: Type.Object({
      Name: name(),
      Gateway: optional(
        text({
          maxLength: 64,
          description: "Told to servers as default route. Without `CIDR` the network is the /24 around it.",
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
    tagged: true,
    shows: "readNetwork",
    faults: ["quota_exceeded", "pool_exhausted"],
  },
  updateNetwork: {
    method: "PUT",
    path: "/network/{id}",
    access: "network:write",
    summary: "Edit name and labels of a private network",
    params: privateParam,
    body: Type.Object({ Name: optional(name()), Labels: optional(Labels) }),
    answer: Network,
    tagged: true,
    shows: "readNetwork",
    repeatable: true,
  },
  deleteNetwork: {
    method: "DELETE",
    path: "/network/{id}",
    access: "network:write",
    summary: "Delete a private network",
    description: "Only without linked servers.",
    params: privateParam,
    answer: null,
    faults: ["network_in_use"],
  },
});
