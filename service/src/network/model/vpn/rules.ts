/**
 * Rules between the tunnels of one network: fields that the API requires to be unique, keys that an IKE daemon must be able to
 * select, and subnets that must not overlap so that each packet has one tunnel.
 */

import { isIPv4 } from "node:net";
import { join, parseAddress, parseAddresses } from "../../../base/address.ts";
import { type FieldProblem, fieldProblem } from "../../../base/error.ts";
import { splitBlocks } from "./fields.ts";
import type { TunnelFieldProblem, TunnelNetwork } from "./read.ts";
import type { IpsecSettings, TunnelSettings } from "./tunnel.ts";

/** A valid tunnel of the request. */
export interface ListedTunnel {
  /** Index in the list of the request. */
  readonly index: number;
  readonly settings: TunnelSettings;
  /** Null: none, or one that will be created at random. */
  readonly sharedKey: string | null;
}

/** A problem of the tunnel at `index` with another tunnel or with the network. */
export interface Conflict extends TunnelFieldProblem {
  readonly index: number;
}

/** Fields that are unique in a network. Host names and IKE identities are compared without letter case. */
const uniqueFields: readonly {
  readonly field: TunnelFieldProblem["field"];
  readonly keyOf: (settings: TunnelSettings) => string | null;
  readonly must: string;
}[] = [
  { field: "Name", keyOf: ({ Name }) => Name, must: "must be unique in the network, but is the same in" },
  {
    field: "PeerIdentificator",
    keyOf: (tunnel) =>
      tunnel.Type === "IPsec" ? `${tunnel.PeerEndpoint} ${tunnel.PeerIdentificator}`.toLowerCase() : null,
    must: "must be unique for its PeerEndpoint (list several networks of one peer in PeerNetwork), but is the same in",
  },
  {
    field: "PeerPublicKey",
    keyOf: (tunnel) => (tunnel.Type === "WireGuard" ? tunnel.PeerPublicKey || null : null),
    must: "must be unique in the network, but is the same in",
  },
];

/**
 * How an IKE daemon selects the key of a peer: by both identities, or in main mode of IKEv1 only by the peer's address, because the
 * peer sends its identity encrypted with that key (RFC 2409 section 5.4).
 */
const keyFinders: readonly {
  readonly keyOf: (settings: IpsecSettings) => string | null;
  readonly why: string;
}[] = [
  {
    keyOf: (tunnel) => `${tunnel.LocalIdentificator} ${tunnel.PeerIdentificator}`.toLowerCase(),
    why: "has the same identities on both sides, by which IKE selects the key",
  },
  {
    keyOf: (tunnel) => (tunnel.IkeVersion === 1 ? tunnel.PeerEndpoint.toLowerCase() : null),
    why: "has the same PeerEndpoint, by which IKEv1 selects the key",
  },
];

/** Returns the tunnels whose peer is the network itself. `findOverlap` checks that PeerNetwork does not overlap `cidr`. */
function findLoops(tunnels: readonly ListedTunnel[], { cidr, edgeAddress }: TunnelNetwork): readonly Conflict[] {
  const networkRanges = [cidr, edgeAddress].map(parseAddresses);
  return tunnels.flatMap(({ index, settings }) => {
    const peer = settings.PeerEndpoint.replace(/:\d+$/, "");
    const value = isIPv4(peer) ? parseAddress(peer).value : null;
    const isInNetwork = value !== null && networkRanges.some(({ first, last }) => first <= value && value <= last);
    const conflict = (field: TunnelFieldProblem["field"], address: string): Conflict => ({
      index,
      field,
      ...fieldProblem("fields_conflict", `must be an address of the peer, but ${address} belongs to this network`),
    });
    return [
      ...(splitBlocks(settings.PeerNetwork).includes(`${edgeAddress}/32`)
        ? [conflict("PeerNetwork", edgeAddress)]
        : []),
      ...(isInNetwork ? [conflict("PeerEndpoint", peer)] : []),
    ];
  });
}

/** Returns tunnels to the network itself, duplicates of unique fields, and keys that IKE cannot select. Reports the later of two tunnels. */
export function findConflicts(tunnels: readonly ListedTunnel[], network: TunnelNetwork): readonly Conflict[] {
  const conflicts = [...findLoops(tunnels, network)];
  for (const { field, keyOf, must } of uniqueFields) {
    const seen = new Map<string, number>();
    for (const { index, settings } of tunnels) {
      const key = keyOf(settings);
      const before = key === null ? undefined : seen.get(key);
      if (before !== undefined)
        conflicts.push({ index, field, ...fieldProblem("fields_conflict", `${must} Tunnels[${before}]`) });
      else if (key !== null) seen.set(key, index);
    }
  }
  for (const { keyOf, why } of keyFinders) {
    const seen = new Map<string, ListedTunnel>();
    for (const tunnel of tunnels) {
      const key = tunnel.settings.Type === "IPsec" ? keyOf(tunnel.settings) : null;
      if (key === null) continue;
      const before = seen.get(key);
      if (before === undefined) seen.set(key, tunnel);
      else if (tunnel.sharedKey === null || tunnel.sharedKey !== before.sharedKey) {
        const must = `must be the same as in Tunnels[${before.index}], which ${why}`;
        conflicts.push({ index: tunnel.index, field: "SharedKey", ...fieldProblem("fields_conflict", must) });
      }
    }
  }
  return conflicts;
}

/** Returns the first overlap of subnets behind different peers, or of a peer's with `cidr`; null: there is none. */
export function findOverlap(
  tunnels: readonly ListedTunnel[],
  cidr: string,
): (FieldProblem & { readonly index: number }) | null {
  const networkRange = parseAddresses(cidr);
  const ranges = [{ first: networkRange.first, last: networkRange.last, index: -1 }];
  for (const { index, settings } of tunnels)
    for (const range of join(splitBlocks(settings.PeerNetwork).map(parseAddresses))) ranges.push({ ...range, index });
  ranges.sort((a, b) => (a.first < b.first ? -1 : a.first > b.first ? 1 : 0));
  // The subnets of one tunnel are joined, so a range that begins before the furthest one ends belongs to another tunnel.
  let furthest = ranges[0];
  for (const range of ranges.slice(1)) {
    if (furthest !== undefined && range.first <= furthest.last) {
      const other = Math.min(furthest.index, range.index);
      const whose = other < 0 ? `the network's own ${cidr}` : `that of Tunnels[${other}]`;
      return {
        index: Math.max(furthest.index, range.index),
        ...fieldProblem("fields_conflict", `must not overlap ${whose}`),
      };
    }
    furthest = range;
  }
  return null;
}
