/**
 * Parses one tunnel of a request into the settings to store (docs/spec.md#vpn-tunnel): defaults, fields that an edit keeps, and rules
 * between fields. The same code checks a request before the stored tunnel is known, and parses it when it is.
 */

import { type TunnelInput, type TunnelType, tunnelLimits, tunnelTypes } from "@brume/api/vpn.ts";
import { type FieldProblem, fieldProblem } from "../../../base/error.ts";
import { type FieldValue, readBlocks, readHostPort, readIdentity, readKey, readPeer } from "./fields.ts";
import type { IpsecSettings, TunnelSettings, WireguardSettings } from "./tunnel.ts";

/** The fields of a network that its tunnels depend on. */
export interface TunnelNetwork {
  readonly cidr: string;
  readonly edgeAddress: string;
  /** The edge's WireGuard key; null while it has none. */
  readonly publicKey: string | null;
}

/** Name of a request field. */
export type TunnelField = keyof TunnelInput;

/** Why a field of a tunnel is invalid. */
export interface TunnelFieldProblem extends FieldProblem {
  readonly field: TunnelField;
}

/** Result of `readTunnelInput`. If there are problems, the values of `settings` are not usable. */
export interface ReadTunnel {
  readonly settings: TunnelSettings;
  /** Null: the request has none and none is stored. */
  readonly sharedKey: string | null;
  readonly problems: readonly TunnelFieldProblem[];
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
  reject(field: TunnelField, problem: FieldProblem): void;
}

/** Placeholder for a rejected value; it is never stored. */
const rejected = "";

/** Returns the value, or rejects the field. */
function accept(reading: Reading, field: TunnelField, value: FieldValue): string {
  if (typeof value === "string") return value;
  reading.reject(field, value);
  return rejected;
}

/** Reads a required field. Empty or absent keeps the stored value `old`; a new tunnel must have the field. */
function readRequired(
  reading: Reading,
  field: TextField,
  old: string | undefined,
  meaning: string,
  read: (text: string) => FieldValue,
) {
  const given = reading.input[field];
  if (given) return accept(reading, field, read(given));
  return old ?? accept(reading, field, fieldProblem("field_required", `is required: ${meaning}`));
}

/** Reads an optional field. Absent keeps the stored value `old`; empty, or absent in a new tunnel, is the default `fallback`. */
function readOptional(
  reading: Reading,
  field: TextField,
  old: string | undefined,
  fallback: string,
  read: (text: string) => FieldValue,
) {
  const given = reading.input[field];
  if (given) return accept(reading, field, read(given));
  return given === undefined && old !== undefined ? old : fallback;
}

function readCommon(reading: Reading, old: TunnelSettings | undefined) {
  const { input, network } = reading;
  return {
    Name: readRequired(reading, "Name", old?.Name, "1 to 64 characters", (text) => text),
    Enabled: input.Enabled ?? old?.Enabled ?? true,
    Mtu: input.Mtu ?? old?.Mtu ?? tunnelLimits.mtu,
    PeerNetwork: readRequired(reading, "PeerNetwork", old?.PeerNetwork, "the blocks behind the peer", readBlocks),
    LocalNetwork: readOptional(reading, "LocalNetwork", old?.LocalNetwork, network.cidr, (text) =>
      readBlocks(text, network.cidr),
    ),
  };
}

function readPeerIdentity(reading: Reading, old: string | undefined, endpoint: string): string {
  const peerInitiates = endpoint === "any";
  const identity = readOptional(reading, "PeerIdentificator", old, peerInitiates ? "" : endpoint, readIdentity);
  if (!peerInitiates || (reading.input.PeerIdentificator && identity === rejected)) return identity;
  if (identity === "")
    reading.reject("PeerIdentificator", fieldProblem("field_required", "is required if PeerEndpoint is any"));
  else if (/^[\d.]+$/.test(identity))
    reading.reject(
      "PeerIdentificator",
      fieldProblem("format_invalid", `must be a host name or user@host if PeerEndpoint is any, not ${identity}`),
    );
  return identity;
}

