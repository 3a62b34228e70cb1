/**
 * Zones in memory, designed for two operations: finding the name of a packet without creating a string, and replacing one record set
 * without touching the rest. The sets of a name are packed as bytes in `table.ts`. A name that has no sets but names below it has an entry
 * too (empty non-terminal, RFC 4592 section 2.2.2).
 */
import {
  append,
  below,
  bytesOf,
  createTable,
  discard,
  find,
  hashEnd,
  hashOn,
  ownerEnd,
  ownerStart,
  reserve,
  type Size,
  setBelow,
  setsSize,
  type Table,
  unlink,
} from "./table.ts";

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
  readonly table: Table;
  /** Number of names that have sets. */
  owners: number;
  /** Number of names below the apex with NS records. While it is zero, lookups skip the search for delegations. */
  cuts: number;
  /** Number of wildcards. While it is zero, lookups of missing names skip the search for them. */
  stars: number;
  /** See `ZoneChange`. */
  readonly group: number;
  readonly identity: number;
  /** Responses by response code; a complete zone that replaces this one takes them over. */
  readonly counts: number[];
}

/** Options of `createZone`; see `ZoneChange` and `createTable`. */
export interface ZoneOptions {
  readonly group?: number;
  readonly identity?: number;
  readonly seed?: number;
  readonly size?: Size;
}

