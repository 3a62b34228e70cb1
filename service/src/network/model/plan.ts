/**
 * The address plan: which block, edge address and server address is the next free one. Addresses are numbers (RFC 791 and 4291),
 * stored as hexadecimal texts of fixed width so that ranges sort; everything here is pure, and whoever asks holds the lock.
 */
import { type Family, formatAddresses, parseAddresses, type Range } from "../../base/address.ts";

const digits = { 4: 8, 6: 32 } as const;

/** As it is stored. */
export const pack = (family: Family, value: bigint): string => value.toString(16).padStart(digits[family], "0");
export const unpack = (text: string): bigint => BigInt(`0x${text}`);
/** A stored address as people write it (RFC 5952 for IPv6). */
export const showAddress = (text: string): string => {
  const value = unpack(text);
  return formatAddresses(text.length === digits[4] ? 4 : 6, { first: value, last: value });
};
export const addressOf = (family: Family, value: bigint): string =>
  formatAddresses(family, { first: value, last: value });

export interface StoredBlock {
  readonly first: string;
  readonly last: string;
}

export const rangeOf = ({ first, last }: StoredBlock): Range => ({ first: unpack(first), last: unpack(last) });
export const storedBlock = (family: Family, { first, last }: Range): StoredBlock => ({
  first: pack(family, first),
  last: pack(family, last),
});

const sizeOf = ({ first, last }: Range): bigint => last - first + 1n;
/** Prefix length of an IPv4 block. */
export const prefixOf = (block: StoredBlock): number => 33 - sizeOf(rangeOf(block)).toString(2).length;
export const cidrOf = (block: StoredBlock): string => `${showAddress(block.first)}/${prefixOf(block)}`;
/** `255.255.255.248` for 29. */
export const maskOf = (prefix: number): string => addressOf(4, (1n << 32n) - (1n << BigInt(32 - prefix)));
export const cidr6Of = (first6: string): string => `${showAddress(first6)}/64`;
/** The edge's address in the /64, and that of the server whose IPv4 address is so many after the block's first. */
export const gateway6Of = (first6: string): string => addressOf(6, unpack(first6) + 1n);
export const address6Of = (first6: string, block: StoredBlock, ip: string): string =>
  addressOf(6, unpack(first6) + unpack(ip) - unpack(block.first));

const overlap = (one: Range, other: Range): boolean => one.first <= other.last && other.first <= one.last;
export const overlaps = (one: StoredBlock, other: StoredBlock): boolean => overlap(rangeOf(one), rangeOf(other));

/** The first block of `size` addresses, aligned to its size, that lies in one of the pools and touches nothing taken. */
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

/** What is kept free of blocks at the end of a pool, so that edges stand together: the last 256th. */
const edgeZone = (pool: Range): Range => {
  const size = sizeOf(pool) / 256n;
  return { first: pool.last - (size > 0n ? size : 1n) + 1n, last: pool.last };
};

/** What of the pools blocks are taken from. */
export const blockPools = (pools: readonly Range[]): Range[] =>
  pools.map((pool) => ({ first: pool.first, last: edgeZone(pool).first - 1n }));

/** A free address for an edge: at the end of a pool from its zone's second address on, then wherever one is left, highest first. */
export function findEdge(pools: readonly Range[], taken: readonly Range[]): bigint | null {
  for (const pool of pools) {
    const zone = edgeZone(pool);
    const start = sizeOf(zone) > 2n ? zone.first + 1n : zone.first;
    const found = findBlock([{ first: start, last: zone.last }], 1n, taken) ?? findLast(pool, taken);
    if (found !== null) return found.first;
  }
  return null;
}

function findLast(pool: Range, taken: readonly Range[]): Range | null {
  let at = pool.last;
  for (const { first, last } of [...taken].sort((a, b) => (a.last > b.last ? -1 : a.last < b.last ? 1 : 0))) {
    if (last < at) break;
    if (first <= at) at = first - 1n;
  }
  return at > pool.first ? { first: at, last: at } : null;
}

/** Who of a block is not for servers, and the first and last who may be. */
export function seatsOf(block: StoredBlock): Range {
  const { first, last } = rangeOf(block);
  return { first: first + 1n, last: last - 1n };
}

/**
 * The lowest address for a server that is neither taken nor the gateway; null: the network is full. Halves what is left by how many
 * are taken between two addresses, so that ten thousand servers need not be read to make room for the next.
 */
