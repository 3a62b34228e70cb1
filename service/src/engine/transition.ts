/**
 * State machine of a flow: takes a task row and the outcome of a step, and returns the next columns of the row. All rules of the
 * engine are here (reverse undo, tries, deadlines, `Progress`), in pure functions that tests can call directly.
 */
import { taskErrors } from "@brume/api/work.ts";
import type { Done, Ending, Flow, Step, Wait } from "./flow.ts";
import { pauseAfter, StepError, undoTime } from "./flow.ts";
import type { TaskChange } from "./lease.ts";
import type { Row, StepRecord, TaskError } from "./view.ts";
import { progressOf } from "./view.ts";

/** A claimed row with its parsed JSON columns. */
export interface LiveTask {
  readonly row: Row;
  readonly records: readonly StepRecord[];
  readonly facts: Readonly<Record<string, unknown>>;
  readonly input: unknown;
}

/** Next state of a task, to be stored by its worker. */
export interface Transition {
  /** The task to store. `row.lease` is null if the worker releases it. */
  readonly live: LiveTask;
  /** Final state, if the task ends. */
  readonly ending: Ending | null;
  /** The step whose `save` runs in the same transaction. */
  readonly saves?: Step;
  /** The step whose `unsave` runs in the same transaction. */
  readonly unsaves?: Step;
}

/** Parses the JSON columns of a row. */
export function readLive(row: Row): LiveTask {
  const records = JSON.parse(row.steps) as StepRecord[];
  const facts = JSON.parse(row.facts) as LiveTask["facts"];
  const input: unknown = JSON.parse(row.input);
  return { row, records, facts, input };
}

/** Returns the columns that the worker writes. */
export function changeOf({ row }: LiveTask): TaskChange {
  return row;
}

function stepIndex(live: LiveTask): number {
  return live.records.findIndex((each) => each.name === live.row.step);
}

/** Returns the current step of the row. Throws if the flow has no such step: it was renamed, or stored by a newer release. */
export function stepOf(flow: Flow, live: LiveTask): Step | undefined {
  if (live.row.step === null) return undefined;
  const step = flow.steps.find((each) => each.name === live.row.step);
  if (step === undefined) throw new Error(`${flow.name} has no step ${live.row.step}: step names are never changed`);
  return step;
}

function note(live: LiveTask, index: number, record: Partial<StepRecord>): StepRecord[] {
  return live.records.map((each, at) => (at === index ? { ...each, ...record } : each));
}

function moved(live: LiveTask, change: Partial<Row>, records: readonly StepRecord[] = live.records): LiveTask {
  const steps = records === live.records ? live.row.steps : JSON.stringify(records);
  return { ...live, records, row: { ...live.row, ...change, steps } };
}

function end(live: LiveTask, ending: Ending, now: number): Transition {
  const progress = ending === "Completed" ? 100 : live.row.progress;
  const over = { state: ending, ending: null, step: null, progress, end_date: now, due_at: null, lease: null };
  return { live: moved(live, { ...over, begun_at: null, tries: 0 }), ending };
}

function withFacts(live: LiveTask, more: object | undefined): LiveTask {
  if (more === undefined) return live;
  const facts = { ...live.facts, ...more };
  return { ...live, facts, row: { ...live.row, facts: JSON.stringify(facts) } };
}

/** Records the step as done and moves to the next one, or to the end. */
export function advance(flow: Flow, live: LiveTask, done: Done<object> | void, now: number): Transition {
  const { row } = live;
  const saves = stepOf(flow, live);
  const at = stepIndex(live);
  const start = row.begun_at ?? now;
  // An empty detail replaces that of an earlier wait.
  const detail = done?.detail ?? "";
  const records = note(live, at, { state: "Completed", start, end: now, detail });
  const known = withFacts(live, done?.facts);
  const step = records[at + 1]?.name ?? null;
  const progress = Math.min(99, progressOf(records));
  const next = moved(known, { step, progress, tries: 0, error: null, begun_at: now }, records);
  const move = step === null ? end(next, "Completed", now) : { live: timed(flow, next, now), ending: null };
  return saves === undefined ? move : { ...move, saves };
}

function timed(flow: Flow, live: LiveTask, now: number): LiveTask {
  if (flow.persistent) return live;
  return moved(live, { step_until: now + (stepOf(flow, live)?.time ?? flow.time) });
}

/** Sets the `detail` of the running step. */
export const remark = (live: LiveTask, detail: string): LiveTask =>
  moved(live, {}, note(live, stepIndex(live), { detail }));

/** Ends a flow without remaining steps. */
export function complete(live: LiveTask, now: number): Transition {
  return end(live, "Completed", now);
}

const exceeded = (detail: string) => new StepError("deadline_exceeded", taskErrors.deadline_exceeded, detail);

/** Returns why the task must stop (cancellation or deadline), or null. A persistent flow and one that is being undone never stop. */
export function stopReason(
  flow: Flow,
  live: LiveTask,
  now: number,
): { ending: "Failed" | "Canceled"; error: TaskError } | null {
  const { row } = live;
  if (flow.persistent || row.ending !== null) return null;
  if (row.cancel !== null) {
    return { ending: "Canceled", error: { ...(JSON.parse(row.cancel) as TaskError), step: row.step } };
  }
  if (row.deadline_at === null || now < row.deadline_at) return null;
  const detail = `The action did not complete within ${Math.round(flow.deadline / 1000)} s.`;
  const late = errorOf(exceeded(detail), row.step);
  return { ending: "Failed", error: row.error === null ? late : (JSON.parse(row.error) as TaskError) };
}

