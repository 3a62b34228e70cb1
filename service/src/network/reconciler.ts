/**
 * Reconcilers of networks. The first renders the complete spec of a network from its rows and applies it with the router driver, or
 * removes a deleted network. It runs on request, and periodically to repair drift that the check in `drift.ts` cannot see.
 * The second restores the previous firewall when a new one is not confirmed in time. It is separate, because the retry pauses of
 * the first must not delay that deadline.
 */

import { taskErrors, type WorkError } from "@brume/api/work.ts";
import { type Clock, steadyOf } from "../base/clock.ts";
import { isSameError } from "../base/plaincause.ts";
import { reasonOf } from "../base/reason.ts";
import type { NetworkSpec, Router } from "../drivers/router/interface.ts";
import { append, type NewEvent } from "../engine/event.ts";
import { defineReconciler, type Reconciler } from "../engine/flow.ts";
import type { Store, Tx } from "../store/db.ts";
import { type NetworkAggregate, readAggregate, readLargeAggregate } from "./aggregate.ts";
import { emitNetworkEvent, raiseAbove, raiseGeneration } from "./change.ts";
import * as linkTable from "./linktable.ts";
import type { FirewallParser } from "./model/firewall/firewall.ts";
import { type Locate, peersOf } from "./model/outside.ts";
import { createPortChanges, type NetworkReconciler } from "./portchanges.ts";
import * as table from "./table.ts";

export interface ReconcilerOptions {
  readonly store: Store;
  readonly clock: Clock;
  readonly router: Router;
  /** Renders the complete spec of a network for the router driver. */
  readonly render: (aggregate: NetworkAggregate) => NetworkSpec | Promise<NetworkSpec>;
  readonly locate: Locate;
  /** Parses the firewalls of events; absent: each is parsed. */
  readonly firewalls?: FirewallParser;
}

/** Milliseconds between two periodic runs for an unchanged network, while there are at most `networksPerPeriod` networks. */
const period = 60_000;
/** Unchanged networks that are fully compared in one period. It bounds the processor use, up to 160 networks. */
const networksPerPeriod = 16;
/** Milliseconds in which any number of networks is fully compared. */
const longestPeriod = 600_000;
/** Milliseconds in which the number of networks is not counted again. */
const longestCount = 5000;
/** Networks applied in parallel: enough for two CPU cores. Others wait in order, so that each apply stays fast. */
const concurrency = 4;
/** Milliseconds during which the block of a deleted network is not assigned again. */
export const blockQuarantine = 60_000;

/** Returns the milliseconds between two full comparisons of a network, among so many. */
export const comparePeriod = (networks: number): number =>
  Math.min(longestPeriod, Math.max(1, networks / networksPerPeriod) * period);

