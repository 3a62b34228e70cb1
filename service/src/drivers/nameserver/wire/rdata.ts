/**
 * Encodes record data. It runs on the publishing side, so that a set that cannot be encoded is reported to the caller and does not burden
 * the thread that serves queries. It handles kinds of fields, not record types.
 */
import { isIPv4, isIPv6 } from "node:net";
import type { FieldKind, RecordData, RecordFormat } from "../interface.ts";
import { writeName } from "./name.ts";

/** Maximum size of rdata (RFC 1035 section 3.2.1). */
export const RDATA_LIMIT = 0xffff;
const STRING_LIMIT = 255;

/** Returns an upper bound of the bytes that `writeRdata` writes for this data. */
export function maxRdataSize(data: RecordData): number {
  let size = 16;
  for (const value of data) {
    if (typeof value === "number") size += 4;
    else if (typeof value === "string") size += 16 + 3 * value.length;
    else for (const text of value) size += 1 + 3 * text.length;
  }
  return size;
}

/** Writes a text value at `at`. Returns the offset after it. `name` and `type` are for errors. */
type WriteText = (bytes: Buffer, at: number, text: string, name: string, type: string) => number;

const textKinds: Readonly<Record<Exclude<FieldKind, "u8" | "u16" | "u32" | "strings">, WriteText>> = {
  ipv4: writeIpv4,
  ipv6: writeIpv6,
  name: writeFullName,
  string: writeString,
  text: (bytes, at, text) => at + bytes.write(text, at, "utf8"),
  hex: (bytes, at, text, name) => {
    if (!/^(?:[0-9a-f]{2})*$/i.test(text)) throw new RangeError(`${name} is not hexadecimal`);
    return at + bytes.write(text, at, "hex");
  },
  base64: (bytes, at, text, name) => {
    if (!/^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/.test(text))
      throw new RangeError(`${name} is not base64`);
    return at + bytes.write(text, at, "base64");
  },
};

const widths = { u8: 1, u16: 2, u32: 4 } as const;

/** Writes the rdata of one record at `at`. Returns the offset after it. Throws a RangeError or TypeError that describes the error. */
export function writeRdata(bytes: Buffer, at: number, type: RecordFormat, data: RecordData): number {
  let pos = at;
  for (let i = 0; i < type.data.length; i++) {
    const { kind, name } = type.data[i] as RecordFormat["data"][number];
    const value = data[i];
    if (kind === "u8" || kind === "u16" || kind === "u32") {
      if (typeof value !== "number") throw misfit(type, data);
      pos = writeNumber(bytes, pos, value, widths[kind], name);
    } else if (kind === "strings") {
      if (typeof value !== "object") throw misfit(type, data);
      pos = writeStrings(bytes, pos, value, name, type.name);
    } else {
      if (typeof value !== "string") throw misfit(type, data);
      pos = textKinds[kind](bytes, pos, value, name, type.name);
    }
  }
  if (data.length !== type.data.length) throw misfit(type, data);
  return pos;
}

const misfit = (type: RecordFormat, data: RecordData): TypeError =>
  new TypeError(`data ${JSON.stringify(data)} does not fit type ${type.name}`);

/** Writes a name with its final zero. Returns the offset after it. */
export function writeFullName(bytes: Buffer, at: number, text: string): number {
  const end = writeName(bytes, at, text);
  bytes[end] = 0;
  return end + 1;
}

function writeNumber(bytes: Buffer, at: number, value: number, width: 1 | 2 | 4, name: string): number {
  const most = 2 ** (8 * width) - 1;
  if (!Number.isInteger(value) || value < 0 || value > most)
    throw new RangeError(`${name} ${value} is not in 0-${most}`);
  return bytes.writeUIntBE(value, at, width);
}

function writeIpv4(bytes: Buffer, at: number, text: string): number {
  if (!isIPv4(text)) throw new RangeError(`"${text}" is not an IPv4 address`);
  let value = 0;
  let pos = at;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code === 46) {
      bytes[pos++] = value;
      value = 0;
    } else {
      value = value * 10 + code - 48;
    }
  }
  bytes[pos] = value;
  return at + 4;
}

function writeIpv6(bytes: Buffer, at: number, text: string): number {
  if (!isIPv6(text) || text.includes("%")) throw new RangeError(`"${text}" is not an IPv6 address`);
  const [head = "", tail] = text.split("::");
  const left = ipv6Bytes(head);
  const right = tail === undefined ? [] : ipv6Bytes(tail);
  bytes.fill(0, at, at + 16);
  bytes.set(left, at);
  bytes.set(right, at + 16 - right.length);
  return at + 16;
}

function ipv6Bytes(part: string): number[] {
  if (part === "") return [];
  return part.split(":").flatMap((group) => {
    if (group.includes(".")) return group.split(".").map(Number);
    const value = Number.parseInt(group, 16);
    return [value >> 8, value & 0xff];
  });
}

function writeString(bytes: Buffer, at: number, text: string, _name: string, type: string): number {
  const size = bytes.write(text, at + 1, "utf8");
  if (size > STRING_LIMIT)
    throw new RangeError(`a string of a ${type} record has ${size} bytes, more than ${STRING_LIMIT}`);
  bytes[at] = size;
  return at + 1 + size;
}

function writeStrings(bytes: Buffer, at: number, strings: readonly string[], name: string, type: string): number {
  if (strings.length === 0) throw new RangeError(`a ${type} record needs a string`);
  let pos = at;
  for (const text of strings) pos = writeString(bytes, pos, text, name, type);
  return pos;
}
