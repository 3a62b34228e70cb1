/**
 * The names of one zone with their packed sets, as bytes outside of the JavaScript heap: a million names cost 50 MB, the garbage collector
 * never reads them, a packet is looked up without a string, and another thread can read them. Entries are appended to chunks and are not
 * changed afterwards: a changed name gets a new entry, and the old one is marked with the generation that removed it. So the chunks at one
 * moment are a copy of the zone that costs nothing (`snapshotOf`). An index of small hash tables finds entries; no step is large.
 *
 * An entry starts at a multiple of 4 bytes: u32 generation that removed it (0: none), u32 names one label below, u32 bytes of sets, u8
 * bytes of the owner, the owner as published, the sets.
 */
import { LOWER } from "../wire/name.ts";

/** Bytes of a chunk. A smaller chunk is the only one of a small zone. */
const CHUNK = 1 << 18;
const FIRST_CHUNK = 512;
/** From this size a chunk can be read by another thread. */
const SHARED_FROM = 1 << 16;
const ENTRY = 13;
/** Bits of an address below the number of the chunk: multiples of 4 bytes in it. */
const OFFSET_BITS = 16;
/** Slots of a segment of the index. A full one is split into two. */
const SEGMENT = 1 << 13;
const FIRST_SEGMENT = 8;
/** Expected names for which a segment is prepared: it then has space for those that differ from the average. */
const NAMES_PER_SEGMENT = 5000;
const DEPTH_LIMIT = 14;

/** A piece of memory with entries one after the other. */
export interface Chunk {
  readonly bytes: Buffer;
  readonly words: Int32Array;
  end: number;
  /** Bytes of removed entries. */
  garbage: number;
}

/** A hash table with linear probing; a slot is a hash and an address, 0 for none. */
interface Segment {
  slots: Int32Array;
  used: number;
  /** Number of leading bits that the hashes have in common. */
  readonly depth: number;
}

/** Names and their sets. Names are in the form of `wire/name.ts`, relative to the zone, as bytes. */
export interface Table {
  readonly seed: number;
  readonly chunks: (Chunk | undefined)[];
  /** Number of the chunk that grows. */
  tail: number;
  /** Segments by the first `depth` bits of a hash (extendible hashing). */
  directory: Segment[];
  depth: number;
}

/** Expected contents of a table: names, and bytes of all owners and sets. */
export interface Size {
  readonly names: number;
  readonly bytes: number;
}

/**
 * Creates an empty table for the expected contents. `seed` is a random number that prevents clients from choosing names with equal hashes.
 */
export function createTable(seed: number, { names, bytes }: Size = { names: 0, bytes: 0 }): Table {
  let slots = FIRST_SEGMENT;
  while (slots < SEGMENT && slots * 3 < names * 4) slots *= 2;
  let depth = 0;
  while (depth < DEPTH_LIMIT && names > NAMES_PER_SEGMENT << depth) depth++;
  const directory = Array.from({ length: 1 << depth }, () => ({ slots: new Int32Array(2 * slots), used: 0, depth }));
  // Each entry has a header and is rounded up.
  const chunk = createChunk(Math.min(CHUNK, Math.max(FIRST_CHUNK, (bytes + names * (ENTRY + 3) + 3) & ~3)));
  return { seed: seed | 0, chunks: [chunk], tail: 0, directory, depth };
}

/** Creates an empty chunk of this many bytes. */
export function createChunk(size: number): Chunk {
  const memory = size < SHARED_FROM ? new ArrayBuffer(size) : new SharedArrayBuffer(size);
  return { bytes: Buffer.from(memory), words: new Int32Array(memory), end: 0, garbage: 0 };
}

/** Continues a hash with the bytes before those already included, so that one pass yields the hashes of a name and of all its parents. */
export function hashOn(hash: number, bytes: Uint8Array, from: number, to: number): number {
  let next = hash;
  for (let at = to - 1; at >= from; at--) next = Math.imul(next ^ (LOWER[bytes[at] as number] as number), 0x01000193);
  return next;
}

/** Ends a hash: all its bits depend on all bytes. */
export function hashEnd(hash: number): number {
  let end = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  end = Math.imul(end ^ (end >>> 13), 0xc2b2ae35);
  return end ^ (end >>> 16);
}

