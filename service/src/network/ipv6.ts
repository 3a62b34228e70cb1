/**
 * IPv6 for networks that have none. Every public and shared network has a /64 once the operator names a pool, also those that were
 * made before: each start gives it to whoever lacks it, as a change like any other. A network keeps its /64 when the pool goes.
 */
import type { Range } from "../base/address.ts";
import type { Log } from "../base/log.ts";
import type { Reconciler } from "../engine/flow.ts";
import type { Store, Tx } from "../store/db.ts";
import { raiseGeneration } from "./change.ts";
import { find6 } from "./model/plan.ts";
import * as table from "./table.ts";

export interface Ipv6Options {
  readonly store: Store;
  readonly log: Log;
  readonly publicPool6: Range | null;
  readonly apply: Reconciler;
}

export async function ensureIpv6({ store, log, publicPool6, apply }: Ipv6Options, now: number): Promise<void> {
  if (publicPool6 === null) return;
  const lacks = ({ kind, first6, state }: table.NetworkRow): boolean =>
    kind !== "private" && first6 === null && state !== "Deleting";

  /** False: no /64 is left. */
  async function give(tx: Tx, id: number, pool: Range): Promise<boolean> {
    await table.lockPools(tx);
    await table.lockNetwork(tx, id);
    const row = await table.findNetwork(tx, id);
    if (row === undefined || !lacks(row)) return true;
    const first6 = find6(pool, (await table.listTaken(tx, now)).first6);
    if (first6 === null) return false;
    const change = { first6, version: row.version + 1 };
    await raiseGeneration(tx, apply, row, change, { by: "service", now, before: row });
    return true;
  }

  for (const { id } of (await table.listAllNetworks(store.read)).filter(lacks))
    if (!(await store.write((tx) => give(tx, id, publicPool6)))) {
      log("warn", "The pool of IPv6 has no /64 left: this network and later ones stay without.", { network: id });
      return;
    }
}
