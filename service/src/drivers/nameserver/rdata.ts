/**
 * From the port's record data to wire bytes. It runs on the caller's side: a set that cannot be encoded is the caller's fault
 * and must be told to the caller, and the thread that answers queries has better things to do.
 */
import { isIPv4, isIPv6 } from "node:net";
import { writeName } from "./name.ts";
import type { RecordData, RecordType } from "./port.ts";

/** Longest rdata there is (RFC 1035 section 3.2.1). */
export const RDATA_LIMIT = 0xffff;
const STRING_LIMIT = 255;

/** Bytes that `writeRdata` may touch for this data; a safe bound, not the size. */
export function roomFor(data: RecordData): number {
  if ("strings" in data) return 16 + data.strings.reduce((sum, text) => sum + 1 + 3 * text.length, 0);
  if ("target" in data) return 16 + data.target.length;
  if ("exchange" in data) return 16 + data.exchange.length;
  return 16;
}

/** Writes the rdata of one record at `at`; returns the position behind it. Throws a RangeError or TypeError that names the fault. */
export function writeRdata(bytes: Buffer, at: number, type: RecordType, data: RecordData): number {
  switch (type) {
    case "A":
      if ("address" in data) return writeIpv4(bytes, at, data.address);
      break;
    case "AAAA":
      if ("address" in data) return writeIpv6(bytes, at, data.address);
      break;
    case "CNAME":
    case "NS":
      if ("target" in data && !("port" in data)) return writeFullName(bytes, at, data.target);
      break;
    case "MX":
      if ("exchange" in data) {
        return writeFullName(bytes, writeU16(bytes, at, data.preference, "preference"), data.exchange);
      }
      break;
    case "SRV":
      if ("port" in data) {
        let pos = writeU16(bytes, at, data.priority, "priority");
        pos = writeU16(bytes, pos, data.weight, "weight");
        pos = writeU16(bytes, pos, data.port, "port");
        return writeFullName(bytes, pos, data.target);
      }
      break;
    case "TXT":
      if ("strings" in data) return writeStrings(bytes, at, data.strings);
      break;
  }
  throw new TypeError(`data ${JSON.stringify(data)} does not fit type ${type}`);
}

/** A name with its final zero. */
export function writeFullName(bytes: Buffer, at: number, text: string): number {
  const end = writeName(bytes, at, text);
  bytes[end] = 0;
  return end + 1;
}

function writeU16(bytes: Buffer, at: number, value: number, what: string): number {
  if (!Number.isInteger(value) || value < 0 || value > 0xffff)
    throw new RangeError(`${what} ${value} is not of 0-65535`);
  bytes[at] = value >> 8;
  bytes[at + 1] = value & 0xff;
  return at + 2;
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

function writeStrings(bytes: Buffer, at: number, strings: readonly string[]): number {
  if (strings.length === 0) throw new RangeError("a TXT record needs a string");
  let pos = at;
  for (const text of strings) {
    const size = bytes.write(text, pos + 1, "utf8");
    if (size > STRING_LIMIT)
      throw new RangeError(`a string of a TXT record has ${size} bytes, more than ${STRING_LIMIT}`);
    bytes[pos] = size;
    pos += 1 + size;
  }
  return pos;
}
