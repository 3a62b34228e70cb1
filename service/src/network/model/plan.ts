/**
 * The address plan: finds the next free block, edge address and server address. Addresses are numbers (RFC 791 and 4291), stored as
 * hexadecimal text of fixed width so that ranges sort. All functions are pure; the caller holds the lock of what it reserves.
 */
import { type Family, formatAddresses, parseAddresses, type Range } from "../../base/address.ts";

const digits = { 4: 8, 6: 32 } as const;

/** Returns an address as it is stored: hexadecimal, 8 digits for IPv4, 32 for IPv6. */
export const pack = (family: Family, value: bigint): string => value.toString(16).padStart(digits[family], "0");
/** Returns a stored address as a number. */
export const unpack = (text: string): bigint => BigInt(`0x${text}`);
/** Returns a stored address in canonical text (RFC 5952 for IPv6). */
export const showAddress = (text: string): string => {
  const value = unpack(text);
  return formatAddresses(text.length === digits[4] ? 4 : 6, { first: value, last: value });
};
/** Returns a number as an address in canonical text. */
export const addressOf = (family: Family, value: bigint): string =>
  formatAddresses(family, { first: value, last: value });

/** A block as it is stored: its first and last address, see `pack`. */
export interface StoredBlock {
  readonly first: string;
  readonly last: string;
}

/** Returns a stored block as numbers. */
export const rangeOf = ({ first, last }: StoredBlock): Range => ({ first: unpack(first), last: unpack(last) });
/** Returns the form of a range that rows contain. */
export const storedBlock = (family: Family, { first, last }: Range): StoredBlock => ({
  first: pack(family, first),
  last: pack(family, last),
});

const sizeOf = ({ first, last }: Range): bigint => last - first + 1n;
/** Returns the prefix length of an IPv4 block. */
export const prefixOf = (block: StoredBlock): number => 33 - sizeOf(rangeOf(block)).toString(2).length;
/** Returns an IPv4 block as `10.64.0.8/29`. */
export const cidrOf = (block: StoredBlock): string => `${showAddress(block.first)}/${prefixOf(block)}`;
/** Returns the netmask of a prefix length: `255.255.255.248` for 29. */
export const maskOf = (prefix: number): string => addressOf(4, (1n << 32n) - (1n << BigInt(32 - prefix)));
/** Returns the /64 that begins at the stored address `first6`, as `fd24::/64`. */
export const cidr6Of = (first6: string): string => `${showAddress(first6)}/64`;
/** Returns the edge's address in the /64. */
export const gateway6Of = (first6: string): string => addressOf(6, unpack(first6) + 1n);
/** Returns a server's address in the /64: its offset there is that of its IPv4 address `ip` in `block`. */
export const address6Of = (first6: string, block: StoredBlock, ip: string): string =>
  addressOf(6, unpack(first6) + unpack(ip) - unpack(block.first));

const overlap = (one: Range, other: Range): boolean => one.first <= other.last && other.first <= one.last;
/** Returns whether two blocks have an address in common. */
export const overlaps = (one: StoredBlock, other: StoredBlock): boolean => overlap(rangeOf(one), rangeOf(other));

/**
 * Returns the ranges of the addresses in stored IPv4 blocks, ascending. Adjacent blocks are one range: thousands of networks become a few
 * ranges. Computes with numbers, which is faster than with `bigint`.
 */
export function mergeBlocks(blocks: readonly StoredBlock[]): Range[] {
  const sorted = blocks
    .map(({ first, last }) => ({ first: Number.parseInt(first, 16), last: Number.parseInt(last, 16) }))
    .sort((a, b) => a.first - b.first);
  const merged: { first: number; last: number }[] = [];
  for (const { first, last } of sorted) {
    const before = merged.at(-1);
    if (before === undefined || first > before.last + 1) merged.push({ first, last });
    else before.last = Math.max(before.last, last);
  }
  return merged.map(({ first, last }) => ({ first: BigInt(first), last: BigInt(last) }));
}

