/**
 * Addresses, blocks and ranges as numbers. Every address in the input of another program is parsed here and printed from the number,
 * so that no text of a client is passed on.
 */
import { isIPv4, isIPv6 } from "node:net";

export type Family = 4 | 6;

/** Numeric value of an address. IPv4 addresses may be numbers, with which computations are many times faster. */
export type Value = bigint | number;

/** A range of addresses, both ends included. */
export interface Range<V extends Value = bigint> {
  readonly first: V;
  readonly last: V;
}

/** A range with its family. */
export interface Addresses extends Range {
  readonly family: Family;
}

const bits = (family: Family): number => (family === 4 ? 32 : 128);
const all: Record<Family, Range> = {
  4: { first: 0n, last: (1n << 32n) - 1n },
  6: { first: 0n, last: (1n << 128n) - 1n },
};
/** Returns the range of all addresses. */
export const everything = (family: Family): Range => all[family];

function parse6(text: string): bigint {
  // The last 32 bits may be written as IPv4 (RFC 4291 section 2.2).
  const dotted = /^(.*:)(\d+\.\d+\.\d+\.\d+)$/.exec(text);
  const v4 = BigInt(dotted ? parse4(dotted[2] ?? "") : 0);
  const hex = dotted ? `${dotted[1]}${(v4 >> 16n).toString(16)}:${(v4 & 0xffffn).toString(16)}` : text;
  const [head = "", tail] = hex.split("::");
  const groups = (part: string) => (part === "" ? [] : part.split(":"));
  const front = groups(head);
  const back = tail === undefined ? [] : groups(tail);
  const middle = new Array<string>(8 - front.length - back.length).fill("0");
  return [...front, ...middle, ...back].reduce((sum, group) => (sum << 16n) | BigInt(`0x${group}`), 0n);
}

/** Returns whether a valid address is an IPv6 one. At its first call, `isIPv6` of Node compiles an expression, which takes 5 to 15 ms of a start. */
export const isVersion6 = (address: string): boolean => address.includes(":");

/** Returns an IPv4 address as a number, or null if the text is not one. */
export const readIPv4 = (text: string): number | null => (isIPv4(text) ? parse4(text) : null);

function parse4(text: string): number {
  let [value, part] = [0, 0];
  for (let at = 0; at < text.length; at++) {
    const digit = text.charCodeAt(at) - 48;
    if (digit >= 0) part = part * 10 + digit;
    else [value, part] = [value * 256 + part, 0];
  }
  return value * 256 + part;
}

/** Parses one address; null: another text, also one with an IPv6 zone (`%eth0`). */
export function readAddress(text: string): { readonly family: Family; readonly value: bigint } | null {
  if (isIPv4(text)) return { family: 4, value: BigInt(parse4(text)) };
  return isIPv6(text) && !text.includes("%") ? { family: 6, value: parse6(text) } : null;
}

/** As `readAddress`, but throws on other texts. */
export function parseAddress(text: string): { readonly family: Family; readonly value: bigint } {
  const address = readAddress(text);
  if (address === null) throw new Error(`"${text}" is not an address`);
  return address;
}

/** Parses an address, a block or a range `first-last`. Throws on other texts, also on a block with host bits. */
export function parseAddresses(text: string): Addresses {
  const [start = "", end, ...more] = text.split("-");
  if (end !== undefined) {
    const [first, last] = [parseAddress(start), parseAddress(end)];
    if (more.length > 0 || first.family !== last.family || first.value > last.value)
      throw new Error(`"${text}" is not a range of addresses`);
    return { family: first.family, first: first.value, last: last.value };
  }
  const [address = "", length, ...rest] = text.split("/");
  const { family, value } = parseAddress(address);
  if (length === undefined) return { family, first: value, last: value };
  const size = bits(family) - Number(length);
  if (rest.length > 0 || !/^(0|[1-9]\d{0,2})$/.test(length) || size < 0) throw new Error(`"${text}" is not a block`);
  const last = value | ((1n << BigInt(size)) - 1n);
  if (value & ((1n << BigInt(size)) - 1n)) throw new Error(`"${text}" is not a block: it has host bits`);
  return { family, first: value, last };
}

/** Returns the prefix length of a block; NaN for a single address. Throws on invalid text. */
export function prefixLength(cidr: string): number {
  parseAddresses(cidr);
  return Number(cidr.split("/")[1]);
}

