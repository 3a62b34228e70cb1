/**
 * Encodes zone changes as bytes for the server thread, which copies them into its tables. Copying object trees would take the main thread ten
 * times as long and the server a second pass.
 *
 * A change: u8 complete zone, name, u32 base, u32 serial, u32 group, u32 identity, u32 SOA ttl, u32 negative ttl, u16 + SOA rdata, u32
 * count, then sets.
 * A set: u8 + owner relative to the zone, u32 + packed set as in `zone.ts`; a packed set without records removes the set.
 */

import { runAtOnce } from "../../../base/turn.ts";
import type { RecordSet, Soa, ZoneChange } from "../interface.ts";
import { lowerCase, NAME_LIMIT, writeName } from "../wire/name.ts";
import { maxRdataSize, RDATA_LIMIT, writeFullName, writeRdata } from "../wire/rdata.ts";
import type { Size } from "./table.ts";
import { createZone, isNewer, putBytes, SET_HEADER, TYPE, type Zone } from "./zone.ts";
import type { Zones } from "./zones.ts";

const TTL_LIMIT = 0x7fffffff;
const FIRST_SIZE = 1 << 16;
/** A buffer that a huge zone has enlarged beyond this many bytes is released. */
const KEPT_SIZE = 1 << 20;
/** Sets that are encoded, and of a complete zone read, between two checks of the sockets. */
const STEP = 256;
/** Sets by which the size of a complete zone is estimated. */
const SAMPLE = 1024;

/** A buffer of encoded changes. */
export interface Batch {
  /** Adds all changes. Throws a RangeError or TypeError if one cannot be encoded, and then adds none. */
  add(changes: readonly ZoneChange[]): void;
  /** Does the same with yields. Until its end, nothing else is added or taken. */
  addInTurns(changes: readonly ZoneChange[]): Generator<void, void>;
  /** Returns the changes since the last call; the caller owns the bytes. */
  take(): ArrayBuffer;
}

/** Creates an empty buffer. */
export function createBatch(): Batch {
  let bytes = Buffer.allocUnsafeSlow(FIRST_SIZE);
  let end = 0;

  const reserve = (size: number): void => {
    if (end + size <= bytes.length) return;
    const wider = Buffer.allocUnsafeSlow(Math.max(bytes.length * 2, end + size));
    bytes.copy(wider, 0, 0, end);
    bytes = wider;
  };

  const addU32 = (value: number, what: string, limit = 0xffffffff): void => {
    if (!Number.isInteger(value) || value < 0 || value > limit)
      throw new RangeError(`${what} ${value} is not in 0-${limit}`);
    end = bytes.writeUInt32BE(value, end);
  };

  const addSoa = (soa: Soa, serial: number): void => {
    reserve(32 + soa.mname.length + soa.rname.length + 64);
    addU32(soa.ttl, "SOA ttl", TTL_LIMIT);
    addU32(Math.min(soa.ttl, soa.minimum), "SOA minimum", TTL_LIMIT);
    const size = end;
    end = writeFullName(bytes, end + 2, soa.mname);
    end = writeFullName(bytes, end, soa.rname);
    addU32(serial, "serial");
    addU32(soa.refresh, "SOA refresh");
    addU32(soa.retry, "SOA retry");
    addU32(soa.expire, "SOA expire");
    addU32(soa.minimum, "SOA minimum");
    bytes.writeUInt16BE(end - size - 2, size);
  };

  /** `size`: wire bytes of the zone's name without the final zero. */
  const addSet = (zone: string, size: number, set: RecordSet): void => {
    reserve(64 + set.owner.length);
    const owner = end;
    end = writeName(bytes, end + 1, ownerIn(zone, set.owner));
    const length = end - owner - 1;
    if (length + size + 1 > NAME_LIMIT) throw new RangeError(`name "${set.owner}" is longer than ${NAME_LIMIT} bytes`);
    bytes[owner] = length;
    const start = end + 4;
    end = bytes.writeUInt16BE(set.type.code, start);
    addU32(set.ttl, "ttl", TTL_LIMIT);
    end += 4;
    const records = end;
    if (set.type.code === TYPE.CNAME && set.data.length > 1) throw new RangeError("a name can have one CNAME only");
    for (const data of set.data) {
      reserve(64 + maxRdataSize(data));
      const rdata = end + 2;
      end = writeRdata(bytes, rdata, set.type, data);
      if (end - rdata > RDATA_LIMIT) throw new RangeError(`a record has more than ${RDATA_LIMIT} bytes`);
      bytes.writeUInt16BE(end - rdata, rdata - 2);
    }
    bytes.writeUInt32BE(end - records, records - 4);
    bytes.writeUInt32BE(end - start, start - 4);
  };

  function* addChange(change: ZoneChange): Generator<void, void> {
    reserve(64 + change.zone.length);
    bytes[end++] = change.base === null ? 1 : 0;
    const name = end++;
    end = writeName(bytes, end, change.zone);
    const size = end - name - 1;
    bytes[name] = size;
    addU32(change.base ?? 0, "base");
    addU32(change.serial, "serial");
    addU32(change.group ?? 0, "group");
    addU32(change.identity ?? 0, "identity");
    addSoa(change.soa, change.serial);
    reserve(8);
    addU32(change.sets.length, "count");
    for (const [index, set] of change.sets.entries()) {
      if (index % STEP === STEP - 1) yield;
      try {
        addSet(change.zone, size, set);
      } catch (error) {
        throw new RangeError(`${set.owner || "."} ${set.type.name}: ${(error as Error).message}`, { cause: error });
      }
    }
  }

  function* addInTurns(changes: readonly ZoneChange[]): Generator<void, void> {
    const start = end;
    try {
      for (const change of changes) yield* addChange(change);
    } catch (error) {
      end = start;
      throw error;
    }
  }

  return {
    add: (changes) => runAtOnce(addInTurns(changes)),
    addInTurns,
    take() {
      const taken = bytes.buffer.slice(0, end);
      end = 0;
      if (bytes.length > KEPT_SIZE) bytes = Buffer.allocUnsafeSlow(FIRST_SIZE);
      return taken;
    },
  };
}

