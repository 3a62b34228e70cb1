/**
 * The worker of one claimed row: runs a step, stores its result under the lease, then continues with the next step or releases the
 * lease. The effect comes before the record, so a crash between them repeats the idempotent effect and never skips it.
 */

import { since } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import { isSameError } from "../base/plaincause.ts";
import type { Turn } from "../base/turn.ts";
import type { Tx } from "../store/db.ts";
import { allowLoss, lock, StorageError } from "../store/db.ts";
import type { Alarm } from "./alarm.ts";
import type { Attempt } from "./attempt.ts";
import { attempt } from "./attempt.ts";
import { createStepMeter, moveLive } from "./clockstep.ts";
import type { ObservedStore } from "./commit.ts";
import { hideCommit } from "./commit.ts";
import type { Flow, ReconcileResult, Reconciler, Run, Wait } from "./flow.ts";
import { pauseAfter } from "./flow.ts";
import { commit, LostLease, promote, remove } from "./lease.ts";
import { forget } from "./prune.ts";
import { queueLock } from "./task.ts";
import type { LiveTask, Transition } from "./transition.ts";
import {
  advance,
  beginUndo,
  changeOf,
  complete,
  errorOf,
  fail,
  postpone,
  readLive,
  releaseLease,
  remark,
  stepOf,
  stopReason,
  undoStep,
} from "./transition.ts";
import type { Row } from "./view.ts";
import { viewOf } from "./view.ts";

/** What workers share: database, time, log, settings and flows of the engine. */
export interface RunContext {
  readonly store: ObservedStore;
  readonly alarm: Alarm;
  /** In [0, 1). */
  readonly random: () => number;
  readonly log: Log;
  /** Milliseconds of a lease. */
  readonly lease: number;
  /** By name. */
  readonly flows: ReadonlyMap<string, Flow>;
  /** Divides the turns of the event loop among the workers: a driver may respond at once to each of a hundred steps. */
  readonly turn: Turn;
  /** Returns whether the engine is stopping: workers then release their rows. */
  stopping(): boolean;
}

/** State of a row that this process is working on, shared by the worker and the loop that renews leases. */
export interface HeldLease {
  /** Id of the task. */
  readonly id: number;
  /** Name of its flow or reconciler. */
  readonly name: string;
  readonly lease: string;
  /** End of the lease as stored, in milliseconds since 1970. */
  until: number;
  /** Another engine has claimed the row. */
  lost: boolean;
  /** JSON of the reason for a cancellation, once the loop has seen it. */
  cancel: string | null;
  /** The running try. */
  current: Attempt<unknown> | null;
}

/** Ended flows kept per subject. */
const keptTasks = 1000;
/** Milliseconds between two `changed` events of a flow. */
const announceEvery = 1000;

/** Runs steps of a flow until the task ends (true) or waits (false). Never rejects. */
export async function runFlow(context: RunContext, flow: Flow, row: Row, held: HeldLease): Promise<boolean> {
  let live = readLive(row);
  try {
    while (live.row.lease !== null && !held.lost) {
      await context.turn.next();
      if (held.cancel !== null) live = { ...live, row: { ...live.row, cancel: held.cancel } };
      // An interruption of all steps is over, so a new one would not end.
      const move = context.stopping()
        ? releaseLease(live, context.alarm.now())
        : await nextMove(context, flow, live, held);
      if (held.lost) return false;
      live = await store(context, flow, live, move, held);
    }
  } catch (error) {
    logUnstored(context, live.row, error);
  }
  return live.row.end_date !== null;
}

/** Logs a result that could not be stored. The step is repeated when the lease has expired. */
function logUnstored(context: RunContext, row: Row, error: unknown): void {
  if (error instanceof LostLease) return;
  const detail = { task: row.id, name: row.name, step: row.step, error };
  context.log(
    "error",
    `Could not store the result of task ${row.id}; the step is repeated after the lease expires.`,
    detail,
  );
}

async function nextMove(context: RunContext, flow: Flow, live: LiveTask, held: HeldLease): Promise<Transition> {
  const { row } = live;
  const now = context.alarm.now();
  const stop = stopReason(flow, live, now);
  if (stop !== null) return beginUndo(flow, live, stop.ending, stop.error, now);
  const step = stepOf(flow, live);
  if (step === undefined) return complete(live, now);
  const undoing = row.ending !== null;
  const work = undoing ? step.undo : step.do;
  if (work === undefined) return undoing ? undoStep(flow, live, now) : advance(flow, live, undefined, now);
  const limit = now + (step.time ?? flow.time);
  const until = Math.min(limit, row.step_until ?? limit, undoing ? limit : (row.deadline_at ?? limit));
  const stepped = createStepMeter(context.alarm);
  const notes = createNotes(context, flow, live, held);
  try {
    const { note } = notes;
    const trial = attempt(context.alarm, until, async (signal) => work.call(step, { ...runOf(live, signal), note }));
    held.current = trial;
    const outcome = await trial.result;
    const noted = await notes.end();
    const then = context.alarm.now();
    const moved = moveLive(noted, stepped());
    if (undoing) return undoStep(flow, moved, then);
    return isWait(outcome) ? postpone(flow, moved, outcome, then) : advance(flow, moved, outcome, then);
  } catch (error) {
    return failed(context, flow, moveLive(await notes.end(), stepped()), held, error);
  } finally {
    held.current = null;
  }
}