/**
 * Starts undoing all steps in reverse order, from the current one, which may be partially done. If the current step failed and has
 * `keeps`, the task ends without undoing.
 */
export function beginUndo(
  flow: Flow,
  live: LiveTask,
  ending: "Failed" | "Canceled",
  error: TaskError,
  now: number,
): Transition {
  const at = stepIndex(live);
  const begun = live.row.begun_at !== null && at >= 0;
  const state = ending === "Failed" ? "Failed" : "InProgress";
  const record = { state, start: live.row.begun_at, end: ending === "Failed" ? now : null } as const;
  const detail = ending === "Failed" ? { detail: error.detail } : {};
  const records = begun ? note(live, at, { ...record, ...detail }) : live.records;
  if (ending === "Failed" && stepOf(flow, live)?.keeps === true)
    return end(moved(live, { error: JSON.stringify(error) }, records), ending, now);
  const from = begun ? at : (at < 0 ? records.length : at) - 1;
  const step = records[from]?.name ?? null;
  const until = { step_until: now + undoTime };
  const back = moved(live, { ending, error: JSON.stringify(error), step, tries: 0, ...until }, records);
  return step === null ? end(back, ending, now) : { live: back, ending: null };
}

/** Records the step as undone and moves to the step before it, or to the end. */
export function undoStep(flow: Flow, live: LiveTask, now: number): Transition {
  const unsaves = stepOf(flow, live);
  const at = stepIndex(live);
  const records = live.records[at]?.state === "Failed" ? live.records : note(live, at, { state: "Undone", end: now });
  return stepBack(live, records, now, unsaves);
}

function stepBack(live: LiveTask, records: readonly StepRecord[], now: number, unsaves: Step | undefined): Transition {
  const step = records[stepIndex(live) - 1]?.name ?? null;
  const back = moved(live, { step, tries: 0, step_until: now + undoTime }, records);
  const move = step === null ? end(back, live.row.ending ?? "Failed", now) : { live: back, ending: null };
  return unsaves === undefined ? move : { ...move, unsaves };
}

/** Records that the step could not be undone in time, and moves to the step before it. */
function abandon(flow: Flow, live: LiveTask, now: number): Transition {
  const detail = `The step could not be undone within ${Math.round(undoTime / 1000)} s.`;
  return stepBack(live, note(live, stepIndex(live), { state: "Failed", end: now, detail }), now, stepOf(flow, live));
}

/**
 * Records a failed try: the step is retried after a pause, or, without tries or time left, undoing begins. Undoing has a time limit
 * and no limit of tries. `random` is in [0, 1).
 */
export function fail(flow: Flow, live: LiveTask, cause: unknown, now: number, random: number): Transition {
  const { row } = live;
  const tries = row.tries + 1;
  const due = now + pauseAfter(flow.pause, tries, random);
  const paused = { tries, due_at: due, lease: null };
  if (row.ending !== null)
    return due >= (row.step_until ?? Infinity) ? abandon(flow, live, now) : { live: moved(live, paused), ending: null };
  const error = errorOf(cause, row.step);
  const final = cause instanceof StepError && cause.final;
  const most = stepOf(flow, live)?.tries ?? flow.tries;
  const over = final || tries >= most || due >= Math.min(row.step_until ?? due + 1, row.deadline_at ?? due + 1);
  if (over && !flow.persistent) return beginUndo(flow, live, "Failed", error, now);
  return { live: moved(live, { ...paused, error: JSON.stringify(error) }), ending: null };
}

/** Starts the step's time at `then`, and moves the deadline of the flow by the same duration. */
function delayed(flow: Flow, live: LiveTask, then: number): LiveTask {
  const { step_until, deadline_at } = live.row;
  const until = timed(flow, live, then);
  const delay = (until.row.step_until ?? 0) - (step_until ?? 0);
  return deadline_at === null ? until : moved(until, { deadline_at: deadline_at + delay });
}

/** Repeats the step after `wait`. If the time of the step is over, it fails with `overdue`. */
export function postpone(flow: Flow, live: LiveTask, wait: Wait, now: number): Transition {
  const { row } = live;
  const { turn } = wait;
  const limit = Math.min(row.step_until ?? Infinity, row.deadline_at ?? Infinity);
  const until = turn === undefined ? limit : (row.begun_at ?? now) + turn;
  if (row.ending === null && now >= until) {
    const late = wait.overdue ?? exceeded(wait.detail ?? "");
    return beginUndo(flow, live, "Failed", errorOf(late, row.step), now);
  }
  const records = wait.detail === undefined ? live.records : note(live, stepIndex(live), { detail: wait.detail });
  const due = Math.min(now + wait.wait, until);
  const known = withFacts(live, wait.facts);
  const later = turn === undefined ? known : delayed(flow, known, due);
  return { live: moved(later, { due_at: due, lease: null }, records), ending: null };
}

/** Releases the row unchanged and due, so that another worker can continue immediately. */
export function releaseLease(live: LiveTask, now: number): Transition {
  return { live: moved(live, { due_at: now, lease: null }), ending: null };
}

/** Returns the error that clients see. Only a `StepError` is shown with its texts; others become `internal` and are only logged. */
export function errorOf(cause: unknown, step: string | null): TaskError {
  if (cause instanceof StepError) {
    const { code, title, message: detail, log } = cause;
    return { code, title, detail, step, ...(log !== null && { log }) };
  }
  return {
    code: "internal",
    title: taskErrors.internal,
    detail: step ? `${step} did not succeed.` : "",
    step,
  };
}
