/**
 * Reads queries and writes responses (RFC 1035 section 4), for each packet that the name server receives, so without objects per record.
 * Reading validates every offset and skips unused records. Writing compresses names and copies header and question from the query, so that
 * the question keeps its letter case. `dns/model/wire.ts` is the codec of the client: it writes queries and decodes complete responses.
 */
import { SET_HEADER, TYPE, u16, u32 } from "../builtin/zone.ts";
import { LOWER, labelStarts, lowerCase, NAME_LIMIT, parentOf } from "./name.ts";
import { RDATA_LIMIT } from "./rdata.ts";

/** Response codes (RFC 6895 section 2.3). */
export const RCODE = {
  NOERROR: 0,
  FORMERR: 1,
  SERVFAIL: 2,
  NXDOMAIN: 3,
  NOTIMP: 4,
  REFUSED: 5,
  NOTAUTH: 9,
  BADVERS: 16,
} as const;
export const OPCODE = { QUERY: 0, NOTIFY: 4 } as const;
export const CLASS_IN = 1;
/** Header size (RFC 1035 section 4.1.1). */
export const HEADER = 12;
/** Maximum size of a UDP message, received or sent; it passes every path without fragments. */
export const UDP_SIZE = 1232;
/** Maximum size of a UDP response for a resolver without EDNS (RFC 1035 section 4.2.1). */
export const PLAIN_SIZE = 512;
/** Maximum size of a message over TCP: its length has two bytes. */
export const TCP_SIZE = 0xffff;
/** Size of the OPT record without options (RFC 6891 section 6.1.2). */
export const OPT_SIZE = 11;
const RECORD_HEADER = 10;
const POINTER_LIMIT = 0x3fff;

/** Header, question and OPT record of a parsed query. Names stay in the packet. */
export interface Query {
  /** Offset of the first byte after the question, which is a name without compression. */
  readonly end: number;
  /** Hash of the name in lower case. */
  readonly hash: number;
  readonly type: number;
  readonly class: number;
  readonly edns: boolean;
  readonly version: number;
  /** The OPT record is malformed (RFC 6891 sections 6.1.1, 6.1.2 and 7); its fields are not used. */
  readonly ednsBroken: boolean;
  /** The DO bit. */
  readonly dnssec: boolean;
  /** Maximum UDP message that the client accepts, in bytes. */
  readonly size: number;
  /** Offset of the TSIG record; 0: none. */
  readonly tsig: number;
  /** Serial of the SOA in the authority section, which is the serial of an IXFR client (RFC 1995 section 3); null: none. */
  readonly serial: number | null;
}

function word(packet: Uint8Array, at: number): number {
  return ((packet[at] as number) << 8) | (packet[at + 1] as number);
}

/** Returns the offset after a name that may be compressed, or -1 if it does not end inside the packet. */
function skipName(packet: Uint8Array, from: number, length = packet.length): number {
  let at = from;
  while (at < length) {
    const size = packet[at] as number;
    if (size === 0) return at + 1;
    if (size >= 0xc0) return at + 2 <= length ? at + 2 : -1;
    if (size > 63) return -1;
    at += 1 + size;
  }
  return -1;
}

/**
 * Parses a message of `length` bytes with exactly one question, to its last byte. Returns null if it is malformed (FORMERR). Follows no
 * pointers.
 */
export function parseQuery(packet: Uint8Array, length = packet.length): Query | null {
  if (length < HEADER + 5 || word(packet, 4) !== 1) return null;
  let at = HEADER;
  let hash = 0x811c9dc5;
  for (;;) {
    const size = packet[at++] as number;
    if (size > 63) return null;
    hash = Math.imul(hash ^ size, 0x01000193);
    if (size === 0) break;
    const stop = at + size;
    if (stop >= length || stop - HEADER >= NAME_LIMIT) return null;
    for (; at < stop; at++) hash = Math.imul(hash ^ (LOWER[packet[at] as number] as number), 0x01000193);
  }
  const end = at + 4;
  if (end > length) return null;
  const query = {
    end,
    hash: hash >>> 0,
    type: word(packet, at),
    class: word(packet, at + 2),
    edns: false,
    version: 0,
    ednsBroken: false,
    dnssec: false,
    size: PLAIN_SIZE,
    tsig: 0,
    serial: null,
  };
  return end === length && word(packet, 6) === 0 && word(packet, 8) === 0 && word(packet, 10) === 0
    ? query
    : parseRecords(packet, length, query);
}