const chunkAt = (table: Table, address: number): Chunk => table.chunks[(address - 1) >>> OFFSET_BITS] as Chunk;
const offsetOf = (address: number): number => ((address - 1) & ((1 << OFFSET_BITS) - 1)) << 2;
const sizeOf = (owner: number, sets: number): number => (ENTRY + owner + sets + 3) & ~3;
const segmentOf = (table: Table, hash: number): Segment =>
  table.directory[table.depth === 0 ? 0 : hash >>> (32 - table.depth)] as Segment;

/** The bytes that contain an entry. */
export const bytesOf = (table: Table, address: number): Buffer => chunkAt(table, address).bytes;
/** Returns the offset of the owner's name, of an entry. */
export const ownerStart = (address: number): number => offsetOf(address) + ENTRY;
export const ownerEnd = (table: Table, address: number): number =>
  offsetOf(address) + ENTRY + (bytesOf(table, address)[offsetOf(address) + ENTRY - 1] as number);
/** Bytes of the sets of an entry; they start at `ownerEnd`. */
export const setsSize = (table: Table, address: number): number =>
  chunkAt(table, address).words[(offsetOf(address) >> 2) + 2] as number;
/** Returns how many names are below the owner. */
export const below = (table: Table, address: number): number =>
  chunkAt(table, address).words[(offsetOf(address) >> 2) + 1] as number;
export function setBelow(table: Table, address: number, count: number): void {
  chunkAt(table, address).words[(offsetOf(address) >> 2) + 1] = count;
}

/** Returns the address of the name at `from` to `to` of `key`, or of `*` below it if `isStar`; 0: there is none. `hash` is ended. */
export function find(table: Table, key: Uint8Array, from: number, to: number, hash: number, isStar = false): number {
  const { slots } = segmentOf(table, hash);
  const mask = (slots.length >> 1) - 1;
  for (let i = hash & mask; ; i = (i + 1) & mask) {
    const address = slots[2 * i + 1] as number;
    if (address === 0 || (slots[2 * i] === hash && isOwner(table, address, key, from, to, isStar))) return address;
  }
}

function isOwner(table: Table, address: number, key: Uint8Array, from: number, to: number, isStar: boolean): boolean {
  const { bytes } = chunkAt(table, address);
  let at = ownerStart(address);
  if (bytes[at - 1] !== to - from + (isStar ? 2 : 0)) return false;
  if (isStar && (bytes[at++] !== 1 || bytes[at++] !== 42)) return false;
  for (let i = from; i < to; i++, at++)
    if (bytes[at] !== key[i] && LOWER[bytes[at] as number] !== LOWER[key[i] as number]) return false;
  return true;
}

/** Prepares the space of the next entry. Returns whether that has moved entries: their addresses are then invalid. */
export function reserve(table: Table, owner: number, sets: number): boolean {
  const size = sizeOf(owner, sets);
  const last = table.chunks[table.tail] as Chunk;
  if (size > CHUNK || last.end + size <= last.bytes.length) return false;
  const live = last.end - last.garbage;
  const isSmall = last.bytes.length < CHUNK;
  const moves = live + size <= CHUNK && (isSmall || live < last.garbage);
  let wanted = FIRST_CHUNK;
  while (isSmall && wanted < 2 * (live + size)) wanted *= 2;
  const before = table.tail;
  table.tail = place(table, createChunk(isSmall && moves ? Math.min(wanted, CHUNK) : CHUNK));
  if (moves) empty(table, before);
  return moves;
}

/** Adds a chunk and returns its number. */
function place(table: Table, chunk: Chunk): number {
  const free = table.chunks.indexOf(undefined);
  const number = free < 0 ? table.chunks.length : free;
  table.chunks[number] = chunk;
  return number;
}

/** Moves the entries of a chunk to the end of the table and releases it. A snapshot that contains the chunk keeps it. */
function empty(table: Table, number: number): void {
  const { bytes, words, end } = table.chunks[number] as Chunk;
  table.chunks[number] = undefined;
  for (let at = 0; at < end; ) {
    const owner = bytes[at + ENTRY - 1] as number;
    const size = sizeOf(owner, words[(at >> 2) + 2] as number);
    if (words[at >> 2] === 0) {
      reserve(table, owner, words[(at >> 2) + 2] as number);
      const chunk = table.chunks[table.tail] as Chunk;
      const hash = hashEnd(hashOn(table.seed, bytes, at + ENTRY, at + ENTRY + owner));
      bytes.copy(chunk.bytes, chunk.end, at, at + size);
      relink(table, hash, addressOf(number, at), addressOf(table.tail, chunk.end));
      chunk.end += size;
    }
    at += size;
  }
}

