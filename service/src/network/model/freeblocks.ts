/**
 * The free addresses of the pools as blocks of a power of two, each aligned to its size and as large as possible (buddies). Every free
 * aligned block is inside exactly one of them, so the lowest free block of a size is the begin of the lowest one that is large enough.
 * All functions are pure.
 */
import type { Range } from "../../base/address.ts";
import { blockPools, pack, rangeOf, type StoredBlock, unpack } from "./plan.ts";

/** A free block of 2^`bits` addresses. */
export interface FreeBlock {
  readonly first: bigint;
  readonly bits: number;
}

/** A part of a pool whose free blocks are stored together. */
export interface Area extends Range {
  /** Stored with each block: first and last address. */
  readonly key: string;
  readonly family: 4 | 6;
  /** Blocks have at least 2^`least` addresses. */
  readonly least: number;
}

/** The areas of an IPv4 pool. */
export interface PoolAreas {
  /** Where blocks are taken from. */
  readonly blocks: Area;
  /** Where addresses of edges are taken from, the lowest first. */
  readonly edges: Area;
  /** An address between them, which is taken when there is no other edge; null: there is none. */
  readonly spare: Area | null;
}

/** The areas of all pools. */
export interface Areas {
  readonly pools: readonly PoolAreas[];
  readonly pool6: Area | null;
  readonly all: readonly Area[];
}

/** Addresses of the IPv6 block of a network, as a power of two. */
const bits6 = 64;

const areaOf = (family: 4 | 6, { first, last }: Range): Area => ({
  key: `${pack(family, first)}-${pack(family, last)}`,
  family,
  least: family === 4 ? 0 : bits6,
  first,
  last,
});

/** Returns the areas of the pools. */
export function areasOf(pools: readonly Range[], pool6: Range | null): Areas {
  const areas = pools.map((pool): PoolAreas => {
    const [blocks = pool] = blockPools([pool]);
    const zone = { first: blocks.last + 1n, last: pool.last };
    const isSpared = zone.last - zone.first > 1n;
    return {
      blocks: areaOf(4, blocks),
      edges: areaOf(4, isSpared ? { first: zone.first + 1n, last: zone.last } : zone),
      spare: isSpared ? areaOf(4, { first: zone.first, last: zone.first }) : null,
    };
  });
  const area6 = pool6 && areaOf(6, pool6);
  const all = areas.flatMap(({ blocks, edges, spare }) => [blocks, edges, ...(spare ? [spare] : [])]);
  if (area6) all.push(area6);
  const byKey = new Map(all.map((area) => [area.key, area]));
  return { pools: areas, pool6: area6, all: [...byKey.values()] };
}

/** Returns the number of addresses of a block, as a power of two. */
const bitsOf = (size: bigint): number => size.toString(2).length - 1;
export const sizeOf = ({ bits }: Pick<FreeBlock, "bits">): bigint => 1n << BigInt(bits);
export const lastOf = (block: FreeBlock): bigint => block.first + sizeOf(block) - 1n;

/** Returns the blocks that together are a range, ascending, each as large as its alignment and the rest of the range allow. */
export function blocksOf({ first, last }: Range): FreeBlock[] {
  const blocks: FreeBlock[] = [];
  for (let at = first; at <= last; ) {
    const fitting = bitsOf(last - at + 1n);
    const aligned = at === 0n ? fitting : bitsOf(at & -at);
    const block = { first: at, bits: Math.min(fitting, aligned) };
    blocks.push(block);
    at += sizeOf(block);
  }
  return blocks;
}

/** Returns the part of a range that is in an area; null: none is. */
export function within({ first, last }: Range, area: Range): Range | null {
  const part = { first: first > area.first ? first : area.first, last: last < area.last ? last : area.last };
  return part.first <= part.last ? part : null;
}

/** Returns the parts of `outer` before and after `inner`. */
export const without = (outer: Range, inner: Range): Range[] =>
  [
    { first: outer.first, last: inner.first - 1n },
    { first: inner.last + 1n, last: outer.last },
  ].filter(({ first, last }) => first <= last);

/** Returns the block of the same size with which a block is one block of twice the size. */
export const buddyOf = ({ first, bits }: FreeBlock): FreeBlock => ({ first: first ^ (1n << BigInt(bits)), bits });

/** Returns the block of twice the size that a block is in. */
export const parentOf = ({ first, bits }: FreeBlock): FreeBlock => ({
  first: first & ~(1n << BigInt(bits)),
  bits: bits + 1,
});

/** Returns the largest size of a block in the area, as a power of two. */
export const mostBits = ({ first, last }: Range): number => bitsOf(last - first + 1n);

/** Returns the addresses that a stored block takes: of an IPv6 block only the first is stored. */
export function takenBy(block: StoredBlock): Range {
  if (block.first.length === 8) return rangeOf(block);
  const first = unpack(block.first);
  return { first, last: first + (1n << BigInt(bits6)) - 1n };
}

/** Returns the free blocks of an area, ascending. `taken` is ascending. */
export function freeBlocks(area: Area, taken: readonly Range[]): FreeBlock[] {
  const free: FreeBlock[] = [];
  let at = area.first;
  for (const { first, last } of taken) {
    if (last < at) continue;
    if (first > area.last) break;
    free.push(...blocksOf({ first: at, last: first - 1n }));
    at = last + 1n;
  }
  free.push(...blocksOf({ first: at, last: area.last }));
  return free;
}
