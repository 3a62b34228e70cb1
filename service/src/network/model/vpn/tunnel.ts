/**
 * The three forms of a tunnel: stored, for the router driver, and as a response body. The stored settings have the values of the
 * API with every default filled in, so that a changed default does not change existing tunnels. The key is stored encrypted.
 */
import type { Labels } from "@brume/api/common.ts";
import type { Digest, EncryptionType, Tunnel, TunnelType } from "@brume/api/vpn.ts";
import type { Sealer } from "../../../base/secret.ts";
import type { Encryption, TunnelSpec } from "../../../drivers/router/interface.ts";
import type { TunnelRow } from "../../table.ts";
import { splitBlocks } from "./fields.ts";

interface Settings {
  readonly Name: string;
  readonly Enabled: boolean;
  /** Bytes. */
  readonly Mtu: number;
  /** Blocks such as `10.0.0.0/24`, joined by commas; `LocalNetwork` too. */
  readonly PeerNetwork: string;
  readonly PeerEndpoint: string;
  readonly LocalNetwork: string;
}

/** Stored settings of an IPsec tunnel. */
export interface IpsecSettings extends Settings {
  readonly Type: "IPsec";
  readonly EncryptionType: EncryptionType;
  readonly PeerIdentificator: string;
  readonly LocalIdentificator: string;
  readonly IkeVersion: number;
  readonly DhGroup: number;
  readonly Digest: Digest;
  readonly PerfectForwardSecrecy: boolean;
}

/** Stored settings of a WireGuard tunnel. */
export interface WireguardSettings extends Settings {
  readonly Type: "WireGuard";
  /** "": the peer has no key yet. */
  readonly PeerPublicKey: string;
  /** Seconds; 0: off. */
  readonly KeepAlive: number;
}

/** All settings of a tunnel, except its shared key and its labels. */
export type TunnelSettings = IpsecSettings | WireguardSettings;

/** A tunnel as it is stored, without its key. */
export interface StoredTunnel {
  readonly id: number;
  /** Index in the list of the network, from 0. */
  readonly place: number;
  readonly settings: TunnelSettings;
  readonly labels: Labels;
}

/** Parses the row of a tunnel. */
export function readTunnel(row: {
  readonly id: number;
  readonly place: number;
  readonly spec: string;
  readonly labels: string;
}): StoredTunnel {
  const { id, place, spec, labels } = row;
  return { id, place, settings: JSON.parse(spec) as TunnelSettings, labels: JSON.parse(labels) as Labels };
}

/** Returns the text of the column `spec`. */
export const writeSettings = (settings: TunnelSettings): string => JSON.stringify(settings);

/** Largest packet inside a tunnel of this type over a path of 1500 bytes, in bytes. */
const maxMtu = { IPsec: 1400, WireGuard: 1420 } as const;

const encryptions: Readonly<Record<EncryptionType, Encryption>> = {
  Aes: "aes128",
  Aes256: "aes256",
  TripleDes: "3des",
  AesGcm: "aes128gcm",
};

const digests = { Sha1: "sha1", Sha256: "sha256", Sha384: "sha384", Sha512: "sha512" } as const;

/** Returns whether the tunnel is a WireGuard tunnel whose peer has no key yet. */
export const isKeyless = (settings: TunnelSettings): boolean =>
  settings.Type === "WireGuard" && settings.PeerPublicKey === "";

/**
 * Returns the spec for the router driver; `sharedKey` is null for a tunnel without one. For a peer configuration with placeholders,
 * any text serves as the key, but not null: the configuration shows that there is a key.
 */
export function toSpec({ id, settings }: Pick<StoredTunnel, "id" | "settings">, sharedKey: string | null): TunnelSpec {
  const common = {
    id,
    // WireGuard cannot be configured until the peer has a key.
    enabled: settings.Enabled && !isKeyless(settings),
    mtu: Math.min(settings.Mtu, maxMtu[settings.Type]),
    localSubnets: splitBlocks(settings.LocalNetwork),
    peerSubnets: splitBlocks(settings.PeerNetwork),
  };
  if (settings.Type === "WireGuard")
    return {
      ...common,
      type: "wireguard",
      peerPublicKey: settings.PeerPublicKey,
      presharedKey: sharedKey,
      endpoint: settings.PeerEndpoint === "" ? null : settings.PeerEndpoint,
      keepAlive: settings.KeepAlive,
    };
  return {
    ...common,
    type: "ipsec",
    ikeVersion: settings.IkeVersion === 1 ? 1 : 2,
    encryption: encryptions[settings.EncryptionType],
    digest: digests[settings.Digest],
    dhGroup: settings.DhGroup,
    perfectForwardSecrecy: settings.PerfectForwardSecrecy,
    sharedKey: sharedKey ?? "",
    localIdentity: settings.LocalIdentificator,
    peer: settings.PeerEndpoint === "any" ? null : settings.PeerEndpoint,
    peerIdentity: settings.PeerIdentificator,
  };
}

/** What a response shows of a tunnel besides its stored settings. */
export interface TunnelFacts {
  readonly state: Tunnel["State"];
  /** `""` if the caller may not see it. */
  readonly sharedKey: string | null;
  /** The edge's WireGuard key and UDP port; null: it has none yet. */
  readonly wireguard: { readonly publicKey: string; readonly listenPort: number } | null;
  readonly peerConfig: string;
}

/** Values that a response shows for the fields of the other type. */
const absentIpsec = {
  EncryptionType: "",
  PeerIdentificator: "",
  LocalIdentificator: "",
  IkeVersion: null,
  DhGroup: null,
  Digest: "",
  PerfectForwardSecrecy: null,
} as const;
const absentWireguard = { PeerPublicKey: "", KeepAlive: null } as const;

/** Returns whether a tunnel of this type has the field. A request may contain other fields; they are ignored. */
export const hasField = (type: TunnelType, field: string): boolean =>
  !Object.hasOwn(type === "IPsec" ? absentWireguard : absentIpsec, field);

/** Returns the response body: all keys in the order of the API description. */
export function showTunnel({ id, settings, labels }: StoredTunnel, facts: TunnelFacts): Tunnel {
  const shown = { ...absentIpsec, ...absentWireguard, ...settings };
  const edge = settings.Type === "WireGuard" ? facts.wireguard : null;
  return {
    Id: id,
    State: facts.state,
    Name: shown.Name,
    Enabled: shown.Enabled,
    Mtu: shown.Mtu,
    EncryptionType: shown.EncryptionType,
    SharedKey: facts.sharedKey ?? "",
    PeerNetwork: shown.PeerNetwork,
    PeerEndpoint: shown.PeerEndpoint,
    PeerIdentificator: shown.PeerIdentificator,
    Type: shown.Type,
    LocalNetwork: shown.LocalNetwork,
    LocalIdentificator: shown.LocalIdentificator,
    IkeVersion: shown.IkeVersion,
    DhGroup: shown.DhGroup,
    Digest: shown.Digest,
    PerfectForwardSecrecy: shown.PerfectForwardSecrecy,
    PeerPublicKey: shown.PeerPublicKey,
    PublicKey: edge?.publicKey ?? "",
    ListenPort: edge?.listenPort ?? null,
    KeepAlive: shown.KeepAlive,
    PeerConfig: facts.peerConfig,
    Labels: labels,
  };
}

/** Returns the shared key of a tunnel, decrypted; null if it has none. Throws if the key cannot be decrypted. */
export const openKey = (row: Pick<TunnelRow, "shared_key">, sealer: Sealer): string | null =>
  row.shared_key === null ? null : sealer.open(row.shared_key);
