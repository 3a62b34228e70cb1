/**
 * Parses IP addresses of records. IPv4 must be four decimal numbers: some programs read a leading zero as octal, so `010.0.0.1` is
 * rejected. IPv6 is parsed by RFC 4291 section 2.2 and stored in the form of RFC 5952, so that equal addresses have equal values. Zone ids
 * (`%eth0`) have no meaning in DNS and are rejected.
 */

/** Returns the address unchanged, or null if the text is no IPv4 address. */
export function readIPv4(text: string): string | null {
  return parseIPv4(text) === -1 ? null : text;
}

/** Returns the address in the form of RFC 5952, section 4 (IPv4-mapped: RFC 5952, section 5), or null if the text is no IPv6 address. */
export function readIPv6(text: string): string | null {
  const groups = text.length > 45 ? null : parseIPv6(text);
  return groups === null ? null : formatIPv6(groups);
}

/** Returns the type and value of the record for an address, or null if the text is no address. */
export function readAddress(text: string): { readonly type: "A" | "AAAA"; readonly value: string } | null {
  const v4 = readIPv4(text);
  if (v4 !== null) return { type: "A", value: v4 };
  const v6 = readIPv6(text);
  return v6 === null ? null : { type: "AAAA", value: v6 };
}

/** Returns the 32 bits, or -1. */
function parseIPv4(text: string): number {
  if (text.length < 7 || text.length > 15) return -1;
  let bits = 0;
  let octet = 0;
  let digits = 0;
  let dots = 0;
  for (let i = 0; i <= text.length; i++) {
    const c = i === text.length ? 46 : text.charCodeAt(i);
    if (c === 46) {
      if (digits === 0 || ++dots > 4) return -1;
      bits = bits * 256 + octet;
      octet = digits = 0;
    } else {
      if (c < 48 || c > 57 || (digits > 0 && octet === 0)) return -1;
      octet = octet * 10 + c - 48;
      if (++digits > 3 || octet > 255) return -1;
    }
  }
  return dots === 4 ? bits : -1;
}

/** Returns eight groups of 16 bits, or null. */
function parseIPv6(text: string): number[] | null {
  const gap = text.indexOf("::");
  if (gap < 0) {
    const groups = parseGroups(text, true);
    return groups?.length === 8 ? groups : null;
  }
  const head = gap === 0 ? [] : parseGroups(text.slice(0, gap), false);
  const tail = gap + 2 === text.length ? [] : parseGroups(text.slice(gap + 2), true);
  if (head === null || tail === null || head.length + tail.length > 7) return null;
  return [...head, ...new Array<number>(8 - head.length - tail.length).fill(0), ...tail];
}

function parseGroups(text: string, isEnd: boolean): number[] | null {
  const groups: number[] = [];
  const parts = text.split(":");
  for (let i = 0; i < parts.length; i++) {
    const part = parts[i] as string;
    if (isEnd && i === parts.length - 1 && part.includes(".")) {
      const bits = parseIPv4(part);
      if (bits === -1) return null;
      groups.push(Math.floor(bits / 65_536), bits % 65_536);
    } else {
      const group = parseHex(part);
      if (group === -1) return null;
      groups.push(group);
    }
  }
  return groups;
}

function parseHex(text: string): number {
  if (text.length === 0 || text.length > 4) return -1;
  let value = 0;
  for (let i = 0; i < text.length; i++) {
    const c = text.charCodeAt(i) | 32;
    if (c >= 48 && c <= 57 && text.charCodeAt(i) === c) value = value * 16 + c - 48;
    else if (c >= 97 && c <= 102) value = value * 16 + c - 87;
    else return -1;
  }
  return value;
}

function formatIPv6(groups: readonly number[]): string {
  let start = -1;
  let length = 1;
  for (let i = 0; i < 8; i++) {
    let end = i;
    while (end < 8 && groups[end] === 0) end++;
    if (end - i > length) {
      start = i;
      length = end - i;
    }
    i = end;
  }
  if (start === 0 && length === 5 && groups[5] === 0xffff) {
    const [high = 0, low = 0] = groups.slice(6);
    return `::ffff:${high >> 8}.${high & 255}.${low >> 8}.${low & 255}`;
  }
  const hex = (from: number, to: number) =>
    groups
      .slice(from, to)
      .map((group) => group.toString(16))
      .join(":");
  return start === -1 ? hex(0, 8) : `${hex(0, start)}::${hex(start + length, 8)}`;
}
