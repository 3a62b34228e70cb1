/**
 * VPN tunnels of a public network: input, output, status and peer configuration. The operations are in `network.ts`. IPsec and WireGuard
 * tunnels have one schema: a field that a type does not have is ignored in requests and returned as `""` or `null`.
 */
import type { Static } from "typebox";
import {
  boolean,
  date,
  id,
  integer,
  Labels,
  list,
  name,
  nullable,
  object,
  optional,
  optionalId,
  shownAs,
  text,
  word,
} from "./common.ts";
import { forms } from "./form.ts";
import { WorkError } from "./work.ts";

/**
 * Defaults and limits (docs/spec.md#defaults-and-limits). `tunnels` is the maximum of the quota, whose default is 50. `mtu` in bytes,
 * `keepAlive` in seconds, keys in characters.
 */
export const tunnelLimits = {
  tunnels: 1024,
  blocks: 16,
  mtu: 1400,
  minMtu: 576,
  maxMtu: 9000,
  minSharedKey: 16,
  maxSharedKey: 128,
  keepAlive: 25,
} as const;

/** Values of `Type` of a tunnel. */
export const tunnelTypes = ["IPsec", "WireGuard"] as const;
/** A value of `tunnelTypes`. */
export type TunnelType = (typeof tunnelTypes)[number];
/** Encryption algorithms of IPsec. */
export const encryptionTypes = ["Aes", "Aes256", "TripleDes", "AesGcm"] as const;
/** Encryption algorithm of IPsec. */
export type EncryptionType = (typeof encryptionTypes)[number];
/** Values of `Digest`: the hash function of an IPsec proposal. */
export const digests = ["Sha1", "Sha256", "Sha384", "Sha512"] as const;
/** A value of `digests`. */
export type Digest = (typeof digests)[number];
/** Diffie-Hellman groups by IANA number (IKEv2 transform type 4). */
export const dhGroups = [2, 5, 14, 15, 16, 19, 20, 31] as const;

const mtu = integer(tunnelLimits.minMtu, tunnelLimits.maxMtu, {
  description: "Largest packet inside the tunnel, in bytes. Default 1400.",
});
const ikeVersion = integer(1, 2, { description: "IKE version. Default 2; 1 uses main mode." });
const dhGroup = integer(2, 31, { enum: [...dhGroups], description: "Diffie-Hellman group (IANA number). Default 14." });
const keepAlive = integer(0, 65_535, {
  description: "WireGuard: keep-alive interval in seconds; 0 is off. Default 25.",
});
const secret = { "x-secret": true, "x-verbatim": true } as const;

/** A tunnel, without its secrets. */
export const Tunnel = object("Tunnel", "A VPN tunnel. A field that its type does not have is empty or `null`.", {
  Id: id({ description: "Id of the tunnel." }),
  State: word(["New", "Active"], {
    description: "`New`: the edge has not loaded the tunnel. `Active`: the edge has loaded it.",
  }),
  Name: text({ description: "Name of the tunnel, unique in the network." }),
  Enabled: boolean({ description: "`false`: the tunnel is configured and not used." }),
  Mtu: mtu,
  EncryptionType: word([...encryptionTypes, ""], { description: "IPsec: encryption. WireGuard: empty." }),
  SharedKey: text({ description: "Empty for tokens that may not change the tunnel." }),
  PeerNetwork: text({ description: "CIDR blocks behind the peer, separated by commas." }),
  PeerEndpoint: text({
    description: "Address or host name of the peer. IPsec `any`, WireGuard empty: the peer initiates.",
  }),
  PeerIdentificator: text({ description: "IPsec: IKE identity of the peer. WireGuard: empty." }),
  Type: word(tunnelTypes, { description: "Type of the tunnel." }),
  LocalNetwork: text({ description: "CIDR blocks that the peer may reach, separated by commas." }),
  LocalIdentificator: text({ description: "IPsec: IKE identity of the edge. WireGuard: empty." }),
  IkeVersion: nullable(ikeVersion),
  DhGroup: nullable(dhGroup),
  Digest: word([...digests, ""], { description: "IPsec: digest. WireGuard: empty." }),
  PerfectForwardSecrecy: nullable(boolean({ description: "IPsec: perfect forward secrecy. WireGuard: `null`." })),
  PeerPublicKey: text({ description: "WireGuard: public key of the peer. IPsec: empty." }),
  PublicKey: text({ description: "WireGuard: public key of the edge, one for each network." }),
  ListenPort: nullable(
    integer(1, 65_535, {
      description: "WireGuard: UDP port of the edge, one for each network. IPsec: `null`.",
    }),
  ),
  KeepAlive: nullable(keepAlive),
  PeerConfig: text({
    description:
      "Configuration for the peer, with placeholders for secrets. Behind NAT it contains the address that the peer sees.",
  }),
  Labels,
});
/** TypeScript type of this schema. */
export type Tunnel = Static<typeof Tunnel>;

