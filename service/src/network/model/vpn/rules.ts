/**
 * What tunnels of one network may not have in common. Two things are held: what the contract promises to be there once, and what an
 * IKE daemon needs to know for whom a packet is.
 */
import { isIPv4 } from "node:net";
import { join, parseAddress, parseAddresses } from "../../../base/address.ts";
import { type FieldProblem, fieldProblem } from "../../../base/fieldproblem.ts";
import { splitBlocks } from "./fields.ts";
import type { TunnelFieldProblem, TunnelNetwork } from "./read.ts";
import type { IpsecSettings, TunnelSettings } from "./tunnel.ts";

export interface ListedTunnel {
  /** In the list as it was sent. */
  readonly index: number;
  readonly settings: TunnelSettings;
  /** Null: none, or one that will be made and is like no other. */
  readonly sharedKey: string | null;
}

export interface Conflict extends TunnelFieldProblem {
  readonly index: number;
}

/** Of host names and IKE identities letter case says nothing. */
const once: readonly {
  readonly field: TunnelFieldProblem["field"];
  readonly keyOf: (settings: TunnelSettings) => string | null;
  readonly must: string;
}[] = [
  { field: "Name", keyOf: ({ Name }) => Name, must: "must be unique in the network, and is that of" },
  {
    field: "PeerIdentificator",
    keyOf: (tunnel) =>
      tunnel.Type === "IPsec" ? `${tunnel.PeerEndpoint} ${tunnel.PeerIdentificator}`.toLowerCase() : null,
    must: "must not occur twice with one PeerEndpoint (several networks of one peer go into PeerNetwork), as it does in",
  },
  {
    field: "PeerPublicKey",
    keyOf: (tunnel) => (tunnel.Type === "WireGuard" ? tunnel.PeerPublicKey || null : null),
    must: "must be unique in the network, and is that of",
  },
];

/**
 * How the key of a peer is found: by both identities; in main mode of IKEv1, where the peer says who it is only under that key,
 * by nothing but its address (RFC 2409 section 5.4).
 */
const keyFinders: readonly {
  readonly keyOf: (settings: IpsecSettings) => string | null;
  readonly why: string;
}[] = [
  {
    keyOf: (tunnel) => `${tunnel.LocalIdentificator} ${tunnel.PeerIdentificator}`.toLowerCase(),
    why: "has the same identities on both sides, by which IKE finds the key",
  },
  {
    keyOf: (tunnel) => (tunnel.IkeVersion === 1 ? tunnel.PeerEndpoint.toLowerCase() : null),
    why: "has the same PeerEndpoint, by which IKEv1 finds the key",
  },
];

/** Tunnels that lead a network to itself; that a peer's networks are apart from `cidr` is for `findOverlap` to say. */
function findLoops(tunnels: readonly ListedTunnel[], { cidr, edgeAddress }: TunnelNetwork): readonly Conflict[] {
  const own = [cidr, edgeAddress].map(parseAddresses);
  return tunnels.flatMap(({ index, settings }) => {
    const peer = settings.PeerEndpoint.replace(/:\d+$/, "");
    const value = isIPv4(peer) ? parseAddress(peer).value : null;
    const isOwn = value !== null && own.some(({ first, last }) => first <= value && value <= last);
    const blame = (field: TunnelFieldProblem["field"], address: string): Conflict => ({
      index,
      field,
      ...fieldProblem("fields_conflict", `must be at the far end, and ${address} is an address of this network`),
    });
    return [
      ...(splitBlocks(settings.PeerNetwork).includes(`${edgeAddress}/32`) ? [blame("PeerNetwork", edgeAddress)] : []),
      ...(isOwn ? [blame("PeerEndpoint", peer)] : []),
    ];
  });
}

/** Tunnels to the network itself, and everything that is there twice and may not; the later one in the list is to blame. */
export function findConflicts(tunnels: readonly ListedTunnel[], network: TunnelNetwork): readonly Conflict[] {
  const conflicts = [...findLoops(tunnels, network)];
  for (const { field, keyOf, must } of once) {
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
        const must = `must be that of Tunnels[${before.index}], which ${why}`;
        conflicts.push({ index: tunnel.index, field: "SharedKey", ...fieldProblem("fields_conflict", must) });
      }
    }
  }
  return conflicts;
}

/** The first two that claim one address: blocks behind different peers, or a peer's and the network's own. */
export function findOverlap(
  tunnels: readonly ListedTunnel[],
  cidr: string,
): (FieldProblem & { readonly index: number }) | null {
  const whole = parseAddresses(cidr);
  const claims = [{ first: whole.first, last: whole.last, index: -1 }];
  for (const { index, settings } of tunnels)
    for (const range of join(splitBlocks(settings.PeerNetwork).map(parseAddresses))) claims.push({ ...range, index });
  claims.sort((a, b) => (a.first < b.first ? -1 : a.first > b.first ? 1 : 0));
  // What one tunnel claims is joined, so whatever begins before the widest claim so far has ended is somebody else's.
  let widest = claims[0];
  for (const claim of claims.slice(1)) {
    if (widest !== undefined && claim.first <= widest.last) {
      const other = Math.min(widest.index, claim.index);
      const whose = other < 0 ? `the network's own ${cidr}` : `that of Tunnels[${other}]`;
      return {
        index: Math.max(widest.index, claim.index),
        ...fieldProblem("fields_conflict", `must not overlap ${whose}`),
      };
    }
    widest = claim;
  }
  return null;
}
