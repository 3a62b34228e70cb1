/**
 * Corrects stored times after the host's clock was set: otherwise a task that is due in a minute could be due in ten days. The engine
 * compares the clock with the monotonic one, and moves stored times by the difference. A step while no service ran is not measurable:
 * at the start, times beyond any possible interval are moved back.
 */
import { sql } from "kysely";
import { type Clock, type ClockStep, dueBefore, steadyOf } from "../base/clock.ts";
import type { Tx } from "../store/db.ts";
import type { Flow, Reconciler } from "./flow.ts";
import type { LiveTask } from "./transition.ts";

/** Smallest step in milliseconds; smaller differences are normal adjustments of the clock. */
const leastStep = 1_000;

/** Returns a function that returns by how many milliseconds the clock was set since its last call, 0 if it was not. */
export function createStepMeter(clock: Clock): () => number {
  let offset = clock.now() - steadyOf(clock);
  return () => {
    const step = Math.round(clock.now() - steadyOf(clock) - offset);
    if (Math.abs(step) < leastStep) return 0;
    offset += step;
    return step;
  };
}

/** Moves the stored times of all tasks that were due after the step. */
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

/** Moves the times of a task that a worker holds, by `step` milliseconds. */
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

/** Milliseconds, longer than any wait of a flow, or of a reconciler without a period. */
const longestWait = 2 * 3_600_000;

const farthest = (reconciler: Reconciler): number =>
  Number.isFinite(reconciler.period) ? Math.max(reconciler.period * 1.1, reconciler.pause.most * 1.25) : longestWait;

/** Moves back due times, deadlines and step limits that are later than their flow or reconciler can set them. */
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