/** One tunnel of a request. With `Id` the tunnel is updated, without it is created. The required fields depend on `Type`. */
export const TunnelInput = object(
  "TunnelRequest",
  "One tunnel. Fields of the other type are ignored.",
  {
    Id: optionalId({ description: "Id of a tunnel of this network. Absent: create a tunnel." }),
    // An empty text counts as absent, as for every required field.
    Name: optional(name({ minLength: 0, description: "Unique in the network. Required for a new tunnel." })),
    Enabled: optional(boolean({ description: "`false`: the tunnel is configured and not used. Default `true`." })),
    Mtu: optional(mtu),
    EncryptionType: optional(word(encryptionTypes, { description: "IPsec: encryption. Default `Aes256`." })),
    SharedKey: optional(
      text({
        ...secret,
        maxLength: tunnelLimits.maxSharedKey,
        pattern: "^[!-~]*$",
        "x-pattern-description": "visible ASCII characters only",
        description:
          "IPsec: 16-128 visible ASCII characters; generated if absent. WireGuard: optional preshared key, base64 of 32 bytes. Absent or empty in an update: unchanged.",
      }),
    ),
    PeerNetwork: optional(
      text({
        maxLength: 1024,
        description: "1-16 CIDR blocks behind the peer, separated by commas. Required for a new tunnel.",
      }),
    ),
    PeerEndpoint: optional(
      text({
        maxLength: 261,
        description:
          "IPsec, required: IPv4 address, host name, or `any` (only the peer initiates). WireGuard: `host:port`, or empty (only the peer initiates).",
      }),
    ),
    PeerIdentificator: optional(
      text({
        maxLength: 320,
        description: "IPsec: IKE identity of the peer (IP address, host name or `user@host`). Default: `PeerEndpoint`.",
      }),
    ),
    Type: optional(word(tunnelTypes, { description: "Default `IPsec`. It cannot be changed later." })),
    LocalNetwork: optional(
      text({
        maxLength: 1024,
        description: "1-16 CIDR blocks inside `CIDR` that the peer may reach. Default: `CIDR`.",
      }),
    ),
    LocalIdentificator: optional(
      text({ maxLength: 320, description: "IPsec: IKE identity of the edge. Default: `EdgeExternalIp`." }),
    ),
    IkeVersion: optional(ikeVersion),
    DhGroup: optional(dhGroup),
    Digest: optional(word(digests, { description: "IPsec: digest. Default `Sha256`, with `TripleDes` `Sha1`." })),
    PerfectForwardSecrecy: optional(boolean({ description: "IPsec: perfect forward secrecy. Default `true`." })),
    PeerPublicKey: optional(
      text({
        maxLength: 64,
        description:
          "WireGuard: public key of the peer, base64 of 32 bytes, unique in the network. A new tunnel without one stays down until `POST …/vpn/{tunnelId}/peer` creates a key pair.",
      }),
    ),
    KeepAlive: optional(keepAlive),
    Labels: optional(Labels),
  },
  {
    ...shownAs(Tunnel),
    ...forms([
      {
        title: "UpdateTunnelRequest",
        description: "A tunnel of the network. Absent fields stay unchanged.",
        needs: ["Id"],
      },
      {
        title: "CreateIPsecTunnelRequest",
        description: "A new IPsec tunnel.",
        where: { Type: ["IPsec", null] },
        needs: ["Name", "PeerNetwork", "PeerEndpoint"],
        without: ["Id"],
      },
      {
        title: "CreateWireGuardTunnelRequest",
        description: "A new WireGuard tunnel.",
        where: { Type: ["WireGuard"] },
        needs: ["Name", "PeerNetwork"],
        without: ["Id"],
      },
    ]),
  },
);
/** TypeScript type of this schema. */
export type TunnelInput = Static<typeof TunnelInput>;