/**
 * Stores what a running step passes to `note`, under its lease and with an event. Writes are sequential, at most one per
 * `announceEvery` (the latest note), and none after `end`.
 */
function createNotes(context: RunContext, flow: Flow, live: LiveTask, held: HeldLease) {
  let current = live;
  let latest: string | null = null;
  let last = live.row.announced_at;
  let cancelTimer: (() => void) | null = null;
  let writing: Promise<void> | null = null;
  let isOver = false;

  async function write(detail: string, now: number): Promise<void> {
    const next = remark(current, detail);
    const row = { ...next.row, due_at: now + context.lease, announced_at: now };
    await context.store.write(async (tx) => {
      await commit(tx, current.row, changeOf({ ...next, row }), now);
      await flow.announce?.(tx, viewOf(row), "changed");
    });
    held.until = row.due_at;
    current = { ...next, row };
  }

  async function send(detail: string): Promise<void> {
    last = context.alarm.now();
    // After a failed write, the next note is written. The loop detects a lost lease.
    await write(detail, last).catch(() => {});
    writing = null;
    plan();
  }

  function plan(): void {
    if (latest === null || isOver || cancelTimer !== null || writing !== null) return;
    // The clock may have been set back since.
    cancelTimer = context.alarm.at(Math.min(last, context.alarm.now()) + announceEvery, () => {
      cancelTimer = null;
      const detail = latest;
      latest = null;
      if (detail !== null && !isOver && !held.lost) writing = send(detail);
    });
  }

  return {
    note(detail: string): void {
      if (live.row.ending !== null) return;
      latest = detail;
      plan();
    },
    /** Resolves to the row as last written. */
    async end(): Promise<LiveTask> {
      isOver = true;
      cancelTimer?.();
      await writing;
      return current;
    },
  };
}

function isWait(outcome: object | void): outcome is Wait {
  return outcome !== undefined && "wait" in outcome;
}

function failed(context: RunContext, flow: Flow, live: LiveTask, held: HeldLease, error: unknown): Transition {
  const { row } = live;
  const now = context.alarm.now();
  if (held.cancel !== null && row.ending === null && !flow.persistent) {
    const canceled = { ...live, row: { ...row, cancel: held.cancel } };
    const stop = stopReason(flow, canceled, now);
    if (stop !== null) return beginUndo(flow, canceled, stop.ending, stop.error, now);
  }
  if (context.stopping()) return releaseLease(live, now);
  const detail = {
    task: row.id,
    name: row.name,
    step: row.step,
    undoing: row.ending !== null,
    tries: row.tries + 1,
    error,
  };
  const undo = row.ending === null ? "" : "Undoing ";
  context.log("warn", `${undo}${row.name} ${row.step} failed (task ${row.id}, try ${row.tries + 1}).`, detail);
  return fail(flow, live, error, now, context.random());
}

function runOf({ row, input, facts }: LiveTask, signal: AbortSignal): Run {
  const { id: task, subject_id: subject, project_id: project, tries } = row;
  return { task, subject, project: project ?? 0, input, facts, attempt: tries + 1, signal };
}

/** Stores a transition and returns the task as stored. An error of the flow's own writes counts as a failed try. */
async function store(
  context: RunContext,
  flow: Flow,
  before: LiveTask,
  move: Transition,
  held: HeldLease,
): Promise<LiveTask> {
  try {
    return await storeMove(context, flow, before, move, held);
  } catch (error) {
    if (error instanceof LostLease || error instanceof StorageError) throw error;
    return await storeMove(context, flow, before, failed(context, flow, before, held, error), held);
  }
}

