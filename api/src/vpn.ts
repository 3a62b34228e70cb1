/**
 * VPN tunnels of a public network: what may be asked of one, how it is shown, how it is doing, and what the far end is to be told.
 * The operations stand with the network, which a tunnel is a part of. Both types of tunnel have one shape: what a type does not
 * have is ignored in requests and answered as `""` or `null`.
 */
import { type Static, Type } from "typebox";
import {
  boolean,
  date,
  id,
  integer,
  Labels,
  list,
  name,
  nullable,
  optional,
  optionalId,
  shownAs,
  text,
  word,
} from "./common.ts";
import { WorkError } from "./work.ts";

/**
 * Defaults and limits (docs/spec.md#defaults-and-limits). How many tunnels there may be is for the quota to say, 50 usually; no list is
 * longer than `tunnels`.
 */
export const tunnelLimits = {
  tunnels: 10_000,
  blocks: 16,
  mtu: 1400,
  minMtu: 576,
  maxMtu: 9000,
  minSharedKey: 16,
  maxSharedKey: 128,
  keepAlive: 25,
} as const;

export const tunnelTypes = ["IPsec", "WireGuard"] as const;
export type TunnelType = (typeof tunnelTypes)[number];
export const encryptionTypes = ["Aes", "Aes256", "TripleDes", "AesGcm"] as const;
export type EncryptionType = (typeof encryptionTypes)[number];
export const digests = ["Sha1", "Sha256", "Sha384", "Sha512"] as const;
export type Digest = (typeof digests)[number];
/** IANA's numbers of Diffie-Hellman groups (IKEv2 transform type 4). */
export const dhGroups = [2, 5, 14, 15, 16, 19, 20, 31] as const;

const mtu = integer(tunnelLimits.minMtu, tunnelLimits.maxMtu, { description: "Largest packet inside. Default 1400." });
const ikeVersion = integer(1, 2, { description: "Default 2; 1 is main mode." });
const dhGroup = integer(2, 31, { enum: [...dhGroups], description: "Default 14." });
const keepAlive = integer(0, 65_535, { description: "WireGuard: seconds, 0 is off. Default 25." });
const secret = { "x-secret": true, "x-verbatim": true } as const;

export const Tunnel = Type.Object(
  {
    Id: id(),
    State: word(["New", "Active"], { description: "`Active`: the edge has loaded it." }),
    Name: text(),
    Enabled: boolean(),
    Mtu: mtu,
    EncryptionType: word([...encryptionTypes, ""]),
    SharedKey: text({ description: "Empty for tokens that may not change it." }),
    PeerNetwork: text(),
    PeerEndpoint: text(),
    PeerIdentificator: text(),
    Type: word(tunnelTypes),
    LocalNetwork: text(),
    LocalIdentificator: text(),
    IkeVersion: nullable(ikeVersion),
    DhGroup: nullable(dhGroup),
    Digest: word([...digests, ""]),
    PerfectForwardSecrecy: nullable(boolean()),
    PeerPublicKey: text(),
    PublicKey: text({ description: "WireGuard: the edge's key, one per network." }),
    ListenPort: nullable(integer(1, 65_535, { description: "WireGuard: the edge's UDP port, one per network." })),
    KeepAlive: nullable(keepAlive),
    PeerConfig: text({
      description:
        "Ready configuration for the far end, with placeholders for secrets. Of a network that is translated it names the address that the peer sees.",
    }),
    Labels,
  },
  { title: "Tunnel" },
);
export type Tunnel = Static<typeof Tunnel>;

