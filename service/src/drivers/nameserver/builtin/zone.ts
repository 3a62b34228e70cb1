/**
 * Zones in memory, made for two things: finding a name in a few Map look-ups, and replacing one record set without touching
 * the rest. A name's sets stand in one string, one character per byte, because strings cost 16 bytes beside their content and
 * hold no pointers: a million records stay small and the collector has little to walk.
 */
import { labelStarts, lowerCase, parentOf } from "../wire/name.ts";

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

/** A packed set is type u16, ttl u32, size u32, then `size` bytes of records, each u16 length and rdata. */
export const SET_HEADER = 10;

/** The start of authority; `rdata` already holds the serial. `negativeTtl` is the one of RFC 2308 section 3. */
export interface Authority {
  readonly serial: number;
  readonly ttl: number;
  readonly negativeTtl: number;
  readonly rdata: string;
}

export interface Zone {
  readonly name: string;
  authority: Authority;
  /** Grows with each change, so that a cached answer knows in one comparison whether it still holds. */
  generation: number;
  /** Packed sets by owner, relative to the zone; the apex is "". */
  readonly sets: Map<string, string>;
  /** Spellings of the owners that have upper-case letters, by owner: what is sent where `sets` knows only lower case. */
  readonly spellings: Map<string, string>;
  /** How many names stand one label below a name: what makes an empty non-terminal exist (RFC 4592 section 2.2.2). */
  readonly below: Map<string, number>;
  /** Names below the apex that own NS records. Zero for almost every zone, and then nobody looks for them. */
  cuts: number;
  /** Whose it is, and which of the zones that had this name one after the other. */
  readonly group: number;
  readonly identity: number;
  /** Answers by rcode; an image that replaces a zone takes them over. */
  readonly counts: number[];
}

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

/** Where the packed set of this type starts in a name's sets, or -1. */
export function findSet(sets: string, type: number): number {
  for (let at = 0; at < sets.length; at += SET_HEADER + u32(sets, at + 6)) if (u16(sets, at) === type) return at;
  return -1;
}

/** The absolute name of an owner as it was published, letter case included. */
export function spelled(zone: Zone, owner: string): string {
  return (zone.spellings.size === 0 ? owner : (zone.spellings.get(owner) ?? owner)) + zone.name;
}

/**
 * Replaces the set of this owner and type by a packed set; "" removes it. The spelling of the last set put counts for all of the
 * owner's. Cost grows with the name's own sets only.
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

/** Counts a new owner in at its parents, up to the first that existed before. To be called before the owner has sets. */
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

/** Counts an owner out again, up to the first parent that exists without it. To be called when the owner has no sets left. */
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

/** What a zone has for a name. `sets` is undefined where the name does not exist and "" where it exists without data. */
export interface NamePosition {
  readonly sets: string | undefined;
  /** The delegated name at or above the name asked for, relative to the zone. */
  readonly cut: string | null;
  readonly wildcard: boolean;
}

/**
 * Finds a relative name: downwards from the apex, so that a cut hides what is below it and the walk ends at the closest
 * encloser, whose `*` alone may stand in for the name (RFC 1034 section 4.3.2, RFC 4592 section 3.3).
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

/** Whether serial `a` comes after `b` (RFC 1982). */
export function isNewer(a: number, b: number): boolean {
  return a !== b && (a - b) >>> 0 < 0x80000000;
}
