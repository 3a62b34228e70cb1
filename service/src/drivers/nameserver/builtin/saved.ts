/**
 * The file of saved zones: the bytes of all zones as `table.ts` keeps them, so that a start reads them instead of rendering every record
 * again. The index is not saved. A file that is incomplete, damaged or of another form counts as none.
 *
 * The file: the form, then frames of u32 size and that many bytes of JSON. The first frame is the mark of the caller. Each further one
 * describes a zone, and the bytes of its chunks follow. An empty frame ends the zones; the last 4 bytes are the CRC-32 of all before them.
 */
import { closeSync, fstatSync, openSync, readSync } from "node:fs";
import { type FileHandle, open, rename, rm } from "node:fs/promises";
import { endianness } from "node:os";
import { crc32 } from "node:zlib";
import { type Chunk, createChunk, restoreTable, type Snapshot, snapshotOf } from "./table.ts";
import type { Authority, Zone } from "./zone.ts";

/** The words of an entry have the byte order of the host. */
const FORM = Buffer.from(`brume zones 1 ${endianness()}\n`);
/** Bytes that are written or read at once. */
const PIECE = 1 << 18;
const CRC_SIZE = 4;

/** A zone without its entries. `chunks`: bytes of the memory of each chunk, and how many of them are used. */
interface Head extends Pick<Zone, "name" | "generation" | "owners" | "cuts" | "stars" | "group" | "identity"> {
  readonly authority: Authority;
  readonly chunks: readonly (readonly [size: number, end: number])[];
}

/** The contents of a file. */
export interface SavedZones {
  readonly mark: string;
  readonly zones: readonly Zone[];
}

function headOf(zone: Zone, { chunks }: Snapshot): Head {
  const { name, authority, generation, owners, cuts, stars, group, identity } = zone;
  const sizes = chunks.map(({ memory, end }) => [memory.byteLength, end] as const);
  return { name, authority, generation, owners, cuts, stars, group, identity, chunks: sizes };
}

/**
 * Writes the zones to the file, which replaces an earlier one when it is complete. Each zone has the contents of one moment; changes and
 * queries are served meanwhile. Rejects with the system's error.
 */
export async function saveZones(file: string, mark: string, zones: Iterable<Zone>): Promise<void> {
  const draft = `${file}.part`;
  const handle = await open(draft, "w", 0o600);
  try {
    const add = createOutput(handle);
    await add(FORM);
    await addFrame(add, JSON.stringify(mark));
    for (const zone of zones) {
      const snapshot = snapshotOf(zone.table, zone.generation);
      await addFrame(add, JSON.stringify(headOf(zone, snapshot)));
      for (const { memory, end } of snapshot.chunks) await add(Buffer.from(memory, 0, end));
    }
    await addFrame(add, "");
    await add(null);
    await handle.close();
    await rename(draft, file);
  } catch (error) {
    await handle.close().catch(() => {});
    await rm(draft, { force: true }).catch(() => {});
    throw error;
  }
}

type Add = (bytes: Buffer | null) => Promise<void> | undefined;

async function addFrame(add: Add, text: string): Promise<void> {
  const bytes = Buffer.from(text);
  const size = Buffer.alloc(4);
  size.writeUInt32BE(bytes.length);
  await add(size);
  await add(bytes);
}

/** Returns a function that writes bytes through a buffer, and for null the CRC of all. It copies them, because entries can change meanwhile. */
function createOutput(handle: FileHandle): Add {
  const buffer = Buffer.allocUnsafeSlow(PIECE);
  let used = 0;
  let crc = 0;
  const flush = async (): Promise<void> => {
    crc = crc32(buffer.subarray(0, used), crc);
    for (let at = 0; at < used; ) at += (await handle.write(buffer, at, used - at)).bytesWritten;
    used = 0;
  };
  const addLarge = async (bytes: Buffer): Promise<void> => {
    for (let at = 0; at < bytes.length; ) {
      const count = bytes.copy(buffer, used, at);
      used += count;
      at += count;
      if (used === PIECE) await flush();
    }
  };
  const end = async (): Promise<void> => {
    await flush();
    buffer.writeUInt32BE(crc);
    await handle.write(buffer, 0, CRC_SIZE);
  };
  return (bytes) => {
    if (bytes === null) return end();
    if (used + bytes.length >= PIECE) return addLarge(bytes);
    used += bytes.copy(buffer, used);
    return undefined;
  };
}

/** Reads a file as far as needed, through a buffer. */
interface Input {
  /** Returns the next bytes, valid until the next call. Throws if there are fewer. */
  take(size: number): Buffer;
  fill(bytes: Buffer): void;
  /** Returns whether the file ends here with the CRC of all before. */
  isWhole(): boolean;
}

function createInput(descriptor: number): Input {
  let left = fstatSync(descriptor).size - CRC_SIZE;
  let buffer = Buffer.alloc(0);
  let crc = 0;
  const read = (bytes: Buffer): void => {
    if (bytes.length > left) throw new RangeError("the file ends early");
    for (let at = 0; at < bytes.length; ) {
      const count = readSync(descriptor, bytes, at, bytes.length - at, null);
      if (count === 0) throw new RangeError("the file ends early");
      at += count;
    }
    left -= bytes.length;
    crc = crc32(bytes, crc);
  };
  return {
    take(size) {
      if (buffer.length < size) {
        const missing = size - buffer.length;
        const more = Buffer.allocUnsafeSlow(Math.min(Math.max(missing, PIECE), Math.max(left, missing)));
        read(more);
        buffer = Buffer.concat([buffer, more]);
      }
      const taken = buffer.subarray(0, size);
      buffer = buffer.subarray(size);
      return taken;
    },
    fill(bytes) {
      const ready = buffer.copy(bytes);
      buffer = buffer.subarray(ready);
      if (ready < bytes.length) read(bytes.subarray(ready));
    },
    isWhole() {
      const end = Buffer.alloc(CRC_SIZE);
      if (left !== 0 || buffer.length > 0 || readSync(descriptor, end, 0, CRC_SIZE, null) !== CRC_SIZE) return false;
      return end.readUInt32BE() === crc;
    },
  };
}

/** Reads the zones of the file; `seed` as for `createTable`. Returns null if there is no valid file. Yields often. */
export function* restoreZones(file: string, seed: number): Generator<void, SavedZones | null> {
  let descriptor: number;
  try {
    descriptor = openSync(file, "r");
  } catch {
    return null;
  }
  try {
    const input = createInput(descriptor);
    const frame = (): unknown => {
      const size = input.take(4).readUInt32BE();
      return size === 0 ? null : JSON.parse(input.take(size).toString());
    };
    if (!input.take(FORM.length).equals(FORM)) return null;
    const mark = frame() as string;
    const zones: Zone[] = [];
    for (let head = frame() as Head | null; head !== null; head = frame() as Head | null)
      zones.push(yield* restoreZone(head, seed, input));
    return input.isWhole() ? { mark, zones } : null;
  } catch {
    // Damaged contents lead to all kinds of errors.
    return null;
  } finally {
    closeSync(descriptor);
  }
}

function* restoreZone({ chunks, ...head }: Head, seed: number, input: Input): Generator<void, Zone> {
  let index = 0;
  const next = (): Chunk | null => {
    const place = chunks[index++];
    if (place === undefined) return null;
    const [size, end] = place;
    const chunk = createChunk(size);
    chunk.end = end;
    input.fill(chunk.bytes.subarray(0, end));
    return chunk;
  };
  const table = yield* restoreTable(seed, head.owners, head.generation, next);
  return { ...head, table, counts: new Array<number>(16).fill(0) };
}