/** Creates a zone without records. */
export function createZone(name: string, authority: Authority, counts: number[], options: ZoneOptions = {}): Zone {
  const { group = 0, identity = 0, seed = 0 } = options;
  const table = createTable(seed, options.size);
  return { name, authority, generation: 1, table, owners: 0, cuts: 0, stars: 0, group, identity, counts };
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

/** Returns the position of the packed set of this type in the sets from `start` to `end`, or -1. */
export function findSetIn(bytes: Uint8Array, start: number, end: number, type: number): number {
  for (let at = start; at < end; at += SET_HEADER + sizeAt(bytes, at + 6))
    if ((((bytes[at] as number) << 8) | (bytes[at + 1] as number)) === type) return at;
  return -1;
}

/** Reads 32 bits. A size is below 2^31. */
export function sizeAt(bytes: Uint8Array, at: number): number {
  return (
    ((bytes[at] as number) << 24) |
    ((bytes[at + 1] as number) << 16) |
    ((bytes[at + 2] as number) << 8) |
    (bytes[at + 3] as number)
  );
}

const hashOf = (zone: Zone, name: Uint8Array, from: number, to: number): number =>
  hashEnd(hashOn(zone.table.seed, name, from, to));

const toBytes = (text: string): Buffer => Buffer.from(text, "latin1");

/** Returns the sets of a relative name and the absolute name as published; undefined: the name has no sets. */
export function entryOf(zone: Zone, relative: string): { readonly owner: string; readonly sets: string } | undefined {
  const name = toBytes(relative);
  const address = find(zone.table, name, 0, name.length, hashOf(zone, name, 0, name.length));
  if (address === 0 || setsSize(zone.table, address) === 0) return undefined;
  return { owner: ownerAt(zone, address), sets: setsAt(zone, address) };
}

function setsAt({ table }: Zone, address: number): string {
  const start = ownerEnd(table, address);
  return bytesOf(table, address).toString("latin1", start, start + setsSize(table, address));
}

/** Returns the absolute name of an entry as published, with its letter case. */
const ownerAt = ({ name, table }: Zone, address: number): string =>
  bytesOf(table, address).toString("latin1", ownerStart(address), ownerEnd(table, address)) + name;

/** Replaces the set of this owner and type by a packed set; "" removes it. See `putBytes`. */
export function putSet(zone: Zone, spelling: string, type: number, packed: string): void {
  const [owner, set] = [toBytes(spelling), toBytes(packed)];
  putBytes(zone, owner, 0, owner.length, type, set, 0, set.length);
}

/**
 * Replaces the set of the owner at `from` to `to` and of this type by the packed set at `start` to `end`; an empty one removes it. The last
 * spelling applies to all sets of the owner. The cost depends only on the size of the owner's own sets.
 */
export function putBytes(
  zone: Zone,
  owner: Uint8Array,
  from: number,
  to: number,
  type: number,
  packed: Uint8Array,
  start: number,
  end: number,
): void {
  const { table } = zone;
  const hash = hashOf(zone, owner, from, to);
  let old = find(table, owner, from, to, hash);
  const had = old === 0 ? 0 : setsSize(table, old);
  let [cut, next] = [had, had];
  if (had > 0) {
    const bytes = bytesOf(table, old);
    const first = ownerEnd(table, old);
    const at = findSetIn(bytes, first, first + had, type);
    if (at >= 0) [cut, next] = [at - first, at - first + SET_HEADER + sizeAt(bytes, at + 6)];
  }
  if (cut === next && start === end) return;
  if (type === TYPE.NS && to > from) zone.cuts += (start === end ? 0 : 1) - (cut === next ? 0 : 1);
  const size = cut + (had - next) + (end - start);
  zone.owners += (size > 0 ? 1 : 0) - (had > 0 ? 1 : 0);
  if (size === 0 && below(table, old) === 0) return remove(zone, owner, from, to);
  if (reserve(table, to - from, size) && old !== 0) old = find(table, owner, from, to, hash);
  const address = append(table, owner, from, to, hash, size, old);
  const bytes = bytesOf(table, address);
  let at = ownerEnd(table, address);
  if (had > 0) {
    const before = bytesOf(table, old);
    const first = ownerEnd(table, old);
    for (let i = 0; i < had; i++) if (i < cut || i >= next) bytes[at++] = before[first + i] as number;
  }
  for (let i = start; i < end; i++) bytes[at++] = packed[i] as number;
  if (old === 0) enter(zone, owner, from, to);
  else discard(table, old, zone.generation);
}

const isStar = (owner: Uint8Array, from: number): boolean => owner[from] === 1 && owner[from + 1] === 42;

/** Counts a new name at its parents, up to the first that existed before; each that did not gets an entry. */
function enter(zone: Zone, owner: Uint8Array, from: number, to: number): void {
  const { table } = zone;
  for (let at = from; at < to; ) {
    if (isStar(owner, at)) zone.stars++;
    at += 1 + (owner[at] as number);
    const hash = hashOf(zone, owner, at, to);
    const parent = find(table, owner, at, to, hash);
    if (parent !== 0) return setBelow(table, parent, below(table, parent) + 1);
    reserve(table, to - at, 0);
    setBelow(table, append(table, owner, at, to, hash, 0, 0), 1);
  }
}

/** Removes a name, and its parents up to the first that still exists. */
function remove(zone: Zone, owner: Uint8Array, from: number, to: number): void {
  const { table } = zone;
  for (let at = from; ; at += 1 + (owner[at] as number)) {
    const hash = hashOf(zone, owner, at, to);
    const address = find(table, owner, at, to, hash);
    if (at > from) {
      const count = below(table, address) - 1;
      setBelow(table, address, count);
      if (count > 0 || setsSize(table, address) > 0) return;
    }
    unlink(table, hash, address);
    discard(table, address, zone.generation);
    if (at === to) return;
    if (isStar(owner, at)) zone.stars--;
  }
}

/** The result of a lookup in bytes; reused for one lookup after the other. */
export interface NamePlace {
  /** Whether the name exists, also without data. */
  exists: boolean;
  /** The entry with its sets; 0: none. */
  address: number;
  /** Position of the delegated name at or above the queried name; -1: none. */
  cut: number;
  wildcard: boolean;
}

/**
 * Finds the relative name at `from` to `to`. It walks down from the apex, so that a delegation hides the names below it, and ends at the
 * closest encloser, whose `*` is the only applicable wildcard (RFC 1034 section 4.3.2, RFC 4592 section 3.3).
 */
export function seek(zone: Zone, name: Uint8Array, from: number, to: number, place: NamePlace): void {
  const { table } = zone;
  place.cut = -1;
  place.wildcard = false;
  if (zone.cuts === 0 || from === to) {
    place.address = find(table, name, from, to, hashOf(zone, name, from, to));
    place.exists = place.address !== 0 || from === to;
    if (place.exists || zone.stars === 0) return;
  }
  let depth = 0;
  for (let at = from; at < to; at += 1 + (name[at] as number)) depth++;
  let hash = table.seed;
  let encloser = to;
  for (; depth > 0; depth--) {
    let start = from;
    for (let label = 1; label < depth; label++) start += 1 + (name[start] as number);
    const above = hash;
    hash = hashOn(hash, name, start, encloser);
    place.address = find(table, name, start, to, hashEnd(hash));
    if (place.address === 0) {
      const star = Math.imul(Math.imul(above ^ 42, 0x01000193) ^ 1, 0x01000193);
      place.address = zone.stars === 0 ? 0 : find(table, name, encloser, to, hashEnd(star), true);
      place.wildcard = place.address !== 0;
      place.exists = place.wildcard;
      return;
    }
    encloser = start;
    if (zone.cuts > 0 && hasNs(table, place.address)) {
      place.cut = start;
      break;
    }
  }
  place.exists = true;
}

function hasNs(table: Table, address: number): boolean {
  const start = ownerEnd(table, address);
  return findSetIn(bytesOf(table, address), start, start + setsSize(table, address), TYPE.NS) >= 0;
}

/** The result of a lookup. `sets` is undefined if the name does not exist, and "" if it exists without data. */
export interface NamePosition {
  readonly sets: string | undefined;
  /** The absolute name of the sets as published. */
  readonly owner: string;
  /** The delegated name at or above the queried name, relative to the zone. */
  readonly cut: string | null;
  readonly wildcard: boolean;
}

/** Finds a relative name as `seek` does. */
export function locate(zone: Zone, relative: string): NamePosition {
  const name = toBytes(relative);
  const place = { exists: false, address: 0, cut: -1, wildcard: false };
  seek(zone, name, 0, name.length, place);
  const { exists, address, cut, wildcard } = place;
  const sets = address === 0 ? "" : setsAt(zone, address);
  const owner = address === 0 ? relative + zone.name : ownerAt(zone, address);
  return { sets: exists ? sets : undefined, owner, cut: cut < 0 ? null : relative.substring(cut), wildcard };
}

/** Returns whether serial `a` is newer than `b` (RFC 1982). */
export function isNewer(a: number, b: number): boolean {
  return a !== b && (a - b) >>> 0 < 0x80000000;
}