/** Creates the reconciler that applies one network, or removes it from the host and the database when it is deleted. */
export function networkReconciler({
  store,
  clock,
  router,
  render,
  locate,
  firewalls,
}: ReconcilerOptions): NetworkReconciler {
  const changes = createPortChanges();
  let counted = { at: Number.NEGATIVE_INFINITY, networks: 0 };
  /** Returns the number of networks some seconds ago. */
  async function countRecently(): Promise<number> {
    const at = steadyOf(clock);
    if (at - counted.at > longestCount) counted = { at, networks: await table.countAllNetworks(store.read) };
    return counted.networks;
  }

  /** Applies the spec and resolves to the applied generation. Calls `onRepair` with the name of each part that was repaired. */
  async function applySpec(aggregate: NetworkAggregate, onRepair: (part: string) => void): Promise<number> {
    const applied = await router.apply(await render(aggregate), onRepair);
    if (applied <= aggregate.network.generation) return applied;
    // The host has a newer generation, so an older database was restored. The database wins: apply it with a higher generation.
    const next = await store.write((tx) => raiseAboveApplied(tx, aggregate.network.id, applied));
    return next === undefined ? applied : router.apply(await render(next), onRepair);
  }

  /**
   * Passes only the ports that may have changed to the driver. Resolves to null if the network must be applied completely, because another
   * change is not applied, the driver cannot change only these, or the complete comparison is due.
   */
  async function applyChangedPorts(network: table.NetworkRow): Promise<Applied | null> {
    const { id, generation, state, error } = network;
    const changed = changes.take(id, generation, steadyOf(clock));
    if (changed === null || state !== "Active" || error !== null) return null;
    if (network.applied !== changed.from) return null;
    const links = await linkTable.listLinksById(store.read, id, changed.links);
    const { ports } = await render({ network, links, tunnels: [] });
    const present = new Set(links.map((link) => link.id));
    const removed = changed.links.filter((link) => !present.has(link));
    const applied = await router.applyPorts({ id, from: changed.from, generation, ports, removed });
    return applied ? { generation, next: changed.next, complete: null } : null;
  }

  /** Applies what has changed. Resolves to undefined if the network was deleted meanwhile. */
  async function applyNetwork(network: table.NetworkRow): Promise<Applied | undefined> {
    const partly = await applyChangedPorts(network);
    if (partly !== null) return partly;
    const aggregate = await readLargeAggregate(store, network);
    if (aggregate === undefined) return undefined;
    const repaired = new Set<string>();
    const generation = await applySpec(aggregate, (part) => repaired.add(part));
    const outside = await locate(aggregate.network, peersOf(aggregate.tunnels));
    return { generation, next: null, complete: { network: aggregate.network, repaired: [...repaired], outside } };
  }

  const reconciler = defineReconciler({
    name: "network.apply",
    subject: "network",
    period: Number.POSITIVE_INFINITY,
    concurrency,
    pause: { first: 500, factor: 2, most: 30_000 },
    async run({ subject }) {
      const network = await table.findNetwork(store.read, subject);
      if (network === undefined || network.state === "Deleting") {
        changes.forget(subject);
        await router.remove(subject);
        return { gone: true, save: (tx) => deleteRows(tx, subject, clock.now()) };
      }
      let done: Applied | undefined;
      try {
        done = await applyNetwork(network);
      } catch (error) {
        changes.forget(subject);
        await store.write((tx) => noteFailure(tx, network, error, clock.now()));
        throw error;
      }
      // Deleted while it was read: the request of the deletion follows.
      if (done === undefined) return { at: clock.now() };
      const { generation, complete } = done;
      const before = complete?.network ?? network;
      const isNews =
        before.applied !== generation ||
        before.state === "New" ||
        before.error !== null ||
        (complete !== null && (complete.repaired.length > 0 || complete.outside !== before.outside));
      const now = steadyOf(clock);
      const next = done.next ?? now + comparePeriod(await countRecently());
      changes.applied(subject, generation, next);
      return {
        at: Math.round(clock.now() + Math.max(0, next - now)),
        // Most runs change no row: a start applies thousands of unchanged networks.
        ...(isNews && {
          async save(tx: Tx) {
            if (complete !== null && complete.repaired.length > 0)
              await noteRepair(tx, subject, complete.repaired, clock.now());
            await noteApplied(tx, subject, generation, clock.now(), firewalls);
            if (complete !== null) await noteOutside(tx, complete.network, complete.outside, clock.now());
          },
        }),
      };
    },
  });
  return { ...reconciler, changes };
}

/** What a run has applied. */
interface Applied {
  readonly generation: number;
  /** Steady time in ms at which the next complete apply is due; null: in one period. */
  readonly next: number | null;
  /** Null: only ports were applied. */
  readonly complete: {
    readonly network: table.NetworkRow;
    readonly repaired: readonly string[];
    readonly outside: string | null;
  } | null;
}

export interface ConfirmOptions {
  readonly store: Store;
  readonly clock: Clock;
  /** The reconciler that applies one network. */
  readonly apply: NetworkReconciler;
}

/** Creates the reconciler that restores the last confirmed firewall at the deadline. Requested when such a firewall is set. */
export function confirmReconciler({ store, clock, apply }: ConfirmOptions): Reconciler {
  return defineReconciler({
    name: "network.confirm",
    subject: "network",
    period,
    async run({ subject }) {
      const row = await table.findNetwork(store.read, subject);
      if (row === undefined || row.confirm_by === null) return { gone: true };
      if (row.confirm_by > clock.now()) return { at: row.confirm_by };
      return {
        gone: true,
        async save(tx) {
          await restoreFirewall(tx, apply, subject, clock.now());
        },
      };
    },
  });
}

