/**
 * Finds the records of a response for a question: the algorithm of RFC 1034 section 4.3.2 with later clarifications (wildcards RFC 4592,
 * negative responses RFC 2308 and 6604, ANY RFC 8482, glue RFC 9471). Pure: no bytes, no sockets.
 */

import { entryOf, findSet, locate, type NamePosition, TYPE, u16, type Zone } from "../builtin/zone.ts";
import type { Zones } from "../builtin/zones.ts";
import { RCODE, type Records, recordsOf } from "../wire/message.ts";
import { lowerCase, relativeTo } from "../wire/name.ts";

/** Most CNAMEs that are followed for one response. */
const CHAIN_LIMIT = 8;

/** Kinds of responses, for rate limits and counters. */
export const KINDS = ["data", "wildcard", "negative", "referral", "refused"] as const;
/** A value of `KINDS`. */
export type AnswerKind = (typeof KINDS)[number];

/** The records of a response. */
export interface Answer {
  readonly rcode: number;
  readonly authoritative: boolean;
  readonly kind: AnswerKind;
  /** The zone of the question; undefined when it is in none of ours (REFUSED). */
  readonly zone: Zone | undefined;
  /** Whether all records come from that zone; the response then is valid until the zone changes. */
  readonly local: boolean;
  readonly answer: readonly Records[];
  readonly authority: readonly Records[];
  /** Glue that the referral requires; if it does not fit, the response is truncated. */
  readonly glue: Iterable<Records>;
  /** Addresses that save the client a query, as far as they fit. Both are looked up on demand: a set may have thousands. */
  readonly extra: Iterable<Records>;
}

interface Draft {
  answer: Records[];
  authority: Records[];
  glue: Iterable<Records>;
  extra: Iterable<Records>;
}

/** Returns the records for a question; the name is in the form of `name.ts`. */
export function resolve(zones: Zones, question: string, type: number): Answer {
  const first = zoneFor(zones, question, type);
  const draft: Draft = { answer: [], authority: [], glue: [], extra: [] };
  if (first === undefined) {
    return { ...draft, rcode: RCODE.REFUSED, authoritative: false, kind: "refused", zone: undefined, local: true };
  }
  let zone: Zone | undefined = first;
  let name = question;
  let kind: AnswerKind = "data";
  let rcode: number = RCODE.NOERROR;
  let authoritative = true;
  let local = true;
  const followed = new Set<string>();
  // Addresses of a name in a deeper zone come from that zone, regardless of this one.
  const isInZone = (target: string): boolean => zones.find(target) === zone;
  for (;;) {
    const relative = relativeTo(name, zone.name) as string;
    const place = locate(zone, relative);
    if (place.wildcard) kind = "wildcard";
    if (place.cut !== null && !(type === TYPE.DS && place.cut === relative)) {
      refer(draft, zone, place, isInZone);
      if (followed.size === 0) authoritative = false;
      kind = "referral";
      break;
    }
    if (place.sets === undefined) {
      rcode = zones.reach(name) ? RCODE.NOERROR : RCODE.NXDOMAIN;
      kind = "negative";
      draft.authority.push(soaOf(zone, zone.authority.negativeTtl));
      break;
    }
    const found = choose(zone, place.wildcard ? name : place.owner, relative, place.sets, type);
    if (found === null) {
      kind = place.wildcard ? "wildcard" : "negative";
      draft.authority.push(soaOf(zone, zone.authority.negativeTtl));
      break;
    }
    if (found.type !== TYPE.CNAME || type === TYPE.CNAME || type === TYPE.ANY) {
      draft.answer.push(found);
      if (found.type === TYPE.MX || found.type === TYPE.NS || found.type === TYPE.SRV)
        draft.extra = addresses(zone, found, isInZone);
      break;
    }
    if (followed.has(name)) break;
    draft.answer.push(found);
    if (followed.add(name).size > CHAIN_LIMIT) break;
    name = lowerCase(found.data.substring(found.start + 2, found.end - 1));
    zone = zoneFor(zones, name, type);
    if (zone === undefined) break;
    if (zone !== first) local = false;
  }
  return { ...draft, rcode, authoritative, kind, zone: first, local };
}

/** Returns the SOA of a zone as records. */
export function soaOf(zone: Pick<Zone, "name" | "authority">, ttl: number): Records {
  const { rdata } = zone.authority;
  const data = String.fromCharCode(rdata.length >> 8, rdata.length & 0xff) + rdata;
  return { owner: zone.name, type: TYPE.SOA, ttl, data, start: 0, end: data.length };
}

/**
 * Returns the zone for a question. DS belongs to the parent's side of a delegation, so it comes from the parent if that zone is ours too
 * (RFC 4035 section 3.1.4.1).
 */
function zoneFor(zones: Zones, name: string, type: number): Zone | undefined {
  const zone = zones.find(name);
  if (type !== TYPE.DS || zone === undefined || zone.name !== name || name === "") return zone;
  return zones.find(name.substring(1 + name.charCodeAt(0))) ?? zone;
}

/**
 * Returns the set for the question at an existing name with spelling `owner`: the type's, else a CNAME, for ANY the first set; null for no
 * data.
 */
function choose(zone: Zone, owner: string, relative: string, sets: string, type: number): Records | null {
  if (relative === "" && (type === TYPE.SOA || (type === TYPE.ANY && sets === "")))
    return soaOf(zone, zone.authority.ttl);
  if (sets === "") return null;
  if (type === TYPE.ANY) return recordsOf(owner, sets, 0);
  const exact = findSet(sets, type);
  const at = exact < 0 ? findSet(sets, TYPE.CNAME) : exact;
  return at < 0 ? null : recordsOf(owner, sets, at);
}

function refer(
  draft: Draft,
  zone: Zone,
  { owner, cut, sets = "" }: NamePosition,
  isOwn: (target: string) => boolean,
): void {
  const servers = recordsOf(owner, sets, findSet(sets, TYPE.NS));
  draft.authority.push(servers);
  const delegated = cut + zone.name;
  const inDomain = (target: string): boolean => relativeTo(target, delegated) !== null;
  draft.glue = addresses(zone, servers, inDomain);
  draft.extra = addresses(zone, servers, (target) => !inDomain(target) && isOwn(target));
}

/** Returns the zone's address records for the wanted targets of NS, MX or SRV records. */
function* addresses(zone: Zone, records: Records, wanted: (target: string) => boolean): Generator<Records, void> {
  const fixed = records.type === TYPE.SRV ? 6 : records.type === TYPE.MX ? 2 : 0;
  const known = new Set<string>();
  for (let pos = records.start; pos < records.end; ) {
    const next = pos + 2 + u16(records.data, pos);
    const target = lowerCase(records.data.substring(pos + 2 + fixed, next - 1));
    pos = next;
    const relative = relativeTo(target, zone.name);
    if (relative === null || known.has(target) || !wanted(target)) continue;
    known.add(target);
    const { owner, sets } = entryOf(zone, relative) ?? { owner: target, sets: wildcardSets(locate(zone, relative)) };
    for (const type of [TYPE.A, TYPE.AAAA]) {
      const at = findSet(sets, type);
      if (at >= 0) yield recordsOf(owner, sets, at);
    }
  }
}

function wildcardSets(place: NamePosition): string {
  return place.wildcard ? (place.sets ?? "") : "";
}