/** Returns whether the options of an OPT record fill its rdata exactly. */
function areOptions(packet: Uint8Array, from: number, end: number): boolean {
  let at = from;
  while (at + 4 <= end) at += 4 + word(packet, at + 2);
  return at === end;
}

function parseRecords(packet: Uint8Array, length: number, question: Query): Query | null {
  const authority = word(packet, 6);
  const additional = authority + word(packet, 8);
  const count = additional + word(packet, 10);
  let { edns, version, ednsBroken, dnssec, size, tsig, serial } = question;
  let at = question.end;
  for (let i = 0; i < count; i++) {
    const owner = at;
    at = skipName(packet, at, length);
    if (at < 0 || at + RECORD_HEADER > length) return null;
    const type = word(packet, at);
    const data = at + RECORD_HEADER;
    const next = data + word(packet, at + 8);
    if (next > length) return null;
    if (i >= additional && type === TYPE.OPT) {
      ednsBroken ||= edns || packet[owner] !== 0 || !areOptions(packet, data, next);
      edns = true;
      size = word(packet, at + 2);
      version = packet[at + 5] as number;
      dnssec = ((packet[at + 6] as number) & 0x80) !== 0;
    } else if (i >= additional && type === TYPE.TSIG) {
      if (i !== count - 1) return null;
      tsig = owner;
    } else if (i >= authority && i < additional && type === TYPE.SOA && next - data >= 22) {
      serial = word(packet, next - 20) * 0x10000 + word(packet, next - 18);
    }
    at = next;
  }
  if (at !== length) return null;
  const { end, hash, type, class: klass } = question;
  return { end, hash, type, class: klass, edns, version, ednsBroken, dnssec, size, tsig, serial };
}

/** Returns whether two questions that end at `end` have the same name, ignoring letter case. */
export function sameName(a: Uint8Array, b: Uint8Array, end: number): boolean {
  for (let at = HEADER; at < end - 4; at++) {
    if (a[at] !== b[at] && LOWER[a[at] as number] !== LOWER[b[at] as number]) return false;
  }
  return true;
}

/** Returns the serial of the SOA that is the first record of an authoritative response, after a question that ends at `end`; null: none. */
export function soaSerial(packet: Buffer, end: number): number | null {
  if (((packet[2] as number) & 0x04) === 0 || word(packet, 6) === 0) return null;
  const at = skipName(packet, end);
  if (at < 0 || at + RECORD_HEADER > packet.length || word(packet, at) !== TYPE.SOA) return null;
  const next = at + RECORD_HEADER + word(packet, at + 8);
  return next > packet.length || word(packet, at + 8) < 22 ? null : packet.readUInt32BE(next - 20);
}

/** Returns the name of the question in lower case, in the internal form of `name.ts`. */
export function questionName(packet: Buffer, query: Query): string {
  return lowerCase(packet.toString("latin1", HEADER, query.end - 5));
}

/** Some records of one set under one owner; `data` from `start` to `end` contains records, each a u16 length and rdata. */
export interface Records {
  readonly owner: string;
  readonly type: number;
  readonly ttl: number;
  readonly data: string;
  readonly start: number;
  readonly end: number;
}

/** Returns the packed set at `at` of a name's sets as records of `owner`. */
export function recordsOf(owner: string, sets: string, at: number): Records {
  const start = at + SET_HEADER;
  return { owner, type: u16(sets, at), ttl: u32(sets, at + 2), data: sets, start, end: start + u32(sets, at + 6) };
}

/** Composes one message at a time in a buffer that it reuses. */
export interface Writer {
  /** Offset of the end of the message so far, including the question. */
  readonly end: number;
  /** Records written since the start. */
  readonly count: number;
  /** Discards the message and starts after a question for `name` that ends at `end`; with `name` null after the header. */
  start(name: string | null, end: number): void;
  /** Writes records while the message fits into `limit` bytes. Returns the offset of the first record that did not fit, or their `end`. */
  add(records: Records, limit: number): number;
  /** Removes all records written since the message ended at `end` with `count` records. */
  cut(end: number, count: number): void;
  addOpt(extendedRcode: number, dnssec: boolean): void;
  /** Copies the bytes from `from` to the end into `message`, at the same offset. */
  copy(message: Uint8Array, from: number): void;
}

/** Bytes of rdata before the name, for types whose names may be compressed (RFC 3597 section 4). */
const COMPRESSIBLE = new Map<number, number>([
  [TYPE.NS, 0],
  [TYPE.CNAME, 0],
  [TYPE.SOA, 0],
  [TYPE.MX, 2],
]);

