/**
 * Makes each network on the machine equal to its rows: renders the whole wish and hands it to the router, and takes away what was
 * deleted. Runs at once when nudged, and now and then by itself, which repairs what a look from outside does not see. Beside it
 * stands a second reconciler for the firewalls that wait for confirmation: those have an hour to go by, which no pause after a refusal
 * of the machine may make later.
 */
import { taskErrors, type WorkError } from "@brume/api/work.ts";
import type { Clock } from "../base/clock.ts";
import type { NetworkSpec, Router } from "../drivers/router/interface.ts";
import { append, type NewEvent } from "../engine/event.ts";
import { defineReconciler, type Reconciler } from "../engine/flow.ts";
import type { Store, Tx } from "../store/db.ts";
import { type NetworkAggregate, readAggregate } from "./aggregate.ts";
import { raiseAbove, raiseGeneration, tell } from "./change.ts";
import type { Locate } from "./model/outside.ts";
import * as table from "./table.ts";

export interface ReconcilerOptions {
  readonly store: Store;
  readonly clock: Clock;
  readonly router: Router;
  readonly render: (whole: NetworkAggregate) => NetworkSpec;
  readonly locate: Locate;
}

/** Milliseconds from one look at a network that nobody changed to the next, while there are no more than `comparisons`. */
const period = 60_000;
/** Networks that are compared in full in one period though nobody changed them: a small part of a processor, however many there are. */
const comparisons = 16;
/** Networks made side by side: enough for two processors, and the others wait in order instead of making all of them slow. */
const concurrency = 4;
/** Milliseconds in which a block that was given back is not given out again. */
export const rest = 60_000;

export function networkReconciler({ store, clock, router, render, locate }: ReconcilerOptions): Reconciler {
  /** Resolves to the generation in force. */
  async function make(whole: NetworkAggregate, emitNetworkEvent: (part: string) => void): Promise<number> {
    const applied = await router.apply(render(whole), emitNetworkEvent);
    if (applied <= whole.network.generation) return applied;
    // The database is an older one that was brought back: what it says counts, from the next generation on.
    const next = await store.write((tx) => overtake(tx, whole.network.id, applied));
    return next === undefined ? applied : router.apply(render(next), emitNetworkEvent);
  }

  return defineReconciler({
    name: "network.apply",
    subject: "network",
    period: Number.POSITIVE_INFINITY,
    concurrency,
    pause: { first: 500, factor: 2, most: 30_000 },
    async run({ subject }) {
      const whole = await readAggregate(store.read, await table.findNetwork(store.read, subject));
      if (whole === undefined || whole.network.state === "Deleting") {
        await router.remove(subject);
        return { gone: true, save: (tx) => bury(tx, subject, clock.now()) };
      }
      let applied: number;
      const repaired = new Set<string>();
      try {
        applied = await make(whole, (part) => repaired.add(part));
      } catch (error) {
        await store.write((tx) => noteFailure(tx, whole.network, error as Error, clock.now()));
        throw error;
      }
      const outside = await locate(whole.network, whole.tunnels);
      const turns = Math.max(1, (await table.countAllNetworks(store.read)) / comparisons);
      return {
        at: Math.round(clock.now() + turns * period),
        async save(tx) {
          if (repaired.size > 0) await noteRepair(tx, subject, [...repaired], clock.now());
          await noteApplied(tx, subject, applied, clock.now());
          await noteOutside(tx, whole.network, outside, clock.now());
        },
      };
    },
  });
}

export interface ConfirmOptions {
  readonly store: Store;
  readonly clock: Clock;
  /** Applies one network. */
  readonly apply: Reconciler;
}

/** Brings back the firewall before one that nobody confirmed in time; nudged by whoever sets such a one. */
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
          await fallBack(tx, apply, subject, clock.now());
        },
      };
    },
  });
}

/** Counts the wish on beyond what the machine has seen. */
async function overtake(tx: Tx, id: number, applied: number): Promise<NetworkAggregate | undefined> {
  await table.lockNetwork(tx, id);
  const row = await table.findNetwork(tx, id);
  if (row !== undefined) await raiseAbove(tx, row, applied);
  return readAggregate(tx, await table.findNetwork(tx, id));
}

/** The last confirmed firewall comes back, as a change like any other. */
async function fallBack(tx: Tx, apply: Reconciler, id: number, now: number): Promise<void> {
  await table.lockNetwork(tx, id);
  const row = await table.findNetwork(tx, id);
  if (row === undefined || row.confirm_by === null || row.confirm_by > now || row.fallback === null) return;
  if (row.state === "Deleting") return;
  const change = { firewall: row.fallback, fallback: null, confirm_by: null, version: row.version + 1 };
  await raiseGeneration(tx, apply, row, change, { by: "service", now, before: row });
}

async function noteApplied(tx: Tx, id: number, applied: number, now: number): Promise<void> {
  await table.lockNetwork(tx, id);
  const row = await table.findNetwork(tx, id);
  if (row === undefined || (row.applied === applied && row.state !== "New" && row.error === null)) return;
  const change = { applied, state: row.state === "New" ? "Active" : row.state, error: null } as const;
  await table.updateNetwork(tx, id, change);
  await tell(tx, { ...row, ...change }, "applied", now);
}

/** The way to a peer may have changed, and with it the address that the peer sees. What came meanwhile knows better. */
async function noteOutside(tx: Tx, { id, generation }: table.NetworkRow, outside: string | null, now: number) {
  const row = await table.findNetwork(tx, id);
  if (row === undefined || row.generation !== generation || row.outside === outside) return;
  await table.updateNetwork(tx, id, { outside });
  await tell(tx, { ...row, outside }, "changed", now);
}

async function noteFailure(tx: Tx, { id, generation }: table.NetworkRow, error: Error, now: number): Promise<void> {
  const what = error.message.split("\n")[0]?.slice(0, 300) ?? "";
  await recordError(tx, id, `Generation ${generation} could not be applied and is tried again: ${what}`, now);
}

/** What was changed behind our back is told, unless the watch saw it first, before it is told that all is well again. */
async function noteRepair(tx: Tx, id: number, parts: readonly string[], now: number): Promise<void> {
  const row = await table.findNetwork(tx, id);
  if (row === undefined || row.error !== null) return;
  const detail = `Of network ${id} was changed from outside: ${parts.join(", ")}. Brume did not do that and repaired it.`;
  await recordError(tx, id, detail, now);
}

/** Stores and tells what keeps a network from being as it should, unless that is known. */
export async function recordError(tx: Tx, id: number, detail: string, now: number): Promise<void> {
  await table.lockNetwork(tx, id);
  const row = await table.findNetwork(tx, id);
  if (row === undefined || row.state === "Deleting") return;
  const title = taskErrors.apply_failed;
  const error: WorkError = { type: "/docs#apply_failed", title, detail, code: "apply_failed", step: null };
  const text = JSON.stringify(error);
  if (row.error === text) return;
  await table.updateNetwork(tx, id, { error: text });
  await tell(tx, { ...row, error: text }, "changed", now);
}

/** Nothing of it is on the machine any more. */
async function bury(tx: Tx, id: number, now: number): Promise<void> {
  await table.lockPools(tx);
  const row = await table.findNetwork(tx, id);
  if (row === undefined) return;
  await table.deleteNetwork(tx, row, now + rest);
  if (row.project_id === null) return;
  const resource = row.kind === "private" ? "network" : "publicnetwork";
  const event: NewEvent = { type: `${resource}.deleted`, date: now, project: row.project_id, resource, id, data: null };
  await append(tx, [event]);
}
