/**
 * Zones in memory, designed for two operations: finding a name in a few Map lookups, and replacing one record set without touching the
 * rest. The sets of a name are one string with one character per byte: strings cost 16 bytes beside their content and contain no pointers,
 * so a million records stay small and garbage collection is fast.
 */
import { labelStarts, lowerCase, parentOf } from "../wire/name.ts";

/** Numbers of record types that the server treats specially (IANA). */
export const TYPE = {
  A: 1,
  NS: 2,
  CNAME: 5,
  SOA: 6,
  PTR: 12,
  MX: 15,
  TXT: 16,
  AAAA: 28,
  SRV: 33,
  OPT: 41,
  DS: 43,
  TSIG: 250,
  IXFR: 251,
  AXFR: 252,
  ANY: 255,
} as const;

/** Size of a packed set's header: type u16, ttl u32, size u32. Then follow `size` bytes of records, each u16 length and rdata. */
export const SET_HEADER = 10;

/** The SOA of a zone; `rdata` contains the serial. `negativeTtl` is that of RFC 2308 section 3. */
export interface Authority {
  readonly serial: number;
  readonly ttl: number;
  readonly negativeTtl: number;
  readonly rdata: string;
}

/** One zone. Names are in the form of `wire/name.ts`. */
export interface Zone {
  readonly name: string;
  authority: Authority;
  /** Grows with each change; a cached response is valid only for its generation. */
  generation: number;
  /** Packed sets by owner, relative to the zone; the apex is "". */
  readonly sets: Map<string, string>;
  /** Original spelling of owners with upper-case letters, by owner in lower case; responses contain it. */
  readonly spellings: Map<string, string>;
  /** Number of names one label below a name; it makes an empty non-terminal exist (RFC 4592 section 2.2.2). */
  readonly below: Map<string, number>;
  /** Number of names below the apex with NS records. While it is zero, lookups skip the search for delegations. */
  cuts: number;
  /** See `ZoneChange`. */
  readonly group: number;
  readonly identity: number;
  /** Responses by response code; a complete zone that replaces this one takes them over. */
  readonly counts: number[];
}

/** Creates a zone without records. */
export function createZone(
  name: string,
  authority: Authority,
  counts: number[],
  { group, identity }: Pick<Zone, "group" | "identity"> = { group: 0, identity: 0 },
): Zone {
  const maps = { sets: new Map(), spellings: new Map(), below: new Map() };
  return { name, authority, generation: 0, ...maps, cuts: 0, group, identity, counts };
}

/** Reads 16 bits of a string of bytes. */
export function u16(bytes: string, at: number): number {
  return (bytes.charCodeAt(at) << 8) | bytes.charCodeAt(at + 1);
}

/** Reads 32 bits of a string of bytes, unsigned. */
export function u32(bytes: string, at: number): number {
  return ((u16(bytes, at) << 16) | u16(bytes, at + 2)) >>> 0;
}

/** Returns the position of the packed set of this type in a name's sets, or -1. */
export function findSet(sets: string, type: number): number {
  for (let at = 0; at < sets.length; at += SET_HEADER + u32(sets, at + 6)) if (u16(sets, at) === type) return at;
  return -1;
}

/** Returns the absolute name of an owner as published, with its letter case. */
export function spelled(zone: Zone, owner: string): string {
  return (zone.spellings.size === 0 ? owner : (zone.spellings.get(owner) ?? owner)) + zone.name;
}

/**
 * Replaces the set of this owner and type by a packed set; "" removes it. The last spelling applies to all sets of the owner. The cost
 * depends only on the size of the owner's own sets.
 */
export function putSet(zone: Zone, spelling: string, type: number, packed: string): void {
  const owner = lowerCase(spelling);
  const before = zone.sets.get(owner) ?? "";
  const at = findSet(before, type);
  if (at < 0 && packed === "") return;
  const rest = at < 0 ? before : before.substring(0, at) + before.substring(at + SET_HEADER + u32(before, at + 6));
  if (type === TYPE.NS && owner !== "") zone.cuts += (packed === "" ? 0 : 1) - (at < 0 ? 0 : 1);
  if (rest === "" && packed === "") {
    zone.sets.delete(owner);
    zone.spellings.delete(owner);
    leave(zone, owner);
    return;
  }
  if (spelling !== owner) zone.spellings.set(owner, spelling);
  else if (zone.spellings.size > 0) zone.spellings.delete(owner);
  if (before === "") enter(zone, owner);
  zone.sets.set(owner, rest + packed);
}

/** Counts a new owner at its parents, up to the first that existed before. Must be called before the owner has sets. */
function enter(zone: Zone, owner: string): void {
  let name = owner;
  let exists = zone.below.has(owner);
  while (name !== "" && !exists) {
    const parent = parentOf(name);
    exists = zone.sets.has(parent) || zone.below.has(parent);
    zone.below.set(parent, (zone.below.get(parent) ?? 0) + 1);
    name = parent;
  }
}

/** Removes an owner from the counts of its parents, up to the first that still exists. Must be called when the owner has no sets left. */
function leave(zone: Zone, owner: string): void {
  let name = owner;
  while (name !== "" && !zone.sets.has(name) && !zone.below.has(name)) {
    const parent = parentOf(name);
    const count = (zone.below.get(parent) ?? 0) - 1;
    if (count > 0) zone.below.set(parent, count);
    else zone.below.delete(parent);
    name = parent;
  }
}

/** The result of a lookup. `sets` is undefined if the name does not exist, and "" if it exists without data. */
export interface NamePosition {
  readonly sets: string | undefined;
  /** The delegated name at or above the queried name, relative to the zone. */
  readonly cut: string | null;
  readonly wildcard: boolean;
}

/**
 * Finds a relative name. It walks down from the apex, so that a delegation hides the names below it, and ends at the closest encloser,
 * whose `*` is the only applicable wildcard (RFC 1034 section 4.3.2, RFC 4592 section 3.3).
 */
export function locate(zone: Zone, relative: string): NamePosition {
  if (zone.cuts === 0) {
    const sets = zone.sets.get(relative);
    if (sets !== undefined) return { sets, cut: null, wildcard: false };
  }
  const starts = labelStarts(relative);
  let sets = zone.sets.get("");
  let encloser = "";
  for (let i = starts.length - 1; i >= 0; i--) {
    const name = relative.substring(starts[i] as number);
    sets = zone.sets.get(name);
    if (sets === undefined && !zone.below.has(name)) {
      const star = `\x01*${encloser}`;
      const wild = zone.sets.get(star) ?? (zone.below.has(star) ? "" : undefined);
      return { sets: wild, cut: null, wildcard: wild !== undefined };
    }
    if (sets !== undefined && zone.cuts > 0 && findSet(sets, TYPE.NS) >= 0) return { sets, cut: name, wildcard: false };
    encloser = name;
  }
  return { sets: sets ?? "", cut: null, wildcard: false };
}

/** Returns whether serial `a` is newer than `b` (RFC 1982). */
export function isNewer(a: number, b: number): boolean {
  return a !== b && (a - b) >>> 0 < 0x80000000;
}