async function storeMove(
  context: RunContext,
  flow: Flow,
  before: LiveTask,
  move: Transition,
  held: HeldLease,
): Promise<LiveTask> {
  const now = context.alarm.now();
  const continues = move.live.row.lease !== null;
  const { live } = continues && context.stopping() ? releaseLease(move.live, now) : move;
  const until = live.row.lease === null ? live.row.due_at : now + context.lease;
  const isNews =
    move.ending !== null || (since(live.row.announced_at, now) >= announceEvery && hasNews(live, before.row));
  const announces = flow.announce !== undefined && isNews;
  const row = { ...live.row, due_at: until, announced_at: announces ? now : live.row.announced_at };
  const saved = await context.store.write(async (tx) => {
    if (move.ending !== null) await lock(tx, queueLock(row.subject, row.subject_id));
    const stored = await commit(tx, before.row, changeOf({ ...live, row }), now);
    const run = runOf(live, new AbortController().signal);
    await move.saves?.save?.(tx, run);
    await move.unsaves?.unsave?.(tx, run);
    if (move.ending !== null) await flow.ended?.(tx, run, move.ending);
    if (announces) await flow.announce?.(tx, viewOf(row), move.ending === null ? "changed" : "ended");
    if (move.ending !== null) await startNext(context, tx, row, now);
    return stored;
  });
  held.until = saved.due_at ?? held.until;
  if (saved.cancel !== null) held.cancel = saved.cancel;
  // After a cancellation the next step does not begin, so it must not be undone.
  const begun_at = saved.cancel === null || row.ending !== null || flow.persistent ? row.begun_at : null;
  return { ...live, row: { ...row, ...saved, begun_at } };
}

/** Returns whether the API view differs from the row before, or from the last event. A step that waits mostly changes nothing. */
function hasNews({ row, records }: LiveTask, before: Row): boolean {
  const times = records.flatMap(({ start, end }) => [start ?? 0, end ?? 0]);
  const isLater = Math.max(row.begun_at ?? 0, ...times) > row.announced_at;
  // The events of the first failures may be left out, because others came just before.
  const isOther = row.error !== before.error && (row.tries <= 3 || !isSameError(row.error, before.error));
  return isLater || row.steps !== before.steps || isOther;
}

/** Starts the next flow in the queue of the subject. */
async function startNext(context: RunContext, tx: Tx, ended: Row, now: number): Promise<void> {
  const next = await promote(tx, ended, now);
  if (next !== undefined) await context.flows.get(next.name)?.announce?.(tx, viewOf(next), "changed");
  // One task in 64 is enough: lists have a limit of their own.
  if (ended.id % 64 === 0) forget(tx, { kind: ended.subject, id: ended.subject_id }, keptTasks);
}

/** Runs a reconciler once. Resolves to the `wake` counter of the latest request it has served, null if it failed. Never rejects. */
export async function runReconciler(
  context: RunContext,
  reconciler: Reconciler,
  row: Row,
  held: HeldLease,
): Promise<number | null> {
  const { alarm } = context;
  const free = { lease: null, begun_at: null };
  try {
    await context.turn.next();
    if (context.stopping()) throw new Error("the service stops");
    const trial = attempt(alarm, alarm.now() + reconciler.time, async (signal) =>
      reconciler.run({ subject: row.subject_id, attempt: row.tries + 1, signal }),
    );
    held.current = trial;
    const result = (await trial.result) ?? {};
    if (held.lost) return null;
    const now = alarm.now();
    const period = now + reconciler.period * (0.9 + context.random() / 5);
    const due_at = Math.round(Math.min(period, result.at ?? period));
    const done = { ...row, ...free, tries: 0, error: null, served: row.wake, due_at };
    await context.store.write((tx) => storeRun(tx, row, done, result, now));
    return row.wake;
  } catch (error) {
    await storeFailure(context, reconciler, row, held, error);
    return null;
  }
}

/** Writes the reconciler's rows before the task row. Handlers lock in the same order (rows, then request), so they cannot deadlock. */
async function storeRun(tx: Tx, row: Row, done: Row, result: ReconcileResult, now: number): Promise<void> {
  if (result.save === undefined) {
    hideCommit(tx);
    allowLoss(tx);
  } else await result.save(tx);
  const gone = result.gone === true && (await remove(tx, row));
  if (!gone) await commit(tx, row, done, now);
}

async function storeFailure(
  context: RunContext,
  reconciler: Reconciler,
  row: Row,
  held: HeldLease,
  error: unknown,
): Promise<void> {
  if (error instanceof LostLease || held.lost) return;
  const now = context.alarm.now();
  const tries = row.tries + 1;
  const free = { ...row, lease: null, begun_at: null };
  try {
    if (context.stopping()) {
      await context.store.write((tx) => commit(tx, row, { ...free, due_at: now }, now));
      return;
    }
    const { id: task, name, subject_id: subject } = row;
    context.log("warn", `Reconciler ${name} of ${row.subject} ${subject} failed (try ${tries}).`, {
      task,
      name,
      subject,
      tries,
      error,
    });
    const due_at = now + pauseAfter(reconciler.pause, tries, context.random());
    const change = { ...free, tries, error: JSON.stringify(errorOf(error, null)), due_at };
    await context.store.write((tx) => commit(tx, row, change, now));
  } catch (second) {
    logUnstored(context, row, second);
  }
}
