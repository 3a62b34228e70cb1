/**
 * SQL of the free blocks of the address pools. They are changed in the transaction of each change, so that a new network gets the lowest
 * free block without reading the others: a lookup for each size of block. Callers that write hold `lockPools`.
 */
import type { Range } from "../base/address.ts";
import { prepare, type Reader, type Tx } from "../store/db.ts";
import {
  type Area,
  type Areas,
  blocksOf,
  buddyOf,
  type FreeBlock,
  freeBlocks,
  lastOf,
  mostBits,
  parentOf,
  sizeOf,
  takenBy,
  within,
  without,
} from "./model/freeblocks.ts";
import { mergeBlocks, pack, type StoredBlock, unpack } from "./model/plan.ts";
import { listTaken, lockPools } from "./table.ts";

interface Row {
  readonly area: string;
  readonly bits: number;
  readonly first: string;
}

const blockOf = ({ first, bits }: Pick<Row, "first" | "bits">): FreeBlock => ({ first: unpack(first), bits });
const rowOf = ({ key, family }: Area, { first, bits }: FreeBlock): Row => ({
  area: key,
  bits,
  first: pack(family, first),
});

const put = prepare<Row>()((db, p) =>
  db
    .insertInto("free_block")
    .values({ area: p("area"), bits: p("bits"), first: p("first") })
    .onConflict((conflict) => conflict.columns(["area", "first"]).doNothing()),
);
const remove = prepare<Row>()((db, p) =>
  db
    .deleteFrom("free_block")
    .where("area", "=", p("area"))
    .where("first", "=", p("first"))
    .where("bits", "=", p("bits")),
);
const lowest = prepare<{ area: string; bits: number }>()((db, p) =>
  db
    .selectFrom("free_block")
    .select(["bits", "first"])
    .where("area", "=", p("area"))
    .where("bits", "=", p("bits"))
    .orderBy("first")
    .limit(1),
);
const lowestOfAll = prepare<{ area: string }>()((db, p) =>
  db.selectFrom("free_block").select(["bits", "first"]).where("area", "=", p("area")).orderBy("first").limit(1),
);
const highestUpTo = prepare<{ area: string; last: string }>()((db, p) =>
  db
    .selectFrom("free_block")
    .select(["bits", "first"])
    .where("area", "=", p("area"))
    .where("first", "<=", p("last"))
    .orderBy("first", "desc")
    .limit(1),
);
const between = prepare<{ area: string; first: string; last: string }>()((db, p) =>
  db
    .selectFrom("free_block")
    .select(["bits", "first"])
    .where("area", "=", p("area"))
    .where("first", ">=", p("first"))
    .where("first", "<=", p("last")),
);

/** Returns the lowest free block of 2^`bits` addresses of an area; null: none is free. */
async function findLowest(db: Reader, area: Area, bits: number): Promise<FreeBlock | null> {
  if (bits <= area.least) {
    const row = await lowestOfAll.first(db, { area: area.key });
    return row === undefined ? null : { first: unpack(row.first), bits };
  }
  const sizes = Array.from({ length: Math.max(0, mostBits(area) - bits + 1) }, (_, more) => bits + more);
  const rows = await Promise.all(sizes.map((size) => lowest.first(db, { area: area.key, bits: size })));
  const first = rows.reduce<string | null>(
    (least, row) => (row !== undefined && (least === null || row.first < least) ? row.first : least),
    null,
  );
  return first === null ? null : { first: unpack(first), bits };
}

/** Returns the highest free address of an area; null: none is free. */
async function findHighest(db: Reader, area: Area | null): Promise<bigint | null> {
  if (area === null) return null;
  const row = await highestUpTo.first(db, { area: area.key, last: pack(area.family, area.last) });
  return row === undefined ? null : lastOf(blockOf(row));
}