/** An item with `Id` is kept and changed, one without is made. What a new one needs depends on its type, and is for the rules to say. */
export const TunnelWish = Type.Object(
  {
    Id: optionalId({ description: "Of this network. Absent: a new tunnel." }),
    // Empty is absent, as for every field that is required.
    Name: optional(name({ minLength: 0, description: "Unique in the network. Required for a new tunnel." })),
    Enabled: optional(boolean({ description: "Default true." })),
    Mtu: optional(mtu),
    EncryptionType: optional(word(encryptionTypes, { description: "IPsec. Default Aes256." })),
    SharedKey: optional(
      text({
        ...secret,
        maxLength: tunnelLimits.maxSharedKey,
        pattern: "^[!-~]*$",
        "x-says": "visible ASCII characters only",
        description:
          "IPsec: 16-128 visible ASCII characters, made if absent. WireGuard: optional preshared key, base64 of 32 bytes. Absent or empty for a known tunnel: stays.",
      }),
    ),
    PeerNetwork: optional(
      text({ maxLength: 1024, description: "1-16 blocks behind the peer, with commas. Required for a new tunnel." }),
    ),
    PeerEndpoint: optional(
      text({
        maxLength: 261,
        description:
          "IPsec, required: IPv4 address or host name, or `any` (the peer calls). WireGuard: `host:port`, or empty (the peer calls).",
      }),
    ),
    PeerIdentificator: optional(
      text({
        maxLength: 320,
        description: "IPsec: IKE identity of the peer: IP, host name or `user@host`. Default `PeerEndpoint`.",
      }),
    ),
    Type: optional(word(tunnelTypes, { description: "Default IPsec; fixed after creation." })),
    LocalNetwork: optional(
      text({ maxLength: 1024, description: "1-16 blocks inside `CIDR` that the peer may reach. Default `CIDR`." }),
    ),
    LocalIdentificator: optional(
      text({ maxLength: 320, description: "IPsec: our IKE identity. Default `EdgeExternalIp`." }),
    ),
    IkeVersion: optional(ikeVersion),
    DhGroup: optional(dhGroup),
    Digest: optional(word(digests, { description: "IPsec. Default Sha256, with TripleDes Sha1." })),
    PerfectForwardSecrecy: optional(boolean({ description: "IPsec. Default true." })),
    PeerPublicKey: optional(
      text({
        maxLength: 64,
        description:
          "WireGuard: base64 of 32 bytes, unique in the network. A new tunnel without one waits until its peer has a key: `POST …/vpn/{tunnelId}/peer` makes one.",
      }),
    ),
    KeepAlive: optional(keepAlive),
    Labels: optional(Labels),
  },
  shownAs(Tunnel),
);
export type TunnelWish = Static<typeof TunnelWish>;

/** The whole list: tunnels that are not in it are removed. */
export const Vpn = Type.Object({ Tunnels: list(TunnelWish, { maxItems: tunnelLimits.tunnels }) });
export type Vpn = Static<typeof Vpn>;

const bytes = integer(0, Number.MAX_SAFE_INTEGER);

export const TunnelStatus = Type.Object(
  {
    TunnelId: id(),
    Operational: boolean({ description: "True exactly when `State` is `Up`." }),
    State: word(["Up", "Connecting", "Down", "Disabled", "Unknown"]),
    Error: nullable(WorkError),
    EstablishedAt: nullable(date({ description: "IPsec: when the child came up." })),
    BytesIn: bytes,
    BytesOut: bytes,
    LastSeen: nullable(date({ description: "Last packet in, or last WireGuard handshake." })),
    LocalSubnets: list(text(), { description: "As negotiated; empty while down." }),
    PeerSubnets: list(text()),
    PeerAddress: text(),
    Proposal: text({ description: "Empty while down." }),
  },
  { title: "TunnelStatus" },
);
export type TunnelStatus = Static<typeof TunnelStatus>;

/** In whose words the far end's configuration can be had; the first of each type is the one nobody asks for. */
export const peerDialects = {
  IPsec: ["strongswan", "libreswan", "mikrotik", "cisco", "fortigate"],
  WireGuard: ["wg-quick", "wg", "mikrotik"],
} as const satisfies Record<TunnelType, readonly string[]>;
export const peerDialectWords = [
  "strongswan",
  "libreswan",
  "mikrotik",
  "cisco",
  "fortigate",
  "wg-quick",
  "wg",
] as const;
export type PeerDialect = (typeof peerDialectWords)[number];

export const TunnelPeer = Type.Object(
  {
    Peer: word(peerDialectWords),
    Config: text({ description: "GET: with `<SharedKey>` and `<private key>` in place of secrets. POST: complete." }),
    Qr: text({ description: "`wg-quick`: the same as a QR code, SVG. Else empty." }),
  },
  { title: "TunnelPeer" },
);
export type TunnelPeer = Static<typeof TunnelPeer>;
