/**
 * IPv6 for existing networks. If the operator has set a pool, each start of the service assigns a /64 to every public and shared
 * network without one. A network keeps its /64 when the pool is removed from the settings.
 */
import type { Log } from "../base/log.ts";
import type { Store, Tx } from "../store/db.ts";
import { listNetworkStates } from "./aggregate.ts";
import { raiseGeneration } from "./change.ts";
import { freeExpired, take6 } from "./freetable.ts";
import type { Areas } from "./model/freeblocks.ts";
import type { NetworkReconciler } from "./portchanges.ts";
import * as table from "./table.ts";

/** Options of `ensureIpv6`. */
export interface Ipv6Options {
  readonly store: Store;
  readonly log: Log;
  readonly areas: Areas;
  readonly apply: NetworkReconciler;
}

/** Assigns missing /64s, each with a new generation and an event. Logs a warning if the pool is exhausted. */
export async function ensureIpv6({ store, log, areas, apply }: Ipv6Options, now: number): Promise<void> {
  if (areas.pool6 === null) return;
  const needsIpv6 = ({ kind, first6, state }: table.NetworkStateRow): boolean =>
    kind !== "private" && first6 === null && state !== "Deleting";

  /** Resolves to false if the pool has no free /64. */
  async function assign(tx: Tx, id: number): Promise<boolean> {
    await table.lockPools(tx);
    await table.lockNetwork(tx, id);
    const row = await table.findNetwork(tx, id);
    if (row === undefined || !needsIpv6(row)) return true;
    await freeExpired(tx, areas, now);
    const first6 = await take6(tx, areas);
    if (first6 === null) return false;
    const change = { first6, version: row.version + 1 };
    await raiseGeneration(tx, apply, row, change, { by: "service", now, before: row });
    return true;
  }

  for (const { id } of (await listNetworkStates(store.read)).filter(needsIpv6))
    if (!(await store.write((tx) => assign(tx, id)))) {
      log("warn", `The IPv6 pool has no free /64: network ${id} and later ones have no IPv6.`, { network: id });
      return;
    }
}
