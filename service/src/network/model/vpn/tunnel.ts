/**
 * A tunnel as it is stored, as the router driver wants it, and as answers show it. What is stored are the words of the contract,
 * every default filled in, so that nothing changes under a tunnel when a default does; its key is kept apart, sealed.
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
  readonly Mtu: number;
  /** Blocks as `10.0.0.0/24`, joined by commas, as is `LocalNetwork`. */
  readonly PeerNetwork: string;
  readonly PeerEndpoint: string;
  readonly LocalNetwork: string;
}

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

export interface WireguardSettings extends Settings {
  readonly Type: "WireGuard";
  readonly PeerPublicKey: string;
  /** Seconds; 0: off. */
  readonly KeepAlive: number;
}

/** All that can be set of a tunnel but its key and its labels. */
export type TunnelSettings = IpsecSettings | WireguardSettings;

export interface StoredTunnel {
  readonly id: number;
  /** In the list, from 0. */
  readonly place: number;
  readonly settings: TunnelSettings;
  readonly labels: Labels;
}

/** Of a row, whose texts are JSON that was written here. */
export function readTunnel(row: {
  readonly id: number;
  readonly place: number;
  readonly spec: string;
  readonly labels: string;
}): StoredTunnel {
  const { id, place, spec, labels } = row;
  return { id, place, settings: JSON.parse(spec) as TunnelSettings, labels: JSON.parse(labels) as Labels };
}

/** The text of `spec`. */
export const writeSettings = (settings: TunnelSettings): string => JSON.stringify(settings);

/** Largest packet that fits into the carrier's, in bytes. */
const carriers = { IPsec: 1400, WireGuard: 1420 } as const;

const encryptions: Readonly<Record<EncryptionType, Encryption>> = {
  Aes: "aes128",
  Aes256: "aes256",
  TripleDes: "3des",
  AesGcm: "aes128gcm",
};

const digests = { Sha1: "sha1", Sha256: "sha256", Sha384: "sha384", Sha512: "sha512" } as const;

/** The peer of a WireGuard tunnel has no key yet. */
export const isKeyless = (settings: TunnelSettings): boolean =>
  settings.Type === "WireGuard" && settings.PeerPublicKey === "";

/**
 * What the driver is told; `sharedKey` is null for a tunnel that has none. To describe a tunnel to its peer any text will do for the
 * key, since only a placeholder is told, but not null: that there is a key is told.
 */
export function toSpec({ id, settings }: Pick<StoredTunnel, "id" | "settings">, sharedKey: string | null): TunnelSpec {
  const common = {
    id,
    // There is nobody to speak with until the peer has a key.
    enabled: settings.Enabled && !isKeyless(settings),
    mtu: Math.min(settings.Mtu, carriers[settings.Type]),
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

export interface TunnelFacts {
  readonly state: Tunnel["State"];
  /** `""` for those who may not see it. */
  readonly sharedKey: string | null;
  /** The network's end of WireGuard; null while it has none. */
  readonly wireguard: { readonly publicKey: string; readonly listenPort: number } | null;
  readonly peerConfig: string;
}

/** What a tunnel of the other type has instead of the fields of one. */
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

/** Whether a tunnel of this type has the field; what is said of one that it has not is ignored. */
export const hasField = (type: TunnelType, field: string): boolean =>
  !Object.hasOwn(type === "IPsec" ? absentWireguard : absentIpsec, field);

/** The answer form: all keys in the order of the contract. */
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
