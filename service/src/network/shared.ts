/**
 * Creates the shared network of each location at the first start of the service. A server without another network is linked to it. It
 * is never deleted.
 */
import type { Range } from "../base/address.ts";
import type { Log } from "../base/log.ts";
import type { Reconciler } from "../engine/flow.ts";
import { requestReconcile } from "../engine/task.ts";
import type { Store } from "../store/db.ts";
import { freeExpired, takeEdge, takeRange } from "./freetable.ts";
import { defaultBandwidth } from "./link.ts";
import type { Areas } from "./model/freeblocks.ts";
import { cidrOf, overlaps, pack, storedBlock } from "./model/plan.ts";
import * as table from "./table.ts";

/** Options of `ensureShared`. */
export interface SharedOptions {
  readonly store: Store;
  readonly log: Log;
  readonly locations: readonly string[];
  /** Blocks of the shared networks, one for each location. */
  readonly blocks: readonly Range[];
  /** The pools of the addresses of their edges. */
  readonly areas: Areas;
  readonly apply: Reconciler;
}

/** Creates missing shared networks. Throws if a block or the public pool in the settings cannot be used. */
export async function ensureShared(options: SharedOptions, now: number): Promise<void> {
  const { store, log, locations, blocks, areas, apply } = options;
  for (const [index, location] of locations.entries()) {
    const range = blocks[index];
    if (range === undefined) throw new Error(`Location ${location} has no block for its shared network.`);
    const wanted = cidrOf(storedBlock(4, range));
    await store.write(async (tx) => {
      await table.lockPools(tx);
      const known = await table.findShared(tx, location);
      if (known !== undefined) {
        if (cidrOf(known) !== wanted)
          log("warn", "The shared network keeps its block. BRUME_SHARED_POOL applies only to new locations.", {
            location,
            block: cidrOf(known),
            setting: wanted,
          });
        return;
      }
      await freeExpired(tx, areas, now);
      const { blocks: taken } = await table.listTaken(tx);
      const clash = taken.find((block) => overlaps(block, storedBlock(4, range)));
      if (clash !== undefined) throw new Error(`The shared network ${wanted} overlaps ${cidrOf(clash)}.`);
      await takeRange(tx, areas, range);
      const edge = await takeEdge(tx, areas);
      if (edge === null)
        throw new Error(
          "The public pool has no address left for the edge of the shared network: BRUME_PUBLIC_POOL needs a block outside of BRUME_SHARED_POOL.",
        );
      const row = await table.insertNetwork(
        tx,
        table.newNetworkRow({
          project_id: null,
          kind: "shared",
          name: "Shared",
          location,
          ...storedBlock(4, range),
          gateway: pack(4, range.first + 1n),
          edge: pack(4, edge),
          first6: null,
          is_dhcp: 1,
          bandwidth: defaultBandwidth.shared,
          created: now,
        }),
      );
      await requestReconcile(tx, apply, row.id);
    });
  }
}
