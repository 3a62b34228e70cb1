/**
 * Answers the usual queries in place: the response is written behind the question of the packet, without a string or an object for the
 * name. It handles names with plain sets, missing names, names without data, wildcards and foreign names. All else (CNAME, referrals,
 * addresses in the additional section, truncation) is left to `answer.ts`, and both write the same bytes.
 */
import { bytesOf, ownerEnd, ownerStart, setsSize } from "../builtin/table.ts";
import { findSetIn, type NamePlace, SET_HEADER, seek, sizeAt, TYPE, type Zone } from "../builtin/zone.ts";
import type { Zones } from "../builtin/zones.ts";
import { CLASS_IN, createWriter, HEADER, OPT_SIZE, type Query, questionName, RCODE } from "../wire/message.ts";
import { type AnswerKind, soaOf } from "./answer.ts";

/** The name of the record is the question's: a pointer behind the header. */
const POINTER = 0xc000 | HEADER;
/** Bytes of a record beside its data, with a pointer as its name. */
const RECORD = 12;
const TAILS = 1 << 12;

/** A direct response; reused for one query after the other. */
export interface Direct {
  /** Bytes of the response. */
  end: number;
  rcode: number;
  kind: AnswerKind;
  zone: Zone | undefined;
}

/** The encoded SOA behind a question that ends at `end`; its pointers depend on that. */
interface Tail {
  readonly zone: Zone;
  readonly generation: number;
  readonly end: number;
  readonly bytes: Buffer;
}

/**
 * Writes the response to `query` into `packet`, at most `limit` bytes, and describes it in `result`; without header flags. Returns false
 * if it is not a usual query; the packet is then unchanged.
 */
export type AnswerDirectly = (packet: Buffer, query: Query, limit: number, result: Direct) => boolean;

/** Returns whether `answer.ts` treats queries of this type specially, regardless of the records. */
const isSpecial = (type: number): boolean =>
  type === TYPE.SOA || type === TYPE.DS || type === TYPE.OPT || (type >= 249 && type <= TYPE.ANY);

/** Returns whether records of this type contain names that are compressed or whose addresses are added. */
const hasNames = (type: number): boolean =>
  type === TYPE.NS || type === TYPE.CNAME || type === TYPE.MX || type === TYPE.SRV;

