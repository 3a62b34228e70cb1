/**
 * IPv6 for existing networks. If the operator has set a pool, each start of the service assigns a /64 to every public and shared
 * network without one. A network keeps its /64 when the pool is removed from the settings.
 */
import type { Range } from "../base/address.ts";
import type { Log } from "../base/log.ts";
import type { Store, Tx } from "../store/db.ts";
import { listNetworkStates } from "./aggregate.ts";
import { raiseGeneration } from "./change.ts";
import { find6 } from "./model/plan.ts";
import type { NetworkReconciler } from "./portchanges.ts";
import * as table from "./table.ts";

/** Options of `ensureIpv6`. */
export interface Ipv6Options {
  readonly store: Store;
  readonly log: Log;
  readonly publicPool6: Range | null;
  readonly apply: NetworkReconciler;
}

/** Assigns missing /64s, each with a new generation and an event. Logs a warning if the pool is exhausted. */
export async function ensureIpv6({ store, log, publicPool6, apply }: Ipv6Options, now: number): Promise<void> {
  if (publicPool6 === null) return;
  const needsIpv6 = ({ kind, first6, state }: table.NetworkStateRow): boolean =>
    kind !== "private" && first6 === null && state !== "Deleting";

  /** Resolves to false if the pool has no free /64. */
  async function assign(tx: Tx, id: number, pool: Range): Promise<boolean> {
    await table.lockPools(tx);
    await table.lockNetwork(tx, id);
    const row = await table.findNetwork(tx, id);
    if (row === undefined || !needsIpv6(row)) return true;
    const first6 = find6(pool, (await table.listTaken(tx, now)).first6);
    if (first6 === null) return false;
    const change = { first6, version: row.version + 1 };
    await raiseGeneration(tx, apply, row, change, { by: "service", now, before: row });
    return true;
  }

  for (const { id } of (await listNetworkStates(store.read)).filter(needsIpv6))
    if (!(await store.write((tx) => assign(tx, id, publicPool6)))) {
      log("warn", `The IPv6 pool has no free /64: network ${id} and later ones have no IPv6.`, { network: id });
      return;
    }
}