export async function findSeat(
  block: StoredBlock,
  gateway: string | null,
  countTaken: (first: string, last: string) => Promise<number>,
): Promise<string | null> {
  const own = gateway === null ? null : unpack(gateway);
  const isFull = async (first: bigint, last: bigint): Promise<boolean> => {
    const taken = await countTaken(pack(4, first), pack(4, last));
    return BigInt(taken + (own !== null && own >= first && own <= last ? 1 : 0)) > last - first;
  };
  let { first, last } = seatsOf(block);
  if (await isFull(first, last)) return null;
  while (first < last) {
    const middle = (first + last) / 2n;
    if (await isFull(first, middle)) first = middle + 1n;
    else last = middle;
  }
  return pack(4, first);
}

/** How many servers a network can have. */
export function countSeats(block: StoredBlock, gateway: string | null): number {
  const { first, last } = seatsOf(block);
  const blocked = gateway !== null && unpack(gateway) >= first && unpack(gateway) <= last ? 1 : 0;
  return Number(last - first + 1n) - blocked;
}

/** Prefix length of a network when nobody says which. */
export const defaultCapacity = 29;

/** `29`, `/29` or `8` (addresses) as prefix length 24 to 30; null: none of them. */
export function readCapacity(text: string): number | null {
  const number = Number(/^\/?(\d{1,3})$/.exec(text.trim())?.[1] ?? NaN);
  if (number >= 24 && number <= 30) return number;
  const prefix = 32 - Math.log2(number);
  return !text.includes("/") && number >= 8 && number <= 256 && Number.isInteger(prefix) ? prefix : null;
}

const privateBlocks = ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"].map(parseAddresses);
const isWithin = (inner: Range, outer: Range): boolean => inner.first >= outer.first && inner.last <= outer.last;

/** Whether the world outside does not route it: what leaves is translated (RFC 1918, RFC 4193, RFC 6598, and loopback and link local). */
const unrouted = [...privateBlocks, ...["100.64.0.0/10", "169.254.0.0/16", "127.0.0.0/8"].map(parseAddresses)];
export const isPrivate = (block: StoredBlock): boolean => unrouted.some((outer) => isWithin(rangeOf(block), outer));
/** Of one IPv4 address. */
export const isUnrouted = (address: string): boolean =>
  unrouted.some((outer) => isWithin(parseAddresses(address), outer));

/** Where private networks get their blocks when nobody says which. */
const privatePool = parseAddresses("172.16.0.0/12");

export type PrivateBlock =
  | { readonly block: StoredBlock; readonly gateway: string | null }
  | { readonly field: "CIDR" | "Gateway"; readonly reason: string };

/** The block of a private network by what was asked for, `taken` being the project's others; `reason` completes "CIDR must be …". */
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
    return { field: "Gateway", reason: `an address inside ${formatAddresses(4, range)} but its first and last` };
  return { block: storedBlock(4, range), gateway: gateway === undefined ? null : pack(4, gateway) };
}

/** An IPv4 address as a number; null: it is none. */
export function readAddress4(text: string): bigint | null {
  try {
    const { family, first, last } = parseAddresses(text);
    return family === 4 && first === last && !text.includes("/") && !text.includes("-") ? first : null;
  } catch {
    return null;
  }
}

/** An IPv4 block without host bits; null: it is none. */
function readBlock4(text: string): Range | null {
  if (text.includes("-") || !text.includes("/")) return null;
  try {
    const { family, first, last } = parseAddresses(text);
    return family === 4 ? { first, last } : null;
  } catch {
    return null;
  }
}

const size6 = 1n << 64n;

/** The first address of a free /64 of the pool, `taken` being those of others; null: none is left. */
export function find6(pool: Range, taken: readonly string[]): string | null {
  const used = taken.map((first) => ({ first: unpack(first), last: unpack(first) + size6 - 1n }));
  const found = findBlock([pool], size6, used);
  return found === null ? null : pack(6, found.first);
}

/** Returns the MAC address of a link: `02:42` and the link's id. It is locally administered (IEEE 802), unique and never changes. */
export function macOf(link: number): string {
  const digits = link.toString(16).padStart(8, "0");
  return `02:42:${digits.slice(0, 2)}:${digits.slice(2, 4)}:${digits.slice(4, 6)}:${digits.slice(6, 8)}`;
}