const addressOf = (chunk: number, offset: number): number => 1 + ((chunk << OFFSET_BITS) | (offset >> 2));

/** Appends an entry after `reserve`, without its sets, and returns its address. It replaces the entry at `old`, 0 for none. */
export function append(
  table: Table,
  key: Uint8Array,
  from: number,
  to: number,
  hash: number,
  sets: number,
  old: number,
): number {
  const owner = to - from;
  const size = sizeOf(owner, sets);
  // An entry beyond the size of a chunk gets its own, which never grows.
  const number = size > CHUNK ? place(table, createChunk(size)) : table.tail;
  const chunk = table.chunks[number] as Chunk;
  const at = chunk.end;
  chunk.end += size;
  chunk.words[at >> 2] = 0;
  chunk.words[(at >> 2) + 1] = old === 0 ? 0 : below(table, old);
  chunk.words[(at >> 2) + 2] = sets;
  chunk.bytes[at + ENTRY - 1] = owner;
  for (let i = 0; i < owner; i++) chunk.bytes[at + ENTRY + i] = key[from + i] as number;
  const address = addressOf(number, at);
  if (old === 0) link(table, hash, address);
  else relink(table, hash, old, address);
  return address;
}

/** Marks an entry that is no longer in the index. It may move other entries. */
export function discard(table: Table, address: number, generation: number): void {
  const chunk = chunkAt(table, address);
  const at = offsetOf(address);
  const number = (address - 1) >>> OFFSET_BITS;
  chunk.garbage += sizeOf(chunk.bytes[at + ENTRY - 1] as number, chunk.words[(at >> 2) + 2] as number);
  Atomics.store(chunk.words, at >> 2, generation);
  if (number !== table.tail && chunk.garbage > chunk.end >> 1) empty(table, number);
}

function link(table: Table, hash: number, address: number): void {
  let segment = segmentOf(table, hash);
  while ((segment.used + 1) * 4 > (segment.slots.length >> 1) * 3) {
    widen(table, segment, hash);
    segment = segmentOf(table, hash);
  }
  insert(segment, hash, address);
}

function insert(segment: Segment, hash: number, address: number): void {
  const { slots } = segment;
  const mask = (slots.length >> 1) - 1;
  let i = hash & mask;
  while (slots[2 * i + 1] !== 0) i = (i + 1) & mask;
  slots[2 * i] = hash;
  slots[2 * i + 1] = address;
  segment.used++;
}

/** Doubles a segment or splits it into two. */
function widen(table: Table, segment: Segment, hash: number): void {
  const { slots, depth } = segment;
  if (slots.length < 2 * SEGMENT || depth === DEPTH_LIMIT) {
    segment.slots = new Int32Array(2 * slots.length);
    segment.used = 0;
    for (let i = 0; i < slots.length; i += 2)
      if (slots[i + 1] !== 0) insert(segment, slots[i] as number, slots[i + 1] as number);
    return;
  }
  if (depth === table.depth) {
    table.directory = table.directory.flatMap((one) => [one, one]);
    table.depth++;
  }
  const halves = [0, 1].map(() => ({ slots: new Int32Array(2 * SEGMENT), used: 0, depth: depth + 1 }));
  for (let i = 0; i < slots.length; i += 2) {
    const half = halves[((slots[i] as number) >>> (31 - depth)) & 1] as Segment;
    if (slots[i + 1] !== 0) insert(half, slots[i] as number, slots[i + 1] as number);
  }
  const span = 1 << (table.depth - depth);
  const first = (hash >>> (32 - table.depth)) & ~(span - 1);
  for (let i = 0; i < span; i++) table.directory[first + i] = halves[i < span >> 1 ? 0 : 1] as Segment;
}

function slotOf({ slots }: Segment, hash: number, address: number): number {
  const mask = (slots.length >> 1) - 1;
  let i = hash & mask;
  while (slots[2 * i + 1] !== address) i = (i + 1) & mask;
  return i;
}

function relink(table: Table, hash: number, old: number, address: number): void {
  const segment = segmentOf(table, hash);
  segment.slots[2 * slotOf(segment, hash, old) + 1] = address;
}