/** Creates the function, with a cache of encoded SOA records. */
export function createDirect(zones: Zones): AnswerDirectly {
  const tails = new Array<Tail | undefined>(TAILS).fill(undefined);
  const writer = createWriter();
  let epoch = zones.epoch;
  let isUsed = false;
  /** Where the records of the response end. */
  let written = 0;
  const place: NamePlace = { exists: false, address: 0, cut: -1, wildcard: false };

  const tailOf = (zone: Zone, packet: Buffer, query: Query): Buffer => {
    const { end } = query;
    const slot = (Math.imul(zone.table.seed ^ zone.identity ^ (end << 5), 0x9e3779b1) ^ zone.name.length) & (TAILS - 1);
    const known = tails[slot];
    if (known?.zone === zone && known.generation === zone.generation && known.end === end) return known.bytes;
    writer.start(questionName(packet, query), end);
    writer.add(soaOf(zone, zone.authority.negativeTtl), 0xffff);
    const bytes = Buffer.alloc(writer.end);
    writer.copy(bytes, end);
    isUsed = true;
    tails[slot] = { zone, generation: zone.generation, end, bytes: bytes.subarray(end) };
    return bytes.subarray(end);
  };

  /** Writes the records of the set at `at`; returns their number, or -1 if they do not fit. */
  const writeSet = (packet: Buffer, end: number, limit: number, bytes: Uint8Array, at: number): number => {
    const stop = at + SET_HEADER + sizeAt(bytes, at + 6);
    let to = end;
    let count = 0;
    for (let from = at + SET_HEADER; from < stop; count++) {
      const next = from + 2 + (((bytes[from] as number) << 8) | (bytes[from + 1] as number));
      if (to + RECORD + next - from - 2 > limit) return -1;
      packet[to] = POINTER >> 8;
      packet[to + 1] = POINTER & 0xff;
      packet[to + 2] = bytes[at] as number;
      packet[to + 3] = bytes[at + 1] as number;
      packet[to + 4] = 0;
      packet[to + 5] = CLASS_IN;
      for (let i = 0; i < 4; i++) packet[to + 6 + i] = bytes[at + 2 + i] as number;
      to += 10;
      while (from < next) packet[to++] = bytes[from++] as number;
    }
    written = to;
    return count;
  };

  return (packet, query, limit, result) => {
    if (epoch !== zones.epoch) {
      // A tail would keep a zone that was removed in memory.
      if (isUsed) tails.fill(undefined);
      isUsed = false;
      epoch = zones.epoch;
    }
    const { type, end } = query;
    const nameEnd = end - 5;
    if (query.class !== CLASS_IN || isSpecial(type) || nameEnd === HEADER) return false;
    const space = limit - (query.edns ? OPT_SIZE : 0);
    const zone = zones.findIn(packet, HEADER, nameEnd);
    result.zone = zone;
    let answers = 0;
    let authorities = 0;
    written = end;
    if (zone === undefined) {
      result.kind = "refused";
      result.rcode = RCODE.REFUSED;
    } else {
      const apex = nameEnd - zone.name.length;
      seek(zone, packet, HEADER, apex, place);
      if (place.cut >= 0 || (!place.exists && zones.hasBelow(zone))) return false;
      result.rcode = place.exists ? RCODE.NOERROR : RCODE.NXDOMAIN;
      result.kind = place.wildcard ? "wildcard" : place.exists ? "data" : "negative";
      let set = -1;
      if (place.address !== 0) {
        const bytes = bytesOf(zone.table, place.address);
        const start = ownerEnd(zone.table, place.address);
        const stop = start + setsSize(zone.table, place.address);
        set = findSetIn(bytes, start, stop, type);
        if (set >= 0 ? hasNames(type) : findSetIn(bytes, start, stop, TYPE.CNAME) >= 0) return false;
        if (set >= 0) {
          // A name published with capital letters is not a pointer to the question.
          if (!place.wildcard && hasCapitals(bytes, ownerStart(place.address), start)) return false;
          answers = writeSet(packet, end, space, bytes, set);
          if (answers < 0) return false;
        }
      }
      if (set < 0) {
        const tail = tailOf(zone, packet, query);
        if (end + tail.length > space) return false;
        if (!place.wildcard) result.kind = "negative";
        for (let i = 0; i < tail.length; i++) packet[end + i] = tail[i] as number;
        written = end + tail.length;
        authorities = 1;
      }
    }
    packet[4] = 0;
    packet[5] = 1;
    packet[6] = answers >> 8;
    packet[7] = answers & 0xff;
    packet[8] = 0;
    packet[9] = authorities;
    result.end = endWithOpt(packet, written, query);
    return true;
  };
}

/** Writes the OPT record if the query has one, and the number of additional records. Returns the end of the message. */
export function endWithOpt(packet: Buffer, end: number, query: Query): number {
  packet[10] = 0;
  packet[11] = query.edns ? 1 : 0;
  if (!query.edns) return end;
  packet[end] = 0;
  packet[end + 1] = 0;
  packet[end + 2] = TYPE.OPT;
  packet[end + 3] = 0x04;
  packet[end + 4] = 0xd0;
  packet[end + 5] = 0;
  packet[end + 6] = 0;
  packet[end + 7] = query.dnssec ? 0x80 : 0;
  packet[end + 8] = 0;
  packet[end + 9] = 0;
  packet[end + 10] = 0;
  return end + OPT_SIZE;
}

function hasCapitals(bytes: Uint8Array, from: number, to: number): boolean {
  for (let i = from; i < to; i++) {
    const code = bytes[i] as number;
    if (code >= 65 && code <= 90) return true;
  }
  return false;
}
