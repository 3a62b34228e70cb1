/**
 * One tunnel as asked for, read into what is stored (docs/spec.md#vpn-tunnel): defaults, what stays in an edit, what depends on what. The
 * same reading serves a request before anything is known of what stands, and again when it is.
 */
import { type TunnelInput, type TunnelType, tunnelLimits, tunnelTypes } from "@brume/api/vpn.ts";
import { type FieldProblem, fieldProblem } from "../../../base/fieldproblem.ts";
import { readBlocks, readHostPort, readIdentity, readKey, readPeer, type Taken } from "./fields.ts";
import type { IpsecSettings, TunnelSettings, WireguardSettings } from "./tunnel.ts";

/** What of the network its tunnels depend on. */
export interface TunnelNetwork {
  readonly cidr: string;
  readonly edgeAddress: string;
  /** The edge's WireGuard key; null while it has none. */
  readonly publicKey: string | null;
}

export type TunnelField = keyof TunnelInput;

export interface TunnelFieldProblem extends FieldProblem {
  readonly field: TunnelField;
}

/** With refusals, what is read says only which fields there are. */
export interface ReadTunnel {
  readonly settings: TunnelSettings;
  /** Null: none was given and none stands. */
  readonly sharedKey: string | null;
  readonly refusals: readonly TunnelFieldProblem[];
}

type TextField =
  | "Name"
  | "PeerNetwork"
  | "PeerEndpoint"
  | "PeerIdentificator"
  | "LocalNetwork"
  | "LocalIdentificator"
  | "PeerPublicKey";

interface Reading {
  readonly input: TunnelInput;
  readonly network: TunnelNetwork;
  refuse(field: TunnelField, refusal: FieldProblem): void;
}

/** What stands for a value that was refused: nothing is made of it. */
const nothing = "";

function taken(reading: Reading, field: TunnelField, value: Taken): string {
  if (typeof value === "string") return value;
  reading.refuse(field, value);
  return nothing;
}

/** Empty or absent is what stands; a new tunnel needs it. */
function need(
  reading: Reading,
  field: TextField,
  old: string | undefined,
  what: string,
  read: (text: string) => Taken,
) {
  const given = reading.input[field];
  if (given) return taken(reading, field, read(given));
  return old ?? taken(reading, field, fieldProblem("field_required", `is required: ${what}`));
}

/** Absent is what stands, empty or new is the default. */
function allow(
  reading: Reading,
  field: TextField,
  old: string | undefined,
  fallback: string,
  read: (text: string) => Taken,
) {
  const given = reading.input[field];
  if (given) return taken(reading, field, read(given));
  return given === undefined && old !== undefined ? old : fallback;
}

function readCommon(reading: Reading, old: TunnelSettings | undefined) {
  const { input, network } = reading;
  return {
    Name: need(reading, "Name", old?.Name, "1 to 64 characters", (text) => text),
    Enabled: input.Enabled ?? old?.Enabled ?? true,
    Mtu: input.Mtu ?? old?.Mtu ?? tunnelLimits.mtu,
    PeerNetwork: need(reading, "PeerNetwork", old?.PeerNetwork, "the blocks behind the peer", readBlocks),
    LocalNetwork: allow(reading, "LocalNetwork", old?.LocalNetwork, network.cidr, (text) =>
      readBlocks(text, network.cidr),
    ),
  };
}

function readPeerIdentity(reading: Reading, old: string | undefined, endpoint: string): string {
  const isCaller = endpoint === "any";
  const identity = allow(reading, "PeerIdentificator", old, isCaller ? nothing : endpoint, readIdentity);
  if (!isCaller || (reading.input.PeerIdentificator && identity === nothing)) return identity;
  if (identity === nothing)
    reading.refuse("PeerIdentificator", fieldProblem("field_required", "is required where PeerEndpoint is any"));
  else if (/^[\d.]+$/.test(identity))
    reading.refuse(
      "PeerIdentificator",
      fieldProblem("format_invalid", `must be a host name or user@host where PeerEndpoint is any, not ${identity}`),
    );
  return identity;
}

function readIpsec(reading: Reading, old: IpsecSettings | undefined): IpsecSettings {
  const { input, network } = reading;
  const common = readCommon(reading, old);
  const endpoint = need(
    reading,
    "PeerEndpoint",
    old?.PeerEndpoint,
    "the address or host name of the peer, or any",
    readPeer,
  );
  const encryption = input.EncryptionType ?? old?.EncryptionType ?? "Aes256";
  const version = input.IkeVersion ?? old?.IkeVersion ?? 2;
  // Phase 1 of IKEv1 has no number for it (IANA "IPsec Registry", encryption algorithms), so it could never come up.
  if (encryption === "AesGcm" && version === 1)
    reading.refuse(
      "EncryptionType",
      fieldProblem("fields_conflict", "must not be AesGcm with IkeVersion 1, which does not know it"),
    );
  return {
    ...common,
    Type: "IPsec",
    PeerEndpoint: endpoint,
    EncryptionType: encryption,
    PeerIdentificator: readPeerIdentity(reading, old?.PeerIdentificator, endpoint),
    LocalIdentificator: allow(
      reading,
      "LocalIdentificator",
      old?.LocalIdentificator,
      network.edgeAddress,
      readIdentity,
    ),
    IkeVersion: version,
    DhGroup: input.DhGroup ?? old?.DhGroup ?? 14,
    Digest: input.Digest ?? old?.Digest ?? (encryption === "TripleDes" ? "Sha1" : "Sha256"),
    PerfectForwardSecrecy: input.PerfectForwardSecrecy ?? old?.PerfectForwardSecrecy ?? true,
  };
}