export function createWriter(): Writer {
  // A record is written before its size is known, and removed again if it does not fit.
  const bytes = Buffer.alloc(TCP_SIZE + NAME_LIMIT + RECORD_HEADER + RDATA_LIMIT);
  const seen = new Map<string, number>();
  /** Names whose end is in the question, so with the letter case of the client. */
  const lent = new Map<string, number>();
  /** The names of both maps in the order of their offsets, so that `cut` visits only the removed ones. */
  const order: string[] = [];
  let at = HEADER;
  let count = 0;

  const remember = (names: Map<string, number>, name: string, offset: number): void => {
    if (offset > POINTER_LIMIT) return;
    names.set(name, offset);
    order.push(name);
  };

  /**
   * Writes a name. It points only to names with the same letter case, so that every name keeps its case. An owner in lower case may also
   * point into the question, which has the case of the client (RFC 4343 section 4.1).
   */
  const addName = (name: string, isOwner: boolean): void => {
    const start = at;
    let rest = name;
    let known: number | undefined;
    let isLent = false;
    while (rest !== "") {
      known = seen.get(rest);
      if (known === undefined && isOwner) {
        known = lent.get(rest);
        isLent = known !== undefined;
      }
      if (known !== undefined) break;
      const size = 1 + rest.charCodeAt(0);
      for (let i = 0; i < size; i++) bytes[at++] = rest.charCodeAt(i);
      rest = parentOf(rest);
    }
    for (let suffix = name, offset = start; suffix.length > rest.length; suffix = parentOf(suffix)) {
      remember(isLent ? lent : seen, suffix, offset);
      offset += 1 + suffix.charCodeAt(0);
    }
    if (known === undefined) bytes[at++] = 0;
    else at = bytes.writeUInt16BE(0xc000 | known, at);
  };

  const addBytes = (data: string, from: number, to: number): void => {
    for (let i = from; i < to; i++) bytes[at++] = data.charCodeAt(i);
  };

  const addRdata = (type: number, data: string, from: number, to: number): void => {
    const fixed = COMPRESSIBLE.get(type);
    if (fixed === undefined) return addBytes(data, from, to);
    addBytes(data, from, from + fixed);
    let pos = from + fixed;
    for (let names = type === TYPE.SOA ? 2 : 1; names > 0; names--) {
      const start = pos;
      while (data.charCodeAt(pos) !== 0) pos += 1 + data.charCodeAt(pos);
      addName(data.substring(start, pos++), false);
    }
    addBytes(data, pos, to);
  };

  const cut = (end: number, records: number): void => {
    at = end;
    count = records;
    const forget = (names: Map<string, number>, name: string): boolean =>
      (names.get(name) ?? -1) >= end && names.delete(name);
    for (let last = order.at(-1); last !== undefined; last = order.at(-1)) {
      const isLate = forget(seen, last);
      if (!forget(lent, last) && !isLate) break;
      order.pop();
    }
  };

  return {
    get end() {
      return at;
    },
    get count() {
      return count;
    },
    start(name, end) {
      seen.clear();
      lent.clear();
      order.length = 0;
      at = end;
      count = 0;
      if (name === null) return;
      for (const from of labelStarts(name)) remember(lent, name.substring(from), HEADER + from);
    },
    add(records, limit) {
      for (let pos = records.start; pos < records.end; ) {
        const size = u16(records.data, pos);
        const before = at;
        addName(records.owner, true);
        at = bytes.writeUInt16BE(records.type, at);
        at = bytes.writeUInt16BE(CLASS_IN, at);
        at = bytes.writeUInt32BE(records.ttl, at);
        const length = at;
        at += 2;
        addRdata(records.type, records.data, pos + 2, pos + 2 + size);
        bytes.writeUInt16BE(at - length - 2, length);
        if (at > limit) {
          cut(before, count);
          return pos;
        }
        count++;
        pos += 2 + size;
      }
      return records.end;
    },
    cut,
    addOpt(extendedRcode, dnssec) {
      at = bytes.writeUInt8(0, at);
      at = bytes.writeUInt16BE(TYPE.OPT, at);
      at = bytes.writeUInt16BE(UDP_SIZE, at);
      at = bytes.writeUInt8(extendedRcode, at);
      at = bytes.writeUInt8(0, at);
      at = bytes.writeUInt16BE(dnssec ? 0x8000 : 0, at);
      at = bytes.writeUInt16BE(0, at);
    },
    copy(message, from) {
      bytes.copy(message, from, from, at);
    },
  };
}