/** Returns the lowest free block of `size` addresses in the first pool that has one, aligned to its size; null: none is free. */
export function findBlock(pools: readonly Range[], size: bigint, taken: readonly Range[]): Range | null {
  const sorted = [...taken].sort((a, b) => (a.first < b.first ? -1 : a.first > b.first ? 1 : 0));
  for (const pool of pools) {
    let first = pool.first;
    for (let next = 0; first + size - 1n <= pool.last; ) {
      const other = sorted[next];
      if (other === undefined || other.first > first + size - 1n) return { first, last: first + size - 1n };
      next += 1;
      if (other.last >= first) first = ((other.last + size) / size) * size;
    }
  }
  return null;
}

/** Returns the last 1/256 of a pool. No blocks are taken from it, so that edge addresses are adjacent. */
const edgeZone = (pool: Range): Range => {
  const size = sizeOf(pool) / 256n;
  return { first: pool.last - (size > 0n ? size : 1n) + 1n, last: pool.last };
};

/** Returns the parts of the pools that blocks are taken from: all but the edge zones. */
export const blockPools = (pools: readonly Range[]): Range[] =>
  pools.map((pool) => ({ first: pool.first, last: edgeZone(pool).first - 1n }));

/** Returns the addresses of a block that servers can have: all but the first and the last. */
export function serverRangeOf(block: StoredBlock): Range {
  const { first, last } = rangeOf(block);
  return { first: first + 1n, last: last - 1n };
}

/**
 * Returns the lowest block of 256 addresses with a server address that is neither taken nor the gateway, without the addresses
 * that servers cannot have; null: the network is full. `counts`: the taken addresses of such blocks, in order.
 */
export function findFreeBlock(
  block: StoredBlock,
  gateway: string | null,
  counts: readonly { readonly block: string; readonly taken: number }[],
): Range | null {
  const gatewayValue = gateway === null ? null : unpack(gateway);
  const { first, last } = serverRangeOf(block);
  const taken = new Map(counts.map((count) => [count.block, count.taken]));
  for (let start = first; start <= last; ) {
    const end = start | 255n;
    const part = { first: start, last: end < last ? end : last };
    const isGatewayIn = gatewayValue !== null && gatewayValue >= part.first && gatewayValue <= part.last;
    const used = (taken.get(pack(4, start).slice(0, 6)) ?? 0) + (isGatewayIn ? 1 : 0);
    if (BigInt(used) < sizeOf(part)) return part;
    start = end + 1n;
  }
  return null;
}

/** Returns the lowest address of a part that is neither in `taken`, as stored, nor the gateway; null: none is free. */
export function findFreeIn(part: Range, gateway: string | null, taken: ReadonlySet<string>): string | null {
  for (let value = part.first; value <= part.last; value++) {
    const address = pack(4, value);
    if (address !== gateway && !taken.has(address)) return address;
  }
  return null;
}

/**
 * Returns the lowest server address of the whole network that is neither taken nor the gateway, as it is stored; null: none is free.
 * A binary search over `countTaken`, the number of taken addresses in a range, so that no rows are read.
 */
export async function findFreeAddress(
  block: StoredBlock,
  gateway: string | null,
  countTaken: (first: string, last: string) => Promise<number>,
): Promise<string | null> {
  const gatewayValue = gateway === null ? null : unpack(gateway);
  const isFull = async (first: bigint, last: bigint): Promise<boolean> => {
    const taken = await countTaken(pack(4, first), pack(4, last));
    return (
      BigInt(taken + (gatewayValue !== null && gatewayValue >= first && gatewayValue <= last ? 1 : 0)) > last - first
    );
  };
  let { first, last } = serverRangeOf(block);
  if (await isFull(first, last)) return null;
  while (first < last) {
    const middle = (first + last) / 2n;
    if (await isFull(first, middle)) first = middle + 1n;
    else last = middle;
  }
  return pack(4, first);
}

/** Returns the number of servers that a network can have. */
export function countServerAddresses(block: StoredBlock, gateway: string | null): number {
  const { first, last } = serverRangeOf(block);
  const blocked = gateway !== null && unpack(gateway) >= first && unpack(gateway) <= last ? 1 : 0;
  return Number(last - first + 1n) - blocked;
}

/** Default prefix length of a public network. */
export const defaultCapacity = 29;

/** Reads `29`, `/29` or `8` (addresses) as a prefix length from 24 to 30; null: invalid. */
export function readCapacity(text: string): number | null {
  const number = Number(/^\/?(\d{1,3})$/.exec(text.trim())?.[1] ?? NaN);
  if (number >= 24 && number <= 30) return number;
  const prefix = 32 - Math.log2(number);
  return !text.includes("/") && number >= 8 && number <= 256 && Number.isInteger(prefix) ? prefix : null;
}

