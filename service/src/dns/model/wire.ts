/**
 * Parses DNS messages of other name servers and writes queries (RFC 1035 section 4). All input is checked: an invalid message returns null,
 * and no function throws. The name server has its own codec for the other direction, `drivers/nameserver/wire/`. That one reads only the
 * question and writes responses from packed zones, for speed; it decodes no names or records of a response.
 */
import { type RecordType, recordSpecs, recordTypes } from "@brume/api/record/types.ts";

const typesByNumber = new Map(recordTypes.map((type) => [recordSpecs[type].code, type]));
/** Returns the record type with this number, if Brume supports it. */
export const typeOf = (number: number): RecordType | undefined => typesByNumber.get(number);

const otherTypes: Readonly<Record<number, string>> = {
  6: "SOA",
  12: "PTR",
  13: "HINFO",
  17: "RP",
  29: "LOC",
  35: "NAPTR",
  39: "DNAME",
  43: "DS",
  44: "SSHFP",
  46: "RRSIG",
  47: "NSEC",
  48: "DNSKEY",
  50: "NSEC3",
  51: "NSEC3PARAM",
  52: "TLSA",
  59: "CDS",
  60: "CDNSKEY",
  64: "SVCB",
  65: "HTTPS",
  257: "CAA",
};
/** Returns the name of a type; `TYPE123` (RFC 3597) if it is unknown here. */
export const typeName = (number: number): string => typeOf(number) ?? otherTypes[number] ?? `TYPE${number}`;

/** A resource record of a message; its data is not decoded. */
export interface WireRecord {
  /** Without final dot; bytes other than plain characters as `\\DDD`. */
  readonly name: string;
  readonly type: number;
  readonly class: number;
  readonly ttl: number;
  /** Offsets of the data in the message; `end` is exclusive. */
  readonly start: number;
  readonly end: number;
}

/** A parsed message. */
export interface Message {
  readonly bytes: Buffer;
  readonly id: number;
  readonly isAnswer: boolean;
  readonly isTruncated: boolean;
  readonly isAuthoritative: boolean;
  readonly rcode: number;
  readonly question: { readonly name: string; readonly type: number } | null;
  readonly answers: readonly WireRecord[];
  readonly authorities: readonly WireRecord[];
  readonly additionals: readonly WireRecord[];
}

/** Parses a message. Returns null if it is invalid or has more than one question. */
export function readMessage(bytes: Buffer): Message | null {
  if (bytes.length < 12) return null;
  const flags = bytes.readUInt16BE(2);
  const questions = bytes.readUInt16BE(4);
  const header = {
    bytes,
    id: bytes.readUInt16BE(0),
    isAnswer: (flags & 0x8000) !== 0,
    isTruncated: (flags & 0x0200) !== 0,
    isAuthoritative: (flags & 0x0400) !== 0,
    rcode: flags & 15,
  };
  let at = 12;
  let question: Message["question"] = null;
  if (questions > 1) return null;
  if (questions === 1) {
    const name = decodeName(bytes, at);
    if (name === null || name.end + 4 > bytes.length) return null;
    question = { name: name.text, type: bytes.readUInt16BE(name.end) };
    at = name.end + 4;
  }
  const sections: [WireRecord[], WireRecord[], WireRecord[]] = [[], [], []];
  const counts = [6, 8, 10].flatMap((field, i) => new Array<number>(bytes.readUInt16BE(field)).fill(i));
  for (const section of counts) {
    const name = decodeName(bytes, at);
    if (name === null || name.end + 10 > bytes.length) return null;
    const start = name.end + 10;
    at = start + bytes.readUInt16BE(name.end + 8);
    if (at > bytes.length) return null;
    sections[section]?.push({
      name: name.text,
      type: bytes.readUInt16BE(name.end),
      class: bytes.readUInt16BE(name.end + 2),
      ttl: bytes.readUInt32BE(name.end + 4),
      start,
      end: at,
    });
  }
  const [answers, authorities, additionals] = sections;
  return { ...header, question, answers, authorities, additionals };
}

/** Returns the bytes of a standard query that announces a buffer of 1232 bytes (RFC 6891). `name` is a result of `asciiName`. */
export function writeQuery(id: number, name: string, type: number): Buffer {
  const labels = name
    .split(".")
    .map((label) => label.replace(/\\(\d{3})/g, (_, code) => String.fromCharCode(Number(code))))
    .map((label) => Buffer.from(`\0${label}`, "latin1"));
  for (const label of labels) label[0] = label.length - 1;
  const header = Buffer.alloc(12);
  header.writeUInt16BE(id, 0);
  header.writeUInt16BE(1, 4);
  header.writeUInt16BE(1, 10);
  const end = Buffer.from([0, type >> 8, type & 255, 0, 1]);
  const edns = Buffer.from([0, 0, 41, 1232 >> 8, 1232 & 255, 0, 0, 0, 0, 0, 0]);
  return Buffer.concat([header, ...labels, end, edns]);
}

/**
 * Decodes a name of a message. Returns it without final dot, and the position after it; null if it is invalid. Compression pointers must
 * point further back each time, at most 127 times, so that no message can cause a loop.
 */
export function decodeName(bytes: Buffer, start: number): { text: string; end: number } | null {
  const labels: string[] = [];
  let at = start;
  let end = -1;
  let limit = start;
  let length = 0;
  for (let jumps = 0; ; ) {
    const size = bytes[at];
    if (size === undefined) return null;
    if (size === 0) return { text: labels.join("."), end: end < 0 ? at + 1 : end };
    if (size >= 0xc0) {
      const next = bytes[at + 1];
      if (next === undefined || ++jumps > 127) return null;
      if (end < 0) end = at + 2;
      at = (size - 0xc0) * 256 + next;
      if (at >= limit) return null;
      limit = at;
    } else {
      length += size + 1;
      if (size > 63 || length > 254 || at + 1 + size > bytes.length) return null;
      labels.push(bytes.toString("latin1", at + 1, at + 1 + size).replace(/[^A-Za-z0-9_/*-]/g, escapeByte));
      at += size + 1;
    }
  }
}

const escapeByte = (byte: string): string => `\\${String(byte.charCodeAt(0)).padStart(3, "0")}`;
