/**
 * The free blocks of the pools: in any order of changes, a new network gets the same block, edge address and /64 as from a search of all
 * networks, and a start computes the same free blocks.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { parseAddresses, type Range } from "../../service/src/base/address.ts";
import {
  freeExpired,
  recountFree,
  take6,
  takeBlock,
  takeEdge,
  takeRange,
} from "../../service/src/network/freetable.ts";
import { areasOf } from "../../service/src/network/model/freeblocks.ts";
import {
  addressOf,
  blockPools,
  findBlock,
  pack,
  rangeOf,
  storedBlock,
  unpack,
} from "../../service/src/network/model/plan.ts";
import {
  deleteNetwork,
  findNetwork,
  insertNetwork,
  listTaken,
  newNetworkRow,
  type Taken,
} from "../../service/src/network/table.ts";
import type { Tx } from "../../service/src/store/db.ts";
import { type Database, databases, startDatabase } from "../support/databases.ts";
import { runsOf } from "../support/random.ts";

const size6 = 1n << 64n;

/** The search that the free blocks replace: the address of an edge, with all taken ranges. */
function findEdge(pools: readonly Range[], taken: readonly Range[]): bigint | null {
  for (const [index, pool] of pools.entries()) {
    const zone = { first: (blockPools(pools)[index] ?? pool).last + 1n, last: pool.last };
    const start = zone.last - zone.first > 1n ? zone.first + 1n : zone.first;
    const found = findBlock([{ first: start, last: zone.last }], 1n, taken);
    if (found !== null) return found.first;
    for (let at = pool.last; at > pool.first; at--)
      if (!taken.some(({ first, last }) => first <= at && at <= last)) return at;
  }
  return null;
}

function find6(pool: Range, taken: readonly string[]): string | null {
  const used = taken.map((first) => ({ first: unpack(first), last: unpack(first) + size6 - 1n }));
  const found = findBlock([pool], size6, used);
  return found === null ? null : pack(6, found.first);
}

interface Plan {
  readonly block: Range | null;
  readonly edge: bigint | null;
  readonly first6: string | null;
}

function search({ blocks, first6 }: Taken, pools: readonly Range[], pool6: Range, size: bigint): Plan {
  const taken = blocks.map(rangeOf);
  const block = findBlock(blockPools(pools), size, taken);
  const edge = block && findEdge(pools, [...taken, block]);
  return { block, edge, first6: find6(pool6, first6) };
}

type Change =
  | { readonly what: "create"; readonly size: bigint; readonly isUndone: boolean }
  | { readonly what: "delete"; readonly index: number }
  | { readonly what: "wait"; readonly ms: number }
  | { readonly what: "start" };

const change: fc.Arbitrary<Change> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      what: fc.constant("create" as const),
      size: fc.constantFrom(4n, 8n, 8n, 16n, 32n, 64n, 128n, 256n),
      isUndone: fc.nat(9).map((one) => one === 0),
    }),
  },
  { weight: 4, arbitrary: fc.record({ what: fc.constant("delete" as const), index: fc.nat(1000) }) },
  { weight: 2, arbitrary: fc.record({ what: fc.constant("wait" as const), ms: fc.nat(90) }) },
  { weight: 1, arbitrary: fc.record({ what: fc.constant("start" as const) }) },
);

/** Small pools, so that they are exhausted; the last two overlap. */
const poolSets = [["10.0.0.0/28"], ["10.0.0.0/23"], ["10.0.0.0/24", "10.9.0.0/26"], ["10.0.0.0/25", "10.0.0.0/22"]];

class Undone extends Error {}

async function prove({ store }: Database, pools: readonly Range[], pool6: Range, changes: readonly Change[]) {
  const areas = areasOf(pools, pool6);
  const listFree = () => store.read.selectFrom("free_block").selectAll().orderBy("area").orderBy("first").execute();
  let now = 1000;
  const create = async (tx: Tx, size: bigint): Promise<Plan> => {
    await freeExpired(tx, areas, now);
    const expected = search(await listTaken(tx), pools, pool6, size);
    const block = await takeBlock(tx, areas, size);
    const edge = block && (await takeEdge(tx, areas));
    const first6 = await take6(tx, areas);
    assert.deepEqual({ block, edge, first6 }, expected);
    if (block === null || edge === null) throw new Undone();
    const given = { project_id: null, kind: "public", name: "n", location: "L", is_dhcp: 1, bandwidth: 1 } as const;
    const stored = { ...storedBlock(4, block), gateway: null, edge: pack(4, edge), first6, created: now };
    await insertNetwork(tx, newNetworkRow({ ...given, ...stored }));
    return expected;
  };
  await store.write((tx) => recountFree(tx, areas));
  for (const one of changes)
    if (one.what === "wait") now += one.ms;
    else if (one.what === "create")
      await store
        .write(async (tx) => {
          await create(tx, one.size);
          if (one.isUndone) throw new Undone();
        })
        .catch((error: unknown) => assert.ok(error instanceof Undone, String(error)));
    else if (one.what === "delete") {
      const ids = await store.read.selectFrom("network").select("id").orderBy("id").execute();
      const id = ids[one.index % Math.max(1, ids.length)]?.id ?? 0;
      await store.write(async (tx) => {
        const row = await findNetwork(tx, id);
        if (row !== undefined) await deleteNetwork(tx, row, now + 60);
      });
    } else {
      const before = await listFree();
      await store.write((tx) => recountFree(tx, areas));
      assert.deepEqual(await listFree(), before);
    }
  await store.write(async (tx) => {
    for (const table of ["network", "retired_block"] as const) await tx.deleteFrom(table).execute();
  });
}

for (const kind of databases)
  test(`${kind}: free blocks give the same addresses as a search of all networks`, async () => {
    const database = await startDatabase(kind);
    try {
      await fc.assert(
        fc.asyncProperty(
          fc.constantFrom(...poolSets),
          fc.constantFrom("fd00::/60", "fd00::/62"),
          fc.array(change, { minLength: 20, maxLength: 60 }),
          (pools, pool6, changes) => prove(database, pools.map(parseAddresses), parseAddresses(pool6), changes),
        ),
        { numRuns: runsOf(40) },
      );
    } finally {
      await database.close();
    }
  });

test("edges are adjacent at the end of the pool until that part is full", async () => {
  const database = await startDatabase("sqlite");
  const areas = areasOf([parseAddresses("10.64.0.0/16"), parseAddresses("10.0.0.0/30")], null);
  const take = () => database.store.write((tx) => takeEdge(tx, areas));
  const show = (found: bigint | null) => found && addressOf(4, found);
  try {
    await database.store.write((tx) => recountFree(tx, areas));
    assert.equal(show(await take()), "10.64.255.1");
    assert.equal(show(await take()), "10.64.255.2");
    for (let more = 0; more < 253; more++) await take();
    assert.equal(show(await take()), "10.64.255.0");
    assert.equal(show(await take()), "10.64.254.255");
    await database.store.write((tx) => takeRange(tx, areas, parseAddresses("10.64.0.0/16")));
    assert.deepEqual([show(await take()), show(await take())], ["10.0.0.3", "10.0.0.2"]);
    // The first address of a pool is never that of an edge.
    assert.deepEqual([show(await take()), show(await take())], ["10.0.0.1", null]);
  } finally {
    await database.close();
  }
});
