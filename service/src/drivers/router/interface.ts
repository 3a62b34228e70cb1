/**
 * The driver interface for the networks of one host: data in, data out. A `NetworkSpec` is the complete desired state of one network:
 * switch, edge router, addresses, bandwidth, firewall, tunnels and ports. A driver brings the host to that state; it knows nothing of
 * projects, servers or the API. Addresses and blocks are canonical text (`10.64.0.9`, `10.64.0.8/29`, `fd24::1`). A port is the place
 * in a network where a server's NIC is connected. Times are milliseconds since 1970, bandwidths Mbit/s, sizes bytes.
 */

/** `public`: has an edge router; `shared`: has an edge, and its ports reach each other only through it; `private`: a switch without edge. */
export type NetworkKind = "public" | "shared" | "private";

/** One address family of a network. `gateway` is the address of the edge inside `cidr`, null in a private network. */
export interface Block {
  readonly cidr: string;
  readonly gateway: string | null;
}

/** Protocol of a firewall rule; `icmp` is ICMP in IPv4 and ICMPv6 in IPv6. */
export type Protocol = "any" | "tcp" | "udp" | "tcp-udp" | "icmp";

/**
 * `internal` matches the network's own blocks, `external` all other addresses. A list of addresses, blocks and ranges
 * (`10.0.0.5-10.0.0.9`) matches if one entry matches. The keywords match both families, a list only the families of its entries.
 */
export type AddressMatch = "any" | "internal" | "external" | readonly string[];

/** A range of ports; both ends are included. */
export interface PortRange {
  readonly first: number;
  readonly last: number;
}

/** TCP and UDP ports. Source and destination ports are `"any"` in rules for the protocols `any` and `icmp`. */
export type Ports = "any" | readonly PortRange[];

/** A firewall rule. It decides on the first packet of a connection; the first rule that matches wins. */
export interface Rule {
  readonly allow: boolean;
  readonly protocol: Protocol;
  readonly source: AddressMatch;
  readonly sourcePort: Ports;
  readonly destination: AddressMatch;
  readonly destinationPort: Ports;
}

/** The firewall of a network. With `enabled: false` all packets pass, and the rules are ignored. */
export interface Firewall {
  readonly enabled: boolean;
  /** Default policy: whether a connection that matches no rule is allowed. */
  readonly allow: boolean;
  readonly rules: readonly Rule[];
}

/** The fields that tunnels of all types share. */
interface Tunnel {
  readonly id: number;
  readonly enabled: boolean;
  /** Size of the largest packet inside the tunnel, in bytes. */
  readonly mtu: number;
  readonly localSubnets: readonly string[];
  readonly peerSubnets: readonly string[];
}

/** Encryption algorithm of IKE and ESP. */
export type Encryption = "aes128" | "aes256" | "3des" | "aes128gcm";
/** Hash of IKE and ESP; with `aes128gcm` it only derives keys. */
export type Digest = "sha1" | "sha256" | "sha384" | "sha512";

/** An IPsec tunnel. Its local end is `NetworkSpec.edgeAddress`. */
export interface IpsecTunnel extends Tunnel {
  readonly type: "ipsec";
  readonly ikeVersion: 1 | 2;
  readonly encryption: Encryption;
  readonly digest: Digest;
  /** IANA number of the Diffie-Hellman group: 2, 5, 14, 15, 16, 19, 20 or 31. */
  readonly dhGroup: number;
  readonly perfectForwardSecrecy: boolean;
  readonly sharedKey: string;
  readonly localIdentity: string;
  /** IPv4 address or host name; null: the peer initiates the connection. */
  readonly peer: string | null;
  readonly peerIdentity: string;
}

/** A WireGuard tunnel. Keys are base64 of 32 bytes. The local key and UDP port are in `NetworkSpec.wireguard`. */
export interface WireguardTunnel extends Tunnel {
  readonly type: "wireguard";
  /** "": the peer has no key yet; such a tunnel is not enabled. */
  readonly peerPublicKey: string;
  readonly presharedKey: string | null;
  /** `host:port`; null: the peer initiates the connection. */
  readonly endpoint: string | null;
  /** Interval of keepalive packets in seconds; 0: none. */
  readonly keepAlive: number;
}

