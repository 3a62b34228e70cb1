/**
 * From a question and the zones to the records of an answer: the algorithm of RFC 1034 section 4.3.2 with its later
 * clarifications (wildcards RFC 4592, negative answers RFC 2308 and 6604, ANY RFC 8482, glue RFC 9471). Pure: no bytes, no sockets.
 */
import { relativeTo } from "./name.ts";
import { RCODE, type Records, recordsOf } from "./wire.ts";
import { findSet, locate, type Place, TYPE, u16, type Zone } from "./zone.ts";
import type { Zones } from "./zones.ts";

/** CNAMEs followed for one answer. */
export const CHAIN_LIMIT = 8;

/** What the answer is about, for whoever limits or counts answers. */
export const KINDS = ["data", "wildcard", "negative", "referral", "refused"] as const;
export type Kind = (typeof KINDS)[number];

export interface Answer {
  readonly rcode: number;
  readonly authoritative: boolean;
  readonly kind: Kind;
  /** The zone that was asked; undefined when none of ours was (REFUSED). */
  readonly zone: Zone | undefined;
  /** Whether every record comes from that zone: then the answer holds until it changes. */
  readonly local: boolean;
  readonly answer: readonly Records[];
  readonly authority: readonly Records[];
  /** Glue without which the referral leads nowhere; it must fit or the answer is truncated. */
  readonly glue: readonly Records[];
  /** Addresses that save the client a question, as far as they fit. */
  readonly extra: readonly Records[];
}

interface Draft {
  answer: Records[];
  authority: Records[];
  glue: Records[];
  extra: Records[];
}

/** Answers the question for a name as `name.ts` holds it. */
export function resolve(zones: Zones, question: string, type: number): Answer {
  const first = zoneFor(zones, question, type);
  const draft: Draft = { answer: [], authority: [], glue: [], extra: [] };
  if (first === undefined) {
    return { ...draft, rcode: RCODE.REFUSED, authoritative: false, kind: "refused", zone: undefined, local: true };
  }
  let zone: Zone | undefined = first;
  let name = question;
  let kind: Kind = "data";
  let rcode: number = RCODE.NOERROR;
  let authoritative = true;
  let local = true;
  for (let followed = 0; ; ) {
    const relative = relativeTo(name, zone.name) as string;
    const place = locate(zone, relative);
    if (place.wildcard) kind = "wildcard";
    if (place.cut !== null && !(type === TYPE.DS && place.cut === relative)) {
      refer(draft, zone, name.substring(relative.length - place.cut.length), place.sets as string);
      if (followed === 0) authoritative = false;
      kind = "referral";
      break;
    }
    if (place.sets === undefined) {
      rcode = RCODE.NXDOMAIN;
      kind = "negative";
      draft.authority.push(soaOf(zone, zone.authority.negativeTtl));
      break;
    }
    const found = choose(zone, name, relative, place.sets, type);
    if (found === null) {
      kind = place.wildcard ? "wildcard" : "negative";
      draft.authority.push(soaOf(zone, zone.authority.negativeTtl));
      break;
    }
    if (found.type !== TYPE.CNAME || type === TYPE.CNAME || type === TYPE.ANY) {
      draft.answer.push(found);
      addAddresses(draft, zone, found);
      break;
    }
    if (draft.answer.some((records) => records.owner === name)) break;
    draft.answer.push(found);
    if (++followed > CHAIN_LIMIT) break;
    name = found.data.substring(found.start + 2, found.end - 1);
    zone = zoneFor(zones, name, type);
    if (zone === undefined) break;
    if (zone !== first) local = false;
  }
  return { ...draft, rcode, authoritative, kind, zone: first, local };
}

/** The SOA of a zone as records. */
export function soaOf(zone: Zone, ttl: number): Records {
  const { rdata } = zone.authority;
  const data = String.fromCharCode(rdata.length >> 8, rdata.length & 0xff) + rdata;
  return { owner: zone.name, type: TYPE.SOA, ttl, data, start: 0, end: data.length };
}

/** DS belongs to the parent's side of a cut: it is asked there when the parent is ours too (RFC 4035 section 3.1.4.1). */
function zoneFor(zones: Zones, name: string, type: number): Zone | undefined {
  const zone = zones.find(name);
  if (type !== TYPE.DS || zone === undefined || zone.name !== name || name === "") return zone;
  return zones.find(name.substring(1 + name.charCodeAt(0))) ?? zone;
}

/** The set that answers the question at an existing name: of the type, else a CNAME, for ANY the first there is; null for no data. */
function choose(zone: Zone, name: string, relative: string, sets: string, type: number): Records | null {
  if (relative === "" && (type === TYPE.SOA || (type === TYPE.ANY && sets === "")))
    return soaOf(zone, zone.authority.ttl);
  if (sets === "") return null;
  if (type === TYPE.ANY) return recordsOf(name, sets, 0);
  const exact = findSet(sets, type);
  const at = exact < 0 ? findSet(sets, TYPE.CNAME) : exact;
  return at < 0 ? null : recordsOf(name, sets, at);
}

function refer(draft: Draft, zone: Zone, cut: string, sets: string): void {
  const servers = recordsOf(cut, sets, findSet(sets, TYPE.NS));
  draft.authority.push(servers);
  for (const target of targetsOf(servers)) {
    const inDomain = relativeTo(target, cut) !== null;
    addressesOf(zone, target, inDomain ? draft.glue : draft.extra, draft);
  }
}

function addAddresses(draft: Draft, zone: Zone, records: Records): void {
  if (records.type !== TYPE.MX && records.type !== TYPE.NS && records.type !== TYPE.SRV) return;
  for (const target of targetsOf(records)) addressesOf(zone, target, draft.extra, draft);
}

/** The names that NS, MX and SRV records point to. */
function targetsOf(records: Records): string[] {
  const fixed = records.type === TYPE.SRV ? 6 : records.type === TYPE.MX ? 2 : 0;
  const targets: string[] = [];
  for (let pos = records.start; pos < records.end; ) {
    const size = u16(records.data, pos);
    targets.push(records.data.substring(pos + 2 + fixed, pos + 1 + size));
    pos += 2 + size;
  }
  return targets;
}

function addressesOf(zone: Zone, target: string, into: Records[], draft: Draft): void {
  const relative = relativeTo(target, zone.name);
  if (relative === null) return;
  const sets = zone.sets.get(relative) ?? wildcardSets(locate(zone, relative));
  for (const type of [TYPE.A, TYPE.AAAA]) {
    const at = findSet(sets, type);
    const known = (records: Records) => records.owner === target && records.type === type;
    if (at >= 0 && !draft.glue.some(known) && !draft.extra.some(known)) into.push(recordsOf(target, sets, at));
  }
}

function wildcardSets(place: Place): string {
  return place.wildcard ? (place.sets ?? "") : "";
}