const privateBlocks = ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"].map(parseAddresses);
const isWithin = (inner: Range, outer: Range): boolean => inner.first >= outer.first && inner.last <= outer.last;

/** Blocks that the internet does not route: RFC 1918, RFC 6598, link local (RFC 3927) and loopback. */
const unrouted = [...privateBlocks, ...["100.64.0.0/10", "169.254.0.0/16", "127.0.0.0/8"].map(parseAddresses)];
/** Returns whether the internet does not route the IPv4 block, so that NAT applies to it. */
export const isPrivate = (block: StoredBlock): boolean => unrouted.some((outer) => isWithin(rangeOf(block), outer));
/** Returns whether the internet does not route the IPv4 address. */
export const isUnrouted = (address: string): boolean =>
  unrouted.some((outer) => isWithin(parseAddresses(address), outer));

/** Pool of the default blocks of private networks. */
const privatePool = parseAddresses("172.16.0.0/12");

/** Result of `planPrivate`: a block, or the invalid field and the reason, which completes "CIDR must be …". */
export type PrivateBlock =
  | { readonly block: StoredBlock; readonly gateway: string | null }
  | { readonly field: "CIDR" | "Gateway"; readonly reason: string };

/**
 * Returns the block of a private network: `CIDR`, else the /24 around `Gateway`, else a free /24 of the default pool. `taken` are
 * the blocks of the project's other private networks. Null: the default pool is full.
 */
export function planPrivate(
  input: { readonly CIDR?: string | undefined; readonly Gateway?: string | undefined },
  taken: readonly StoredBlock[],
): PrivateBlock | null {
  const gateway = input.Gateway ? readAddress4(input.Gateway) : undefined;
  if (gateway === null) return { field: "Gateway", reason: "an IPv4 address such as 10.0.0.1" };
  let range: Range | null;
  if (input.CIDR) {
    range = readBlock4(input.CIDR);
    const prefix = range === null ? 0 : 33 - sizeOf(range).toString(2).length;
    if (range === null || prefix < 16 || prefix > 29 || !privateBlocks.some((outer) => isWithin(range as Range, outer)))
      return {
        field: "CIDR",
        reason:
          "a block of /16 to /29 without host bits inside 10.0.0.0/8, 172.16.0.0/12 or 192.168.0.0/16, such as 10.0.0.0/24",
      };
  } else if (gateway !== undefined) {
    const first = gateway - (gateway % 256n);
    range = { first, last: first + 255n };
    if (!privateBlocks.some((outer) => isWithin(range as Range, outer)))
      return { field: "Gateway", reason: "an address inside 10.0.0.0/8, 172.16.0.0/12 or 192.168.0.0/16" };
  } else range = findBlock([privatePool], 256n, taken.map(rangeOf));
  if (range === null) return null;
  if (gateway !== undefined && (gateway <= range.first || gateway >= range.last))
    return { field: "Gateway", reason: `an address inside ${formatAddresses(4, range)}, except its first and last` };
  return { block: storedBlock(4, range), gateway: gateway === undefined ? null : pack(4, gateway) };
}

/** Reads an IPv4 address as a number; null: invalid. */
export function readAddress4(text: string): bigint | null {
  try {
    const { family, first, last } = parseAddresses(text);
    return family === 4 && first === last && !text.includes("/") && !text.includes("-") ? first : null;
  } catch {
    return null;
  }
}

/** Reads an IPv4 block without host bits; null: invalid. */
function readBlock4(text: string): Range | null {
  if (text.includes("-") || !text.includes("/")) return null;
  try {
    const { family, first, last } = parseAddresses(text);
    return family === 4 ? { first, last } : null;
  } catch {
    return null;
  }
}

/** Returns the MAC address of a link: `02:42` and the link's id. It is locally administered (IEEE 802), unique and never changes. */
export function macOf(link: number): string {
  const digits = link.toString(16).padStart(8, "0");
  return `02:42:${digits.slice(0, 2)}:${digits.slice(2, 4)}:${digits.slice(4, 6)}:${digits.slice(6, 8)}`;
}
