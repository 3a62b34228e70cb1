/** The reconcilers of domains: whether the parent delegates here, and how much history is kept. Zones are published by `publisher.ts`. */
import type { Clock } from "../base/clock.ts";
import { append } from "../engine/event.ts";
import { defineReconciler, type Reconciler } from "../engine/flow.ts";
import type { Cap } from "../engine/prune.ts";
import type { PruneTime } from "../engine/prunetime.ts";
import type { Store, Tx } from "../store/db.ts";
import { type Delegation, type DelegationOptions, findDelegation } from "./delegation.ts";
import { showDomain } from "./model/show.ts";
import * as table from "./table.ts";

const hour = 3_600_000;
/** An event shows no records of a domain that has more. */
const mostInEvent = 1000;
const day = 86_400_000;

/** Asks every hour the name servers of a domain's parent whether they name `nameServers`, and tells when their answer changes. */
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
    const records = before.record_count > mostInEvent ? [] : await table.listRecords(tx, id);
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

/** Newest versions that every domain keeps, however old, unless fewer are allowed. */
const leastVersions = 1000;
/** Versions deleted in one transaction: each may have thousands of records. */
const sliceVersions = 50;

export interface HistoryOptions {
  /** The time that ages are counted up to. */
  readonly time: PruneTime;
  /** Of one domain. */
  readonly cap: Cap;
  readonly period: number;
}

/** Deletes old versions, and those beyond what one domain may have. */
export function historyPruner(store: Store, { time, cap, period }: HistoryOptions): Reconciler {
  return defineReconciler({
    name: "dns.history",
    subject: "history",
    single: true,
    period,
    async run({ signal }) {
      const before = (await time.read()) - cap.days * day;
      const prune = async (id: number, place: number, date: number): Promise<void> => {
        const kept = await table.findNewest(store.read, id, place);
        if (kept === undefined) return;
        const some = (tx: Tx) => table.pruneVersions(tx, id, kept.serial, date, sliceVersions);
        while (!signal.aborted && (await store.write(some)) === sliceVersions);
      };
      for (const id of await table.listDomainsWithOldVersions(store.read, before))
        await prune(id, Math.min(leastVersions, cap.count), before);
      for (const id of await table.listDomainsWithManyVersions(store.read, cap.count))
        await prune(id, cap.count, Number.MAX_SAFE_INTEGER);
    },
  });
}
