/**
 * One claimed row in the hands of its worker: try the step, write down what came of it under the lease, go on to the next
 * step or let go. Effect first, record second, so that a death between them repeats the effect (an ensure) and never skips it.
 */

import type { Log } from "../base/log.ts";
import type { Tx } from "../store/db.ts";
import { lock, StorageError } from "../store/db.ts";
import type { Alarm } from "./alarm.ts";
import type { Attempt } from "./attempt.ts";
import { attempt } from "./attempt.ts";
import { createStepMeter, moveLive } from "./clockstep.ts";
import type { ObservedStore } from "./commit.ts";
import { skipFreshness } from "./commit.ts";
import type { Flow, ReconcileResult, Reconciler, Run, Wait } from "./flow.ts";
import { pauseAfter } from "./flow.ts";
import { commit, LostLease, promote, remove } from "./lease.ts";
import { forget, queueLock } from "./task.ts";
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

export interface RunContext {
  readonly store: ObservedStore;
  readonly alarm: Alarm;
  /** In [0, 1). */
  readonly random: () => number;
  readonly log: Log;
  /** Milliseconds. */
  readonly lease: number;
  readonly flows: ReadonlyMap<string, Flow>;
  stopping(): boolean;
}

/** What the loop knows of a row that is being worked on. */
export interface HeldLease {
  readonly id: number;
  /** Of its flow or reconciler. */
  readonly name: string;
  readonly lease: string;
  /** End of the lease as stored. */
  until: number;
  /** Somebody else has it now. */
  lost: boolean;
  /** JSON of the reason, as soon as the loop has seen it. */
  cancel: string | null;
  current: Attempt<unknown> | null;
}

/** Flows' last rows kept per subject. */
const kept = 1000;
const announceEvery = 1000;

/** Runs steps until the task ends (true) or has to wait. Never rejects. */
export async function runFlow(context: RunContext, flow: Flow, row: Row, held: HeldLease): Promise<boolean> {
  let live = readLive(row);
  try {
    while (live.row.lease !== null && !held.lost) {
      if (held.cancel !== null) live = { ...live, row: { ...live.row, cancel: held.cancel } };
      const move = await nextMove(context, flow, live, held);
      if (held.lost) return false;
      live = await store(context, flow, live, move, held);
    }
  } catch (error) {
    giveUp(context, live.row, error);
  }
  return live.row.end_date !== null;
}

