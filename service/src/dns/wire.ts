/**
 * DNS messages of other name servers (RFC 1035 section 4), and the generic record data of RFC 3597. Whatever comes is bounded and
 * checked here: a record that cannot be stored is a refusal, a message that cannot be read is null, and nothing throws.
 */
import { isUtf8 } from "node:buffer";
import type { RecordType } from "@brume/api/dns.ts";
import { readIPv4, readIPv6 } from "./address.ts";
import { type Refusal, readTarget, refuse } from "./name.ts";
import { checkText, valueOf } from "./text.ts";

/** RFC 1035 section 3.2.2, RFC 3596, RFC 2782. */
export const typeNumbers: Readonly<Record<RecordType, number>> = {
  A: 1,
  AAAA: 28,
  CNAME: 5,
  MX: 15,
  NS: 2,
  SRV: 33,
  TXT: 16,
};
const typesByNumber = new Map(Object.entries(typeNumbers).map(([type, number]) => [number, type as RecordType]));
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
/** The name of a type; where it has none here, as RFC 3597 writes it. */
export const typeName = (number: number): string => typeOf(number) ?? otherTypes[number] ?? `TYPE${number}`;

export interface WireRecord {
  /** Without final dot; bytes that are no plain characters as `\\DDD`. */
  readonly name: string;
  readonly type: number;
  readonly class: number;
  readonly ttl: number;
  /** Where its data begins and ends in the message. */
  readonly start: number;
  readonly end: number;
}

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

/** A message in its parts; null if it is broken, or has more than one question. */
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
    const name = readName(bytes, at);
    if (name === null || name.end + 4 > bytes.length) return null;
    question = { name: name.text, type: bytes.readUInt16BE(name.end) };
    at = name.end + 4;
  }
  const sections: [WireRecord[], WireRecord[], WireRecord[]] = [[], [], []];
  const counts = [6, 8, 10].flatMap((field, i) => new Array<number>(bytes.readUInt16BE(field)).fill(i));
  for (const section of counts) {
    const name = readName(bytes, at);
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

/** Data of one of the seven types as a value; of an SRV without service and protocol, which are part of its owner. */
export function readData(type: RecordType, bytes: Buffer, start: number, end: number): string | Refusal {
  const length = end - start;
  const data = bytes.subarray(start, end);
  const broken = refuse("format_invalid", `has ${length} bytes of data that are no ${type} data`);
  switch (type) {
    case "A":
      return (length === 4 && readIPv4(data.join("."))) || broken;
    case "AAAA":
      return (length === 16 && readIPv6(data.toString("hex").match(/.{4}/g)?.join(":") ?? "")) || broken;
    case "TXT":
      return readStrings(data) ?? broken;
    default: {
      const numbers = type === "MX" ? 1 : type === "SRV" ? 3 : 0;
      const name = readName(bytes, start + 2 * numbers);
      if (length < 2 * numbers || name?.end !== end) return broken;
      const values = [0, 1, 2].slice(0, numbers).map((i) => bytes.readUInt16BE(start + 2 * i));
      return composeData(type, values, name.text === "" ? "." : readTarget(`${name.text}.`, ""));
    }
  }
}

/** Numbers and target of a CNAME, NS, MX or SRV as a value. `.` is a target of an SRV, and of an MX with 0 (RFC 7505). */
export function composeData(type: RecordType, numbers: readonly number[], target: string | Refusal): string | Refusal {
  if (typeof target !== "string") return target;
  if (target === "." && type !== "SRV" && !(type === "MX" && numbers[0] === 0))
    return refuse("format_invalid", 'must have a host name as target, not "."');
  return [...numbers, target].join(" ");
}

/** Generic data (RFC 3597 section 5): the words behind `\#`, a length in bytes and bytes in hexadecimal. */
export function readGenericData(type: RecordType, words: readonly string[]): string | Refusal {
  const [length = "", ...rest] = words;
  const hex = rest.join("");
  if (!/^\d{1,5}$/.test(length) || hex.length !== 2 * Number(length) || !/^[0-9a-f]*$/i.test(hex))
    return refuse("format_invalid", "must have a length and as many bytes in hexadecimal behind \\#");
  const bytes = Buffer.from(hex, "hex");
  return readData(type, bytes, 0, bytes.length);
}

/** A standard query, with a buffer of 1232 bytes announced (RFC 6891). `name` as `asciiName` makes it. */
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

/** A name may jump to earlier names, each time further back; more jumps than labels are an attack. */
function readName(bytes: Buffer, start: number): { text: string; end: number } | null {
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

function readStrings(data: Buffer): string | Refusal | null {
  const strings: Buffer[] = [];
  for (let at = 0; at < data.length; ) {
    const end = at + 1 + (data[at] as number);
    if (end > data.length) return null;
    strings.push(data.subarray(at + 1, end));
    at = end;
  }
  if (strings.length === 0) return null;
  const decode = (bytes: Buffer): string | null => (isUtf8(bytes) ? bytes.toString() : null);
  const joined = checkText(decode(Buffer.concat(strings)));
  return typeof joined === "string" ? valueOf(strings.map(decode), joined) : joined;
}

const escapeByte = (byte: string): string => `\\${String(byte.charCodeAt(0)).padStart(3, "0")}`;