/** The desired state of one tunnel. */
export type TunnelSpec = IpsecTunnel | WireguardTunnel;

/** The connection of one server to the network. */
export interface Port {
  /** Unique in the installation. */
  readonly id: number;
  /**
   * Name of the tap or veth device in the host's namespace, created by the VM driver. `apply` moves it into the network if it
   * exists, and again when a new device of that name appears because the server was restarted.
   */
  readonly device: string;
  readonly mac: string;
  /** Source addresses that the server may use: one of each family of the network. */
  readonly addresses: readonly string[];
  /** Limit for each direction, in Mbit/s; null: no limit. */
  readonly bandwidth: number | null;
  /** Host name that DHCP sends: letters, digits and hyphens. */
  readonly name: string;
}

/** When source addresses are translated; `outside-private`: only in packets to public destinations. */
export type Translated = "never" | "outside-private" | "always";

/** The complete desired state of one network. */
export interface NetworkSpec {
  readonly id: number;
  /** Grows with every change of the spec. */
  readonly generation: number;
  readonly kind: NetworkKind;
  readonly v4: Block;
  readonly v6: Block | null;
  /** IPv4 address of the edge outside of the block and the end point of tunnels; null if and only if the network is private. */
  readonly edgeAddress: string | null;
  /**
   * Whether packets that leave for destinations other than Brume's own networks get the host's address as source. Peers then reach the
   * edge at the host's address, too.
   */
  readonly nat: Translated;
  readonly mtu: number;
  /** Limit for traffic through the edge in each direction, in Mbit/s; null: no limit. */
  readonly bandwidth: number | null;
  readonly firewall: Firewall;
  readonly tunnels: readonly TunnelSpec[];
  /** Private key (base64) and UDP port of the edge; null if the network has no WireGuard tunnels. */
  readonly wireguard: { readonly privateKey: string; readonly listenPort: number } | null;
  readonly ports: readonly Port[];
  readonly dhcp: {
    readonly enabled: boolean;
    /** Default route that servers get; the edge need not own this address. Null: none. */
    readonly router: string | null;
    /** Name servers that servers get when the edge forwards no DNS queries. */
    readonly dns: readonly string[];
  };
  /** Name servers to which the edge forwards the DNS queries of its servers; empty: it forwards none. */
  readonly dnsForwarders: readonly string[];
  /** Addresses, blocks and ranges outside of the network. The edge drops traffic between them and servers, regardless of the firewall. */
  readonly closed: readonly string[];
}

/** `connecting`: never up since it was configured; `down`: was up before; `unknown`: the engine does not respond. */
export type TunnelState = "up" | "connecting" | "down" | "disabled" | "unknown";
/** Why a tunnel is not up; `selectors_refused`: the peer has other subnets configured. */
export type TunnelFault =
  | "authentication_failed"
  | "no_proposal_chosen"
  | "selectors_refused"
  | "peer_unreachable"
  | "engine_unavailable";

/** The actual state of one tunnel. */
export interface TunnelStatus {
  readonly id: number;
  readonly state: TunnelState;
  /** Why it is not up, from the engine's own report. `detail` contains both sides' values if known, and no secret. */
  readonly reason: { readonly fault: TunnelFault; readonly detail: string } | null;
  /** IPsec: when all child SAs were established. */
  readonly establishedAt: number | null;
  readonly bytesIn: number;
  readonly bytesOut: number;
  /** Time of the last packet from the peer (IPsec) or the last handshake (WireGuard). */
  readonly lastSeen: number | null;
  /** Negotiated blocks; empty while the tunnel is down. */
  readonly localSubnets: readonly string[];
  readonly peerSubnets: readonly string[];
  readonly peerAddress: string;
  readonly proposal: string;
}

/** Packets and bytes of a counter. */
export interface Count {
  readonly packets: number;
  readonly bytes: number;
}

/**
 * Connections that matched the rule since the current set of rules is in force, including connections that existed before. Each
 * refused packet counts.
 */
export interface RuleCount extends Count {
  /**
   * When `observe` first read the current count, so late by the interval of observations: with many networks a minute or two.
   * Null: no hit was observed.
   */
  readonly lastHit: number | null;
}

