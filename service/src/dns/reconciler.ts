/** Reconcilers of domains: the delegation by the parent zone, and the pruning of versions. `publisher.ts` publishes the zones. */
import type { Clock } from "../base/clock.ts";
import { readPages } from "../base/turn.ts";
import { append } from "../engine/event.ts";
import { defineReconciler, type Reconciler } from "../engine/flow.ts";
import type { Cap } from "../engine/prune.ts";
import type { PruneTime } from "../engine/prunetime.ts";
import type { Store, Tx } from "../store/db.ts";
import * as versions from "./changetable.ts";
import { type Delegation, type DelegationOptions, findDelegation } from "./delegation.ts";
import { maxInEvent, showDomain } from "./model/show.ts";
import * as table from "./table.ts";

const hour = 3_600_000;
const day = 86_400_000;

/**
 * Creates the reconciler of `Delegation`: every hour it queries the name servers of the parent zone, and stores a change with an event.
 * `served` returns the serial that the name server serves.
 */
export function delegationReconciler(
  store: Store,
  clock: Clock,
  options: Omit<DelegationOptions, "signal">,
  served: (ascii: string) => number = () => Number.MAX_SAFE_INTEGER,
): Reconciler {
  const { nameServers } = options;
  const save = async (tx: Tx, id: number, delegation: Delegation): Promise<void> => {
    await table.lockDomain(tx, id);
    const before = await table.findAnyDomain.first(tx, { id });
    if (before === undefined || before.delegation === delegation) return;
    const is_delegate = Number(delegation === "Delegated" || delegation === "Partial");
    await table.updateDomain(tx, id, { delegation, is_delegate });
    const records = before.record_count > maxInEvent ? [] : await table.listRecords(tx, id);
    const shown = showDomain({ ...before, delegation, is_delegate }, records, served(before.ascii), nameServers);
    const event = { type: "domain.changed", date: clock.now(), project: before.project_id, resource: "domain", id };
    await append(tx, [{ ...event, data: JSON.stringify(shown) }]);
  };
  return defineReconciler({
    name: "dns.delegation",
    subject: "domain",
    period: hour,
    async run({ subject, signal }) {
      const domain = await table.findAnyDomain.first(store.read, { id: subject });
      if (domain === undefined) return { gone: true };
      const found = await findDelegation(domain.ascii, { ...options, signal });
      if (found === domain.delegation || found === "Unknown") return { at: clock.now() + hour };
      return { at: clock.now() + hour, save: (tx) => save(tx, subject, found) };
    },
  });
}

/** Newest versions that every domain keeps at any age, unless the cap is lower. */
const minVersions = 1000;
/** Versions deleted per transaction: each may contain thousands of records. */
const sliceVersions = 50;

export interface HistoryOptions {
  /** The present time for the computation of ages. */
  readonly time: PruneTime;
  /** Limits per domain. */
  readonly cap: Cap;
  /** Ms between runs. */
  readonly period: number;
}

/** Creates the reconciler that deletes versions that are too old, or too many for one domain. */
export function historyPruner(store: Store, { time, cap, period }: HistoryOptions): Reconciler {
  return defineReconciler({
    name: "dns.history",
    subject: "history",
    single: true,
    period,
    async run({ signal }) {
      const before = (await time.read()) - cap.days * day;
      const prune = async (id: number, place: number, date: number): Promise<void> => {
        const kept = await versions.findNewest(store.read, id, place);
        if (kept === undefined) return;
        const some = (tx: Tx) => versions.pruneVersions(tx, id, kept.serial, date, sliceVersions);
        while (!signal.aborted && (await store.write(some)) === sliceVersions);
      };
      const { historiesPerPage: limit, pageHistories } = versions;
      const read = (after: number) => pageHistories.all(store.read, { after, limit, count: cap.count });
      for await (const page of readPages(limit, read))
        for (const { id, oldest, surplus } of page) {
          if (oldest !== null && oldest < before) await prune(id, Math.min(minVersions, cap.count), before);
          if (surplus !== null) await prune(id, cap.count, Number.MAX_SAFE_INTEGER);
        }
    },
  });
}