function readWireguard(reading: Reading, old: WireguardSettings | undefined): WireguardSettings {
  const { input, network } = reading;
  const common = readCommon(reading, old);
  return {
    ...common,
    Type: "WireGuard",
    PeerEndpoint: allow(reading, "PeerEndpoint", old?.PeerEndpoint, "", readHostPort),
    // Without one the tunnel waits until the peer has a key.
    PeerPublicKey: allow(reading, "PeerPublicKey", undefined, old?.PeerPublicKey ?? "", (text) =>
      text === network.publicKey
        ? fieldProblem("fields_conflict", "must be the key of the peer, and is that of this end")
        : readKey(text),
    ),
    KeepAlive: input.KeepAlive ?? old?.KeepAlive ?? tunnelLimits.keepAlive,
  };
}

function readSharedKey(reading: Reading, type: TunnelType): string | null {
  const given = reading.input.SharedKey;
  if (!given) return null;
  if (type === "WireGuard") return taken(reading, "SharedKey", readKey(given));
  const { minSharedKey, maxSharedKey } = tunnelLimits;
  if (given.length >= minSharedKey) return given;
  const must = `must be ${minSharedKey} to ${maxSharedKey} characters long, not ${given.length}`;
  return taken(reading, "SharedKey", fieldProblem("too_short", must));
}

/** What stands, if something does: its type is the wish's. */
export interface StoredTunnelInput {
  readonly settings: TunnelSettings;
  readonly sharedKey: string | null;
}

export function readTunnelInput(
  input: TunnelInput,
  type: TunnelType,
  network: TunnelNetwork,
  standing: StoredTunnelInput | undefined,
): ReadTunnel {
  const refusals: TunnelFieldProblem[] = [];
  const reading: Reading = {
    input,
    network,
    refuse: (field, refusal) => refusals.push({ field, ...refusal }),
  };
  const old = standing?.settings;
  const settings =
    type === "WireGuard"
      ? readWireguard(reading, old?.Type === "WireGuard" ? old : undefined)
      : readIpsec(reading, old?.Type === "IPsec" ? old : undefined);
  const sharedKey = readSharedKey(reading, type) ?? standing?.sharedKey ?? null;
  return { settings, sharedKey, refusals };
}

/** Settings that are in nobody's way: what an edit starts from while nobody has looked what it really starts from. */
const blank = { Name: "a", Enabled: true, Mtu: 1400, PeerNetwork: "0.0.0.0/0", LocalNetwork: "0.0.0.0/0" } as const;
const blanks: Readonly<Record<TunnelType, TunnelSettings>> = {
  IPsec: {
    ...blank,
    Type: "IPsec",
    PeerEndpoint: "a",
    EncryptionType: "Aes256",
    PeerIdentificator: "a",
    LocalIdentificator: "a",
    IkeVersion: 2,
    DhGroup: 14,
    Digest: "Sha256",
    PerfectForwardSecrecy: true,
  },
  WireGuard: { ...blank, Type: "WireGuard", PeerEndpoint: "", PeerPublicKey: "", KeepAlive: 0 },
};

/** A network that nothing is outside of. */
const anywhere: TunnelNetwork = { cidr: "0.0.0.0/0", edgeAddress: "192.0.2.1", publicKey: null };

/** A known tunnel has one of the two types, whatever the wish says of it. */
export const typesOf = ({ Id, Type }: TunnelInput): readonly TunnelType[] =>
  Id === undefined ? [Type ?? "IPsec"] : tunnelTypes;

/** What is wrong with the wish whatever stands: with all types that it may have. */
export function checkTunnelInput(input: TunnelInput): readonly TunnelFieldProblem[] {
  const isKnown = input.Id !== undefined;
  const types = typesOf(input);
  const [first = [], ...others] = types.map((type) => {
    const standing = isKnown ? { settings: blanks[type], sharedKey: null } : undefined;
    return readTunnelInput(input, type, anywhere, standing).refusals;
  });
  return first.filter(({ field, code }) =>
    others.every((other) => other.some((refusal) => refusal.field === field && refusal.code === code)),
  );
}