function formatAddress(family: Family, value: Value): string {
  if (family === 4) {
    const number = Number(value);
    return `${number >>> 24}.${(number >>> 16) & 255}.${(number >>> 8) & 255}.${number & 255}`;
  }
  const bits = BigInt(value);
  const groups = Array.from({ length: 8 }, (_, i) => ((bits >> BigInt(112 - 16 * i)) & 0xffffn).toString(16));
  // The longest run of zero groups becomes "::" (RFC 5952 section 4.2).
  const runs = [...groups.join(":").matchAll(/(?<![0-9a-f])0(:0)+(?![0-9a-f])/g)];
  const longest = runs.reduce<RegExpExecArray | null>(
    (best, run) => (run[0].length > (best?.[0].length ?? 0) ? run : best),
    null,
  );
  const text = groups.join(":");
  if (longest === null) return text;
  const before = text.slice(0, longest.index).replace(/:$/, "");
  const after = text.slice(longest.index + longest[0].length).replace(/^:/, "");
  return `${before}::${after}`;
}

/** Formats a range as an address, as a block, or else as `first-last`. */
export function formatAddresses(family: Family, { first, last }: Range<Value>): string {
  if (first === last) return formatAddress(family, first);
  const start = BigInt(first);
  const size = BigInt(last) - start + 1n;
  if ((size & (size - 1n)) === 0n && start % size === 0n)
    return `${formatAddress(family, first)}/${bits(family) + 1 - size.toString(2).length}`;
  return `${formatAddress(family, first)}-${formatAddress(family, last)}`;
}

const move = (value: Value, step: 1 | -1): Value => (typeof value === "bigint" ? value + BigInt(step) : value + step);
export const valueAfter = <V extends Value>(value: V): V => move(value, 1) as V;
export const valueBefore = <V extends Value>(value: V): V => move(value, -1) as V;

/** Returns the union of the ranges: sorted, without overlap, with adjacent ranges joined. */
export function join<V extends Value>(ranges: readonly Range<V>[]): Range<V>[] {
  if (ranges.length <= 1) return [...ranges];
  const joined: Range<V>[] = [];
  for (const range of [...ranges].sort((a, b) => (a.first < b.first ? -1 : a.first > b.first ? 1 : 0))) {
    const before = joined.at(-1);
    if (before === undefined || range.first > valueAfter(before.last)) joined.push(range);
    else if (range.last > before.last) joined[joined.length - 1] = { first: before.first, last: range.last };
  }
  return joined;
}

/** Returns the parts of `whole` that are in none of the ranges. */
export function complement<V extends Value>(ranges: readonly Range<V>[], whole: Range<V>): Range<V>[] {
  const left: Range<V>[] = [];
  let next = whole.first;
  for (const { first, last } of join(ranges)) {
    if (first > next) left.push({ first: next, last: valueBefore(first) });
    next = valueAfter(last);
  }
  if (next <= whole.last) left.push({ first: next, last: whole.last });
  return left;
}

/** Returns whether a value is in one of the ranges. Linear. */
export const contains = (ranges: readonly Range<Value>[], value: Value): boolean =>
  ranges.some(({ first, last }) => first <= value && value <= last);

/** Converts an IPv4-mapped IPv6 address (RFC 4291 section 2.5.5.2) to IPv4. Returns every other address unchanged. */
export function plainAddress(address: string): string {
  return address.startsWith("::ffff:") && address.includes(".") ? address.slice(7) : address;
}

/** Returns a hash of the /24 of an IPv4 or the /56 of an IPv6 address. */
export function networkOf(address: string): number {
  const plain = plainAddress(address);
  if (!plain.includes(":")) {
    const value = parse4(plain);
    return hashOf([(value / 0x1000000) | 0, (value >> 16) & 0xff, (value >> 8) & 0xff]);
  }
  const [head = "", tail] = (plain.split("%")[0] as string).split("::");
  const left = head === "" ? [] : head.split(":");
  const right = tail === undefined || tail === "" ? [] : tail.split(":");
  const groups = [0, 1, 2, 3].map((group) => {
    const text = group < left.length ? left[group] : right[group - (8 - right.length)];
    return Number.parseInt(text ?? "0", 16) & (group === 3 ? 0xff00 : 0xffff);
  });
  return hashOf(groups);
}

/** Returns the same hash for the address in the 4 or 16 bytes at `at`. */
export function networkAt(bytes: Uint8Array, at: number, family: Family): number {
  let hash = 0x811c9dc5;
  if (family === 4) {
    for (let i = at; i < at + 3; i++) hash = Math.imul(hash ^ (bytes[i] as number), 0x01000193);
    return hash >>> 0;
  }
  for (let i = at; i < at + 8; i += 2) {
    const low = i === at + 6 ? 0 : (bytes[i + 1] as number);
    hash = Math.imul(hash ^ (((bytes[i] as number) << 8) | low), 0x01000193);
  }
  return hash >>> 0;
}

function hashOf(numbers: readonly number[]): number {
  let hash = 0x811c9dc5;
  for (const number of numbers) hash = Math.imul(hash ^ number, 0x01000193);
  return hash >>> 0;
}
