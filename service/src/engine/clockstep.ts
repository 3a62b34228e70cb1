/**
 * The machine's clock can be set, and then every time that is stored is wrong by as much: what is due in a minute would be due in
 * ten days. The engine compares the clock with one that is never set, and moves what it has stored by the same step. A step that
 * nobody saw, while no service ran, is met at the start: what lies beyond any possible interval is brought back.
 */
import { sql } from "kysely";
import { type Clock, type ClockStep, dueBefore, steadyOf } from "../base/clock.ts";
import type { Tx } from "../store/db.ts";
import type { Flow, Reconciler } from "./flow.ts";
import type { LiveTask } from "./transition.ts";

/** Milliseconds that count as a step; less is the clock being adjusted. */
const leastStep = 1_000;

/** Says by how many milliseconds the clock was set since the last call; 0: it was not. */
export function createStepMeter(clock: Clock): () => number {
  let offset = clock.now() - steadyOf(clock);
  return () => {
    const step = Math.round(clock.now() - steadyOf(clock) - offset);
    if (Math.abs(step) < leastStep) return 0;
    offset += step;
    return step;
  };
}

/** Moves all times at which something is due, is over or has begun. */
export async function moveTimes(tx: Tx, step: ClockStep): Promise<void> {
  const by = sql<number>`cast(${step.by} as bigint)`;
  const { from, to } = dueBefore(step);
  await tx
    .updateTable("task")
    .set((row) => ({
      due_at: row("due_at", "+", by),
      step_until: row("step_until", "+", by),
      deadline_at: row("deadline_at", "+", by),
      begun_at: row("begun_at", "+", by),
    }))
    .where("due_at", ">", from)
    .where("due_at", "<", to)
    .execute();
}

/** The same for a row in the hands of its worker. */
export function moveLive(live: LiveTask, step: number): LiveTask {
  const { step_until, deadline_at, begun_at } = live.row;
  const move = (time: number | null): number | null => (time === null ? null : time + step);
  const row = {
    ...live.row,
    step_until: move(step_until),
    deadline_at: move(deadline_at),
    begun_at: move(begun_at),
  };
  return { ...live, row };
}

/** More than any wait of a flow, or of a reconciler without a period, is meant to be. */
const longestWait = 2 * 3_600_000;

const farthest = (reconciler: Reconciler): number =>
  Number.isFinite(reconciler.period) ? Math.max(reconciler.period * 1.1, reconciler.pause.most * 1.25) : longestWait;

/** Brings back what is due later than it can be, and ends that are too far away. */
export async function bringBack(
  tx: Tx,
  now: number,
  reconcilers: readonly Reconciler[],
  flows: readonly Flow[],
): Promise<void> {
  const late = tx.updateTable("task").set({ due_at: now });
  for (const reconciler of reconcilers)
    await late
      .where("name", "=", reconciler.name)
      .where("due_at", ">", Math.ceil(now + farthest(reconciler)))
      .execute();
  for (const flow of flows) {
    const far = tx.updateTable("task").where("name", "=", flow.name).where("due_at", "is not", null);
    await late
      .where("name", "=", flow.name)
      .where("due_at", ">", now + longestWait)
      .execute();
    const most = now + flow.deadline;
    await far
      .set({ deadline_at: most })
      .where("deadline_at", ">", most + longestWait)
      .execute();
    await far
      .set({ step_until: now + flow.time })
      .where("step_until", ">", most + longestWait)
      .execute();
  }
}
