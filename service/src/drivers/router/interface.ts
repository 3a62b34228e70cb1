/**
 * What the service needs of the machine's network: data in, data out. One image is the whole wish for one network (its switch,
 * edge, addresses, bandwidth, firewall, tunnels and ports); a driver makes the world equal to it and knows nothing of projects,
 * servers or the API. Addresses and blocks are canonical text (`10.64.0.9`, `10.64.0.8/29`, `fd24::1`), ports of a server are
 * "cards" nowhere: a port is where a server is plugged in. Times are milliseconds since 1970, bandwidths Mbit/s, lengths bytes.
 */

/** `public`: an edge of its own; `shared`: an edge whose ports see each other only through it; `private`: a switch without edge. */
export type NetworkKind = "public" | "shared" | "private";

/** One family of a network: its block, the edge's address inside it, or null where nobody but the servers is (private). */
export interface Block {
  readonly cidr: string;
  readonly gateway: string | null;
}

export type Protocol = "any" | "tcp" | "udp" | "tcp-udp" | "icmp";

/**
 * `internal`: the network's own blocks; `external`: everything else; else a list of addresses, blocks and ranges
 * (`10.0.0.5-10.0.0.9`) of which one must fit. The words fit both families, a list only those that are in it.
 */
export type AddressMatch = "any" | "internal" | "external" | readonly string[];

/** Both ends included. */
export interface PortRange {
  readonly first: number;
  readonly last: number;
}

/** A list holds TCP and UDP ports; with `any` and `icmp` both are `any`. */
export type Ports = "any" | readonly PortRange[];

/** Decides on the first packet of a connection; the first rule that fits wins. */
export interface Rule {
  readonly allow: boolean;
  readonly protocol: Protocol;
  readonly source: AddressMatch;
  readonly sourcePort: Ports;
  readonly destination: AddressMatch;
  readonly destinationPort: Ports;
}

/** `enabled: false`: everything passes, whatever the rules say. */
export interface Firewall {
  readonly enabled: boolean;
  /** What happens to a connection that no rule fits. */
  readonly allow: boolean;
  readonly rules: readonly Rule[];
}

interface Tunnel {
  readonly id: number;
  readonly enabled: boolean;
  /** Largest packet inside the tunnel. */
  readonly mtu: number;
  readonly localSubnets: readonly string[];
  readonly peerSubnets: readonly string[];
}

export type Encryption = "aes128" | "aes256" | "3des" | "aes128gcm";
export type Digest = "sha1" | "sha256" | "sha384" | "sha512";

/** The local end is the network's edge address. */
export interface IpsecTunnel extends Tunnel {
  readonly type: "ipsec";
  readonly ikeVersion: 1 | 2;
  readonly encryption: Encryption;
  readonly digest: Digest;
  /** IANA's number: 2, 5, 14, 15, 16, 19, 20 or 31. */
  readonly dhGroup: number;
  readonly perfectForwardSecrecy: boolean;
  readonly sharedKey: string;
  readonly localIdentity: string;
  /** Address or host name; null: the peer calls. */
  readonly peer: string | null;
  readonly peerIdentity: string;
}

/** Keys are base64 of 32 bytes. The local key and UDP port are the network's (`Image.wireguard`). */
export interface WireguardTunnel extends Tunnel {
  readonly type: "wireguard";
  readonly peerPublicKey: string;
  readonly presharedKey: string | null;
  /** `host:port`; null: the peer calls. */
  readonly endpoint: string | null;
  /** Seconds; 0: off. */
  readonly keepAlive: number;
}

export type TunnelSpec = IpsecTunnel | WireguardTunnel;

/** Where a server is plugged in. */
export interface Port {
  /** Unique in the installation. */
  readonly id: number;
  /**
   * The tap or veth end in the machine's own namespace, made by whoever runs the server. It is taken into the network when it
   * is there, and again when a new one of that name appears (the server was started anew).
   */
  readonly device: string;
  readonly mac: string;
  /** All that the server may send from: one of each family that the network has. */
  readonly addresses: readonly string[];
  /** Each direction by itself; null: no limit. */
  readonly bandwidth: number | null;
  /** Host name told by DHCP; letters, digits and hyphens. */
  readonly name: string;
}

/** `outside-private`: only what goes to addresses that the world routes. */
export type Translated = "never" | "outside-private" | "always";

export interface NetworkSpec {
  readonly id: number;
  /** Grows with every change of the wish. */
  readonly generation: number;
  readonly kind: NetworkKind;
  readonly v4: Block;
  readonly v6: Block | null;
  /** The edge's own address outside of the block, end point of tunnels; null exactly for a private network. */
  readonly edgeAddress: string | null;
  /** What leaves the network for anywhere but another of ours goes out under the machine's address, where peers find the edge too. */
  readonly nat: Translated;
  readonly mtu: number;
  /** Of what crosses the edge, each direction by itself; null: no limit. */
  readonly bandwidth: number | null;
  readonly firewall: Firewall;
  readonly tunnels: readonly TunnelSpec[];
  /** The edge's own WireGuard end; null without such tunnels. */
  readonly wireguard: { readonly privateKey: string; readonly listenPort: number } | null;
  readonly ports: readonly Port[];
  readonly dhcp: {
    readonly enabled: boolean;
    /** Default route told to servers, also where nobody here answers on it; null: none. */
    readonly router: string | null;
    /** Told to servers when the edge does not forward questions itself. */
    readonly dns: readonly string[];
  };
  /** The edge answers DNS questions of its servers by asking these; empty: it does not. */
  readonly dnsForwarders: readonly string[];
  /** Addresses, blocks and ranges beyond the edge that servers do not reach and are not reached from, whatever the firewall says. */
  readonly closed: readonly string[];
}