/** Raises the generation above `applied`, the one on the host, and returns the network with it; undefined: the network is gone. */
async function raiseAboveApplied(tx: Tx, id: number, applied: number): Promise<NetworkAggregate | undefined> {
  await table.lockNetwork(tx, id);
  const row = await table.findNetwork(tx, id);
  if (row !== undefined) await raiseAbove(tx, row, applied);
  return readAggregate(tx, await table.findNetwork(tx, id));
}

/** Restores the last confirmed firewall, with a new generation and an event, if its deadline has passed. */
async function restoreFirewall(tx: Tx, apply: NetworkReconciler, id: number, now: number): Promise<void> {
  await table.lockNetwork(tx, id);
  const row = await table.findNetwork(tx, id);
  if (row === undefined || row.confirm_by === null || row.confirm_by > now || row.fallback === null) return;
  if (row.state === "Deleting") return;
  const change = { firewall: row.fallback, fallback: null, confirm_by: null, version: row.version + 1 };
  await raiseGeneration(tx, apply, row, change, { by: "service", now, before: row });
}

/** Stores the applied generation, clears the error and publishes `applied`, if any of it is new. */
async function noteApplied(
  tx: Tx,
  id: number,
  applied: number,
  now: number,
  firewalls: FirewallParser | undefined,
): Promise<void> {
  await table.lockNetwork(tx, id);
  const row = await table.findNetwork(tx, id);
  if (row === undefined || (row.applied === applied && row.state !== "New" && row.error === null)) return;
  const change = { applied, state: row.state === "New" ? "Active" : row.state, error: null } as const;
  await table.updateNetwork(tx, id, change);
  await emitNetworkEvent(tx, { ...row, ...change }, "applied", now, { firewalls });
}

/** Stores the addresses where peers reach the edge: routes may have changed. Skipped if the network has a newer generation. */
async function noteOutside(tx: Tx, { id, generation }: table.NetworkRow, outside: string | null, now: number) {
  const row = await table.findNetwork(tx, id);
  if (row === undefined || row.generation !== generation || row.outside === outside) return;
  await table.updateNetwork(tx, id, { outside });
  await emitNetworkEvent(tx, { ...row, outside }, "changed", now);
}

async function noteFailure(tx: Tx, { id, generation }: table.NetworkRow, error: unknown, now: number): Promise<void> {
  const detail = `Generation ${generation} of network ${id} could not be applied and is retried: ${reasonOf(error)}`;
  await recordError(tx, id, detail, now);
}

/** Publishes which parts another program changed, before `applied` is published; not if the drift check has reported it already. */
async function noteRepair(tx: Tx, id: number, parts: readonly string[], now: number): Promise<void> {
  const row = await table.findNetwork(tx, id);
  if (row === undefined || row.error !== null) return;
  const detail = `Drift in network ${id}: another program changed ${parts.join(", ")}. Brume repaired it.`;
  await recordError(tx, id, detail, now);
}

/**
 * Stores `detail` as the network's `apply_failed` error and publishes the change, unless the same error is stored already, also that of an
 * earlier request: a network that cannot be applied is retried forever.
 */
export async function recordError(tx: Tx, id: number, detail: string, now: number): Promise<void> {
  await table.lockNetwork(tx, id);
  const row = await table.findNetwork(tx, id);
  if (row === undefined || row.state === "Deleting") return;
  const title = taskErrors.apply_failed;
  const error: WorkError = { type: "/docs#apply_failed", title, detail, code: "apply_failed", step: null };
  const text = JSON.stringify(error);
  if (isSameError(row.error, text)) return;
  await table.updateNetwork(tx, id, { error: text });
  await emitNetworkEvent(tx, { ...row, error: text }, "changed", now);
}

/** Deletes the rows of a network that was removed from the host, and publishes its deletion. */
async function deleteRows(tx: Tx, id: number, now: number): Promise<void> {
  await table.lockPools(tx);
  const row = await table.findNetwork(tx, id);
  if (row === undefined) return;
  await table.deleteNetwork(tx, row, now + blockQuarantine);
  if (row.project_id === null) return;
  const resource = row.kind === "private" ? "network" : "publicnetwork";
  const event: NewEvent = { type: `${resource}.deleted`, date: now, project: row.project_id, resource, id, data: null };
  await append(tx, [event]);
}