/** Removes a range from the free blocks of all areas. */
export async function takeRange(tx: Tx, areas: Areas, range: Range): Promise<void> {
  for (const area of areas.all) {
    const part = within(range, area);
    if (part === null) continue;
    const last = pack(area.family, part.last);
    const [inside, before] = await Promise.all([
      between.all(tx, { area: area.key, first: pack(area.family, part.first), last }),
      highestUpTo.first(tx, { area: area.key, last: pack(area.family, part.first) }),
    ]);
    const touched = new Map([...inside, ...(before ? [before] : [])].map((row) => [row.first, blockOf(row)]));
    for (const block of touched.values()) {
      const outer = { first: block.first, last: lastOf(block) };
      if (within(outer, part) === null) continue;
      remove.send(tx, rowOf(area, block));
      for (const left of without(outer, part).flatMap(blocksOf)) put.send(tx, rowOf(area, left));
    }
  }
}

/** Adds a range to the free blocks of all areas, and joins them with their neighbours. */
async function giveRange(tx: Tx, areas: Areas, range: Range): Promise<void> {
  for (const area of areas.all) {
    const part = within(range, area);
    for (let block of part === null ? [] : blocksOf(part)) {
      while (block.bits < mostBits(area) && (await remove.run(tx, rowOf(area, buddyOf(block)))) > 0)
        block = parentOf(block);
      put.send(tx, rowOf(area, block));
    }
  }
}

/** Takes the lowest free block of `size` addresses in the first pool that has one; null: none is free. */
export async function takeBlock(tx: Tx, areas: Areas, size: bigint): Promise<Range | null> {
  for (const { blocks } of areas.pools) {
    const found = await findLowest(tx, blocks, mostBits({ first: 1n, last: size }));
    if (found === null) continue;
    const range = { first: found.first, last: found.first + size - 1n };
    await takeRange(tx, areas, range);
    return range;
  }
  return null;
}

/**
 * Takes an address for an edge, in the first pool that has one: the lowest of the edge zone, else the highest of the pool but its first;
 * null: none is free.
 */
export async function takeEdge(tx: Tx, areas: Areas): Promise<bigint | null> {
  for (const { blocks, edges, spare } of areas.pools) {
    const lowestEdge = (await findLowest(tx, edges, 0))?.first ?? null;
    const found = lowestEdge ?? (await findHighest(tx, spare)) ?? (await findHighest(tx, blocks));
    if (found === null || (lowestEdge === null && found === blocks.first)) continue;
    await takeRange(tx, areas, { first: found, last: found });
    return found;
  }
  return null;
}

/** Takes the lowest free /64 of the IPv6 pool. Returns its first address as it is stored; null: none is free. */
export async function take6(tx: Tx, areas: Areas): Promise<string | null> {
  const found = areas.pool6 && (await findLowest(tx, areas.pool6, areas.pool6.least));
  if (found === null) return null;
  await takeRange(tx, areas, { first: found.first, last: found.first + sizeOf(found) - 1n });
  return pack(6, found.first);
}

const expire = prepare<{ now: number }>()((db, p) =>
  db.deleteFrom("retired_block").where("until", "<=", p("now")).returning(["first", "last"]),
);

/** Frees the retired blocks whose time is over. */
export async function freeExpired(tx: Tx, areas: Areas, now: number): Promise<void> {
  const expired: StoredBlock[] = await expire.all(tx, { now });
  for (const block of expired) await giveRange(tx, areas, takenBy(block));
}

/** Computes the free blocks of all areas again. For the start of the service: the pools, or the networks by another program, may have changed. */
export async function recountFree(tx: Tx, areas: Areas): Promise<void> {
  await lockPools(tx);
  const { blocks, first6 } = await listTaken(tx);
  const taken4 = mergeBlocks(blocks);
  const taken6 = [...first6].sort().map((first) => takenBy({ first, last: first }));
  const rows = areas.all.flatMap((area) =>
    freeBlocks(area, area.family === 4 ? taken4 : taken6).map((block) => rowOf(area, block)),
  );
  const idOf = ({ area, bits, first }: Row): string => `${area} ${first} ${bits}`;
  const wanted = new Map(rows.map((row) => [idOf(row), row]));
  const stored: Row[] = await tx.selectFrom("free_block").selectAll().execute();
  for (const row of stored) if (!wanted.delete(idOf(row))) remove.send(tx, row);
  for (const row of wanted.values()) put.send(tx, row);
}