function ownerIn(zone: string, owner: string): string {
  if (zone === "") return owner;
  const start = owner.length - zone.length;
  const isInside = owner.endsWith(zone) || owner.slice(start).toLowerCase() === zone.toLowerCase();
  if (start === 0 && isInside) return "";
  if (start < 2 || !isInside || owner.charCodeAt(start - 1) !== 46) throw new RangeError(`it is not in zone ${zone}`);
  return owner.slice(0, start - 1);
}

/**
 * Applies a batch in order and pushes the serial then served for each change. It yields often, so that queries are served in between, but
 * never inside an incremental change; a complete zone is built separately and then replaces the old one.
 */
export function* applyBatch(
  zones: Zones,
  batch: ArrayBuffer,
  served: number[],
  changed: (zone: Zone, before: Zone | undefined) => void = () => {},
): Generator<void, void> {
  const bytes = Buffer.from(batch);
  let at = 0;
  const nextU32 = (): number => {
    at += 4;
    return bytes.readUInt32BE(at - 4);
  };
  const nextString = (size: number): string => {
    at += size;
    return bytes.toString("latin1", at - size, at);
  };
  const nextSet = (zone: Zone): void => {
    const owner = at + 1;
    at = owner + (bytes[at] as number);
    const ownerEnd = at;
    const size = nextU32();
    const type = bytes.readUInt16BE(at);
    putBytes(zone, bytes, owner, ownerEnd, type, bytes, at, size === SET_HEADER ? at : at + size);
    at += size;
  };
  /** Returns the space for the next sets, by their first names if they are many. */
  const sizeOf = (count: number): Size => {
    const start = at;
    const read = Math.min(count, SAMPLE);
    for (let i = 0; i < read; i++) skipSet();
    const size = read === 0 ? 0 : ((at - start) / read) * count;
    at = start;
    return { names: count, bytes: Math.ceil(size) };
  };
  const skipSet = (): void => {
    at += 1 + (bytes[at] as number);
    const size = nextU32();
    at += size;
  };

  while (at < bytes.length) {
    const isComplete = bytes[at++] === 1;
    const name = lowerCase(nextString(bytes[at++] as number));
    const base = nextU32();
    const serial = nextU32();
    const group = nextU32();
    const identity = nextU32();
    const ttl = nextU32();
    const authority = { serial, ttl, negativeTtl: nextU32(), rdata: nextString(bytes.readUInt16BE((at += 2) - 2)) };
    const count = nextU32();
    const old = zones.get(name);
    const fits = isComplete
      ? old === undefined || isNewer(serial, old.authority.serial)
      : old?.authority.serial === base && isNewer(serial, base);
    if (!fits) {
      for (let i = 0; i < count; i++) skipSet();
      served.push(old?.authority.serial ?? 0);
    } else if (isComplete || old === undefined) {
      const counts = old?.counts ?? new Array<number>(16).fill(0);
      const size = sizeOf(count);
      const zone = createZone(name, authority, counts, { group, identity, seed: zones.seed, size });
      for (let i = 0; i < count; i++) {
        nextSet(zone);
        if (i % STEP === STEP - 1) yield;
      }
      zones.put(zone);
      served.push(serial);
      changed(zone, old);
    } else {
      old.generation++;
      old.authority = authority;
      for (let i = 0; i < count; i++) nextSet(old);
      served.push(serial);
      changed(old, old);
    }
    yield;
  }
}