export type TunnelState = "up" | "connecting" | "down" | "disabled" | "unknown";
export type TunnelFault =
  | "authentication_failed"
  | "no_proposal_chosen"
  | "selectors_refused"
  | "peer_unreachable"
  | "engine_unavailable";

export interface TunnelStatus {
  readonly id: number;
  readonly state: TunnelState;
  /** Why it is not up, as the engine itself said it; `detail` names both sides' values as far as known, and no secret. */
  readonly reason: { readonly fault: TunnelFault; readonly detail: string } | null;
  /** IPsec: the child set came up. */
  readonly establishedAt: number | null;
  readonly bytesIn: number;
  readonly bytesOut: number;
  /** Last packet in, or last handshake. */
  readonly lastSeen: number | null;
  /** As negotiated; empty while down. */
  readonly localSubnets: readonly string[];
  readonly peerSubnets: readonly string[];
  readonly peerAddress: string;
  readonly proposal: string;
}

export interface Count {
  readonly packets: number;
  readonly bytes: number;
}

/**
 * Connections that met the rule since this set of rules came into force, those that lived through the change included; each packet
 * that is refused counts.
 */
export interface RuleCount extends Count {
  /** When `observe` first saw the present count, hence late by the time between two, and among many networks a minute or two; null: no hit was seen. */
  readonly lastHit: number | null;
}

export interface PortStatus {
  readonly id: number;
  /** Its device is in the network. */
  readonly attached: boolean;
  /** Somebody holds the other end. */
  readonly carrier: boolean;
  /** By the server, since its device was made. */
  readonly sent: Count;
  readonly received: Count;
}

export interface NetworkStatus {
  readonly id: number;
  /** What packets obey now; 0: the network was never finished. */
  readonly generation: number;
  /** Everything that this generation made is still there, as far as a look from outside tells. */
  readonly whole: boolean;
  /** What is not: `bridge`, `uplink`, `firewall` … */
  readonly missing: readonly string[];
  /** In the order of the rules; empty while the firewall is not enabled. */
  readonly rules: readonly RuleCount[];
  /** Connections that no rule fitted. */
  readonly rest: Count;
  /** Frames with a foreign hardware or network address, dropped. */
  readonly spoofed: Count;
  /** Connections refused since the network or one of its servers had as many as it may. */
  readonly crowded: Count;
  readonly ports: readonly PortStatus[];
  readonly tunnels: readonly TunnelStatus[];
  /** UDP ports of the machine that peers call this edge at, and that a program of the machine has. */
  readonly heldPorts: readonly number[];
  /** Over the edge, out of and into the network. */
  readonly sent: Count;
  readonly received: Count;
}

/** One answer of the trials at start; `works: false` says in words what that costs. */
export interface Probe {
  readonly name: string;
  readonly works: boolean;
  readonly detail: string;
}

export interface RouterStatus {
  readonly ready: boolean;
  readonly detail: string;
  /** Also those that nobody applied to this driver since it started: it finds them on the machine. */
  readonly networks: readonly NetworkStatus[];
}

export interface Router {
  /**
   * Makes the network equal to the image and resolves to the generation in force. An older generation than that changes nothing;
   * the same one repairs what was changed from outside and is free where nothing was. Connections that the image's firewall
   * admits go on untouched, others are cut. Rejects when the machine refuses something; what was in force before then still is.
   * `tell` hears of each part that was not as this same generation had left it, and is repaired: `firewall`, `routes` …
   */
  apply(image: NetworkSpec, tell?: (part: string) => void): Promise<number>;
  /** Nothing of the network is left: links, rules, processes, files. An unknown one is fine. */
  remove(id: number): Promise<void>;
  /**
   * Everything at once, so that watching many networks costs little more than watching one: of many it may tell some as they were
   * a minute or two ago, but for what their ports count. Or only that one, as it is now.
   */
  observe(network?: number): Promise<RouterStatus>;
  /**
   * What whoever listens at this TCP port of a server says first: one line, or null when nobody does or says nothing within a
   * second. Asked from the edge, whose own traffic no rule filters; in a network without one always null.
   */
  greeting(network: number, address: string, port: number): Promise<string | null>;
  /** The machine's own address in what is translated on its way to that IPv4 address, or (null) to the internet; null: there is no way. */
  sourceTo(destination: string | null): Promise<string | null>;
  /** Ends the driver, not the networks: packets go on, and the next driver finds them. */
  close(): Promise<void>;
}