function readIpsec(reading: Reading, old: IpsecSettings | undefined): IpsecSettings {
  const { input, network } = reading;
  const common = readCommon(reading, old);
  const endpoint = readRequired(
    reading,
    "PeerEndpoint",
    old?.PeerEndpoint,
    "the address or host name of the peer, or any",
    readPeer,
  );
  const encryption = input.EncryptionType ?? old?.EncryptionType ?? "Aes256";
  const version = input.IkeVersion ?? old?.IkeVersion ?? 2;
  // Phase 1 of IKEv1 has no number for AES-GCM (IANA "IPsec Registry", encryption algorithms), so it cannot be negotiated.
  if (encryption === "AesGcm" && version === 1)
    reading.reject(
      "EncryptionType",
      fieldProblem("fields_conflict", "must not be AesGcm with IkeVersion 1, which does not support it"),
    );
  return {
    ...common,
    Type: "IPsec",
    PeerEndpoint: endpoint,
    EncryptionType: encryption,
    PeerIdentificator: readPeerIdentity(reading, old?.PeerIdentificator, endpoint),
    LocalIdentificator: readOptional(
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
    PeerEndpoint: readOptional(reading, "PeerEndpoint", old?.PeerEndpoint, "", readHostPort),
    // Without a key the tunnel is not applied until the peer has one.
    PeerPublicKey: readOptional(reading, "PeerPublicKey", undefined, old?.PeerPublicKey ?? "", (text) =>
      text === network.publicKey
        ? fieldProblem("fields_conflict", "must be the public key of the peer, but is that of this network")
        : readKey(text),
    ),
    KeepAlive: input.KeepAlive ?? old?.KeepAlive ?? tunnelLimits.keepAlive,
  };
}

function readSharedKey(reading: Reading, type: TunnelType): string | null {
  const given = reading.input.SharedKey;
  if (!given) return null;
  if (type === "WireGuard") return accept(reading, "SharedKey", readKey(given));
  const { minSharedKey, maxSharedKey } = tunnelLimits;
  if (given.length >= minSharedKey) return given;
  const must = `must be ${minSharedKey} to ${maxSharedKey} characters long, not ${given.length}`;
  return accept(reading, "SharedKey", fieldProblem("too_short", must));
}

/** The stored tunnel that the request edits, with the same type. */
export interface StoredTunnelInput {
  readonly settings: TunnelSettings;
  readonly sharedKey: string | null;
}

/** Parses a tunnel of the type `type`; `stored` is the tunnel that it edits, undefined if it is new. */
export function readTunnelInput(
  input: TunnelInput,
  type: TunnelType,
  network: TunnelNetwork,
  stored: StoredTunnelInput | undefined,
): ReadTunnel {
  const problems: TunnelFieldProblem[] = [];
  const reading: Reading = {
    input,
    network,
    reject: (field, problem) => problems.push({ field, ...problem }),
  };
  const old = stored?.settings;
  const settings =
    type === "WireGuard"
      ? readWireguard(reading, old?.Type === "WireGuard" ? old : undefined)
      : readIpsec(reading, old?.Type === "IPsec" ? old : undefined);
  const sharedKey = readSharedKey(reading, type) ?? stored?.sharedKey ?? null;
  return { settings, sharedKey, problems };
}

/** Settings that conflict with nothing: placeholders for the stored tunnel of an edit, before it is read. */
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

/** A network that contains all addresses: a placeholder before the network is read. */
const anywhere: TunnelNetwork = { cidr: "0.0.0.0/0", edgeAddress: "192.0.2.1", publicKey: null };

/** Returns the types that the tunnel can have: for an edit both, since `Type` may be wrong. */
export const typesOf = ({ Id, Type }: TunnelInput): readonly TunnelType[] =>
  Id === undefined ? [Type ?? "IPsec"] : tunnelTypes;

/** Returns the problems that the input has for every type it can have, independent of the stored tunnel. */
export function checkTunnelInput(input: TunnelInput): readonly TunnelFieldProblem[] {
  const isKnown = input.Id !== undefined;
  const types = typesOf(input);
  const [first = [], ...others] = types.map((type) => {
    const stored = isKnown ? { settings: blanks[type], sharedKey: null } : undefined;
    return readTunnelInput(input, type, anywhere, stored).problems;
  });
  return first.filter(({ field, code }) =>
    others.every((other) => other.some((problem) => problem.field === field && problem.code === code)),
  );
}