/** The lease runs out by itself, and then the step is repeated. */
function giveUp(context: RunContext, row: Row, error: unknown): void {
  if (error instanceof LostLease) return;
  const detail = { task: row.id, name: row.name, step: row.step, error };
  context.log("error", "a task stays as it is until its lease ends", detail);
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
 * What a step reports while it works is written under its lease, with an announcement, one write after the other and none after its
 * end. Of several reports in `announceEvery` the last is written.
 */
function createNotes(context: RunContext, flow: Flow, live: LiveTask, held: HeldLease) {
  let current = live;
  let latest: string | null = null;
  let last = live.row.announced_at;
  let callOff: (() => void) | null = null;
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
    // If it fails, the next report is written; a lost lease is found by the loop.
    await write(detail, last).catch(() => {});
    writing = null;
    plan();
  }

  function plan(): void {
    if (latest === null || isOver || callOff !== null || writing !== null) return;
    callOff = context.alarm.at(last + announceEvery, () => {
      callOff = null;
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
    /** Resolves to the row as it was written last. */
    async end(): Promise<LiveTask> {
      isOver = true;
      callOff?.();
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
    const asked = { ...live, row: { ...row, cancel: held.cancel } };
    const stop = stopReason(flow, asked, now);
    if (stop !== null) return beginUndo(flow, asked, stop.ending, stop.error, now);
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
  context.log("warn", "a step failed", detail);
  return fail(flow, live, error, now, context.random());
}

function runOf({ row, input, facts }: LiveTask, signal: AbortSignal): Run {
  const { id: task, subject_id: subject, project_id: project, tries } = row;
  return { task, subject, project: project ?? 0, input, facts, attempt: tries + 1, signal };
}

/** Stores a move and gives the row as it stands then. What a flow's own rows throw counts as a failed try. */
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
  const going = move.live.row.lease !== null;
  const { live } = going && context.stopping() ? releaseLease(move.live, now) : move;
  const until = live.row.lease === null ? live.row.due_at : now + context.lease;
  const isNews = move.ending !== null || (now - live.row.announced_at >= announceEvery && hasNews(live, before.row));
  const tells = flow.announce !== undefined && isNews;
  const row = { ...live.row, due_at: until, announced_at: tells ? now : live.row.announced_at };
  const asked = await context.store.write(async (tx) => {
    if (move.ending !== null) await lock(tx, queueLock(row.subject, row.subject_id));
    const stored = await commit(tx, before.row, changeOf({ ...live, row }), now);
    const run = runOf(live, new AbortController().signal);
    await move.saves?.save?.(tx, run);
    await move.unsaves?.unsave?.(tx, run);
    if (move.ending !== null) await flow.ended?.(tx, run, move.ending);
    if (tells) await flow.announce?.(tx, viewOf(row), move.ending === null ? "changed" : "ended");
    if (move.ending !== null) await passTurn(context, tx, row, now);
    return stored;
  });
  held.until = asked.due_at ?? held.until;
  if (asked.cancel !== null) held.cancel = asked.cancel;
  // A step that is not to be begun any more has not begun.
  const begun_at = asked.cancel === null || row.ending !== null || flow.persistent ? row.begun_at : null;
  return { ...live, row: { ...row, ...asked, begun_at } };
}

/** Whether there is more to see than in the row before, or than was told last. Looks of a step that waits mostly bring nothing. */
function hasNews({ row, records }: LiveTask, before: Row): boolean {
  const times = records.flatMap(({ start, end }) => [start ?? 0, end ?? 0]);
  const isLater = Math.max(row.begun_at ?? 0, ...times) > row.announced_at;
  return isLater || row.steps !== before.steps || row.error !== before.error;
}

async function passTurn(context: RunContext, tx: Tx, ended: Row, now: number): Promise<void> {
  const next = await promote(tx, ended, now);
  if (next !== undefined) await context.flows.get(next.name)?.announce?.(tx, viewOf(next), "changed");
  // Now and then is often enough: lists are cut by their own limit.
  if (ended.id % 64 === 0) await forget(tx, { kind: ended.subject, id: ended.subject_id }, kept);
}

/** One run of a reconciler. Never rejects. Resolves to the nudge it has served, null when it went wrong. */
export async function runReconciler(
  context: RunContext,
  reconciler: Reconciler,
  row: Row,
  held: HeldLease,
): Promise<number | null> {
  const { alarm } = context;
  const free = { lease: null, begun_at: null };
  try {
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
    await context.store.write((tx) => storeKept(tx, row, done, result, now));
    return row.wake;
  } catch (error) {
    await storeTrouble(context, reconciler, row, held, error);
    return null;
  }
}

/** Rows first: whoever changes them nudges the reconciler afterwards, and two that go the same way do not block each other. */
async function storeKept(tx: Tx, row: Row, done: Row, result: ReconcileResult, now: number): Promise<void> {
  if (result.save === undefined) skipFreshness(tx);
  else await result.save(tx);
  const gone = result.gone === true && (await remove(tx, row));
  if (!gone) await commit(tx, row, done, now);
}

async function storeTrouble(
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
    context.log("warn", "a reconciler failed", { task: row.id, name: row.name, subject: row.subject_id, tries, error });
    const due_at = now + pauseAfter(reconciler.pause, tries, context.random());
    const change = { ...free, tries, error: JSON.stringify(errorOf(error, null)), due_at };
    await context.store.write((tx) => commit(tx, row, change, now));
  } catch (second) {
    giveUp(context, row, second);
  }
}