/** The complete list of tunnels. A tunnel that is absent is deleted. */
export const Vpn = object("ConfigureVpnRequest", "The complete list of tunnels. A tunnel that is absent is deleted.", {
  Tunnels: list(TunnelInput, { maxItems: tunnelLimits.tunnels, description: "All tunnels of the network." }),
});
/** TypeScript type of this schema. */
export type Vpn = Static<typeof Vpn>;

const bytes = <const D extends string>(description: D) => integer(0, Number.MAX_SAFE_INTEGER, { description });

/** Actual state of a tunnel. */
export const TunnelStatus = object("TunnelStatus", "Actual state of a tunnel.", {
  TunnelId: id({ description: "Id of the tunnel." }),
  Operational: boolean({ description: "`true` exactly when `State` is `Up`." }),
  State: word(["Up", "Connecting", "Down", "Disabled", "Unknown"], {
    description:
      "`Up`: packets pass. `Connecting`: not up since it was loaded. `Down`: was up before. `Disabled`: `Enabled` is `false`. `Unknown`: the VPN engine does not respond.",
  }),
  Error: nullable(WorkError),
  EstablishedAt: nullable(
    date({ description: "IPsec: when the child SA was established. `null`: down, or WireGuard." }),
  ),
  BytesIn: bytes("Bytes received since the tunnel was established."),
  BytesOut: bytes("Bytes sent since the tunnel was established."),
  LastSeen: nullable(
    date({ description: "Time of the last packet received, or of the last WireGuard handshake. `null`: none." }),
  ),
  LocalSubnets: list(text({ description: "A CIDR block." }), {
    description: "Negotiated local blocks; empty while down.",
  }),
  PeerSubnets: list(text({ description: "A CIDR block." }), {
    description: "Negotiated blocks of the peer; empty while down.",
  }),
  PeerAddress: text({ description: "Address of the peer; empty while it is not known." }),
  Proposal: text({ description: "Negotiated algorithms; empty while down." }),
});
/** TypeScript type of this schema. */
export type TunnelStatus = Static<typeof TunnelStatus>;

/** Formats of the peer configuration by tunnel type; the first one is the default. */
export const peerDialects = {
  IPsec: ["strongswan", "libreswan", "mikrotik", "cisco", "fortigate"],
  WireGuard: ["wg-quick", "wg", "mikrotik"],
} as const satisfies Record<TunnelType, readonly string[]>;
/** All formats of the peer configuration. */
export const peerDialectNames = [
  "strongswan",
  "libreswan",
  "mikrotik",
  "cisco",
  "fortigate",
  "wg-quick",
  "wg",
] as const;
/** Format of the peer configuration. */
export type PeerDialect = (typeof peerDialectNames)[number];

/** Configuration for the peer of a tunnel. */
export const TunnelPeer = object("TunnelPeer", "Configuration for the peer of a tunnel.", {
  Peer: word(peerDialectNames, { description: "Format of the configuration (vendor)." }),
  Config: text({ description: "`GET`: with the placeholders `<SharedKey>` and `<private key>`. `POST`: complete." }),
  Qr: text({ description: "`wg-quick`: the configuration as a QR code (SVG). Otherwise empty." }),
});
/** TypeScript type of this schema. */
export type TunnelPeer = Static<typeof TunnelPeer>;