/** Removes an entry from the index. */
export function unlink(table: Table, hash: number, address: number): void {
  const segment = segmentOf(table, hash);
  const { slots } = segment;
  const mask = (slots.length >> 1) - 1;
  let hole = slotOf(segment, hash, address);
  // Later entries of the same run move up, so that no search ends before them.
  for (let i = (hole + 1) & mask; slots[2 * i + 1] !== 0; i = (i + 1) & mask) {
    if (((i - (slots[2 * i] as number)) & mask) < ((i - hole) & mask)) continue;
    slots[2 * hole] = slots[2 * i] as number;
    slots[2 * hole + 1] = slots[2 * i + 1] as number;
    hole = i;
  }
  slots[2 * hole + 1] = 0;
  segment.used--;
}

/** The entries of a table at one generation. It may be passed to another thread if all chunks are large. */
export interface Snapshot {
  readonly generation: number;
  readonly chunks: readonly { readonly memory: ArrayBufferLike; readonly end: number }[];
}

/** Returns the entries at this generation, which later changes do not affect. The cost is that of a list of the chunks. */
export function snapshotOf(table: Table, generation: number): Snapshot {
  const growing = table.chunks[table.tail];
  const others = table.chunks.filter((chunk) => chunk !== growing);
  const chunks = [...others, growing].flatMap((chunk) =>
    chunk === undefined ? [] : [{ memory: chunk.bytes.buffer, end: chunk.end }],
  );
  return { generation, chunks };
}

/** Entries that are entered into the index between two yields. */
const STEP = 2048;

/**
 * Creates a table from the chunks of a snapshot at `generation`, the growing one last. `next` creates the memory of each with `createChunk`
 * and fills it; null: there are no more. Yields often.
 */
export function* restoreTable(
  seed: number,
  names: number,
  generation: number,
  next: () => Chunk | null,
): Generator<void, Table> {
  const table = createTable(seed, { names, bytes: 0 });
  table.chunks.length = 0;
  for (let chunk = next(); chunk !== null; chunk = next()) {
    table.tail = table.chunks.push(chunk) - 1;
    yield* eachEntry(chunk, (at, owner, size) => {
      const { words, bytes } = chunk;
      const removed = words[at >> 2] as number;
      // A name that was removed after the snapshot is part of it.
      if (removed !== 0 && removed <= generation) {
        chunk.garbage += size;
        return;
      }
      words[at >> 2] = 0;
      words[(at >> 2) + 1] = 0;
      link(table, hashEnd(hashOn(seed, bytes, at + ENTRY, at + ENTRY + owner)), addressOf(table.tail, at));
    });
  }
  for (const chunk of table.chunks as Chunk[])
    yield* eachEntry(chunk, (at, owner) => {
      const { words, bytes } = chunk;
      if (owner === 0 || words[at >> 2] !== 0) return;
      const [from, to] = [at + ENTRY + 1 + (bytes[at + ENTRY] as number), at + ENTRY + owner];
      const parent = find(table, bytes, from, to, hashEnd(hashOn(seed, bytes, from, to)));
      if (parent === 0) throw new RangeError("a saved name has no parent");
      setBelow(table, parent, below(table, parent) + 1);
    });
  return table;
}

function* eachEntry(
  { words, bytes, end }: Chunk,
  act: (at: number, owner: number, size: number) => void,
): Generator<void, void> {
  let count = 0;
  for (let at = 0; at < end; ) {
    const owner = bytes[at + ENTRY - 1] as number;
    const size = sizeOf(owner, words[(at >> 2) + 2] as number);
    act(at, owner, size);
    at += size;
    if (++count % STEP === 0) yield;
  }
}

/** Yields the names that have sets, as published, and these sets. */
export function* entriesOf({ generation, chunks }: Snapshot): Generator<readonly [owner: string, sets: string], void> {
  for (const { memory, end } of chunks) {
    const bytes = Buffer.from(memory);
    const words = new Int32Array(memory);
    for (let at = 0; at < end; ) {
      const removed = Atomics.load(words, at >> 2);
      const start = at + ENTRY + (bytes[at + ENTRY - 1] as number);
      const size = words[(at >> 2) + 2] as number;
      if (size > 0 && (removed === 0 || removed > generation))
        yield [bytes.toString("latin1", at + ENTRY, start), bytes.toString("latin1", start, start + size)];
      at += sizeOf(start - at - ENTRY, size);
    }
  }
}