/** The actual state of one port. */
export interface PortStatus {
  readonly id: number;
  /** Whether the device is in the network. */
  readonly attached: boolean;
  /** Whether the other end of the device is open, for example by a VM. */
  readonly carrier: boolean;
  /** Traffic from the server since its device was created. */
  readonly sent: Count;
  readonly received: Count;
}

/** The actual state of one network. */
export interface NetworkStatus {
  readonly id: number;
  /** The generation in force; 0: the network was never completed. */
  readonly generation: number;
  /** Whether all parts of this generation still exist, as far as `observe` checks. */
  readonly complete: boolean;
  /** The missing parts: `bridge`, `uplink`, `firewall` … */
  readonly missing: readonly string[];
  /** Counters in the order of the rules; empty while the firewall is disabled. */
  readonly rules: readonly RuleCount[];
  /** Connections that matched no rule. */
  readonly rest: Count;
  /** Frames that were dropped because their source hardware or network address is not the server's. */
  readonly spoofed: Count;
  /** Connections that were refused because the network or one of its servers had reached its limit. */
  readonly overLimit: Count;
  readonly ports: readonly PortStatus[];
  readonly tunnels: readonly TunnelStatus[];
  /** UDP ports of the host that should lead to this edge, but at which a program of the host listens. */
  readonly occupiedPorts: readonly number[];
  /** Traffic through the edge, out of and into the network. */
  readonly sent: Count;
  readonly received: Count;
}

/** Result of one capability test at start. If `works` is false, `detail` states the consequence and the error. */
export interface Probe {
  readonly name: string;
  readonly works: boolean;
  readonly detail: string;
}

/** The actual state of all networks on the host. */
export interface RouterStatus {
  readonly ready: boolean;
  readonly detail: string;
  /** All networks of this installation on the host, including those that were not applied since the driver started. */
  readonly networks: readonly NetworkStatus[];
}

/** A change of some ports, with which a network gets from one generation to another. */
export interface PortChange {
  /** Id of the network. */
  readonly id: number;
  readonly from: number;
  /** At least `from`; equal if only devices are attached. */
  readonly generation: number;
  /** New and changed ports, and those whose device is new. */
  readonly ports: readonly Port[];
  /** Ids of ports that the network no longer has. */
  readonly removed: readonly number[];
}

/** The driver of the host's networks. Implemented by `linux/linux.ts` and, without a kernel, by `sim/sim.ts`. */
export interface Router {
  /**
   * Brings the network to the spec and resolves to the generation in force. A spec with an older generation than that changes nothing.
   * The same generation repairs changes by other programs and is cheap where nothing changed. Connections that the firewall of the
   * spec allows are not interrupted, others end. Rejects when the host refuses a change; the previous state then stays in force.
   * `onRepair` is called with each part that differed from this same generation and is repaired: `firewall`, `routes` …
   */
  apply(spec: NetworkSpec, onRepair?: (part: string) => void): Promise<number>;
  /**
   * Changes single ports of a network that has exactly generation `from`, at a cost that does not depend on its other ports. Resolves to
   * false if the network must be applied completely. Rejects for a port that can never be applied, without a change.
   */
  applyPorts(change: PortChange): Promise<boolean>;
  /** Removes the links, rules, processes and files of the network. Resolves also when the network does not exist. */
  remove(id: number): Promise<void>;
  /**
   * Returns the status of all networks at once, so that observing many costs little more than observing one. Among many networks some
   * statuses are a minute or two old, except for the counters of ports. With `network` it returns the current status of that network only.
   */
  observe(network?: number): Promise<RouterStatus>;
  /** Returns the status of one port, at a cost that does not depend on the others; null: there is none. */
  observePort(network: number, port: number): Promise<PortStatus | null>;
  /**
   * Connects from the edge to a TCP port of a server and returns the first line that the program there sends, without line end.
   * Null when there is no program, when it sends nothing within one second, for an address outside of the network, and in a network
   * without edge. No firewall rule
   * applies to this connection.
   */
  readBanner(network: number, address: string, port: number): Promise<string | null>;
  /** Returns the host's source address in translated packets to that IPv4 address, or (null) to the internet. Null: there is no route. */
  sourceTo(destination: string | null): Promise<string | null>;
  /** Ends the driver but not the networks: packets continue to flow, and the next driver finds the networks. */
  close(): Promise<void>;
}
