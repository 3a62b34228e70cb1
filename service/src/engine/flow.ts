/**
 * What a flow and a reconciler are: plain values, so that tests can fail, kill and repeat every step of every flow without
 * knowing what it does. A flow is a list of named steps with `do` and `undo`; it starts, takes its time and ends. A reconciler
 * is one endless step without input that makes the world equal to the wish. Both live as rows of one table (`task.ts`)
 * and are worked on by one loop (`engine.ts`).
 *
 * Every `do`, `undo` and `run` is an *ensure*: it may run twice, in two processes, after having been cut anywhere, so it looks
 * first and names things by id. `undo` of what was never done is fine and does nothing. One that fails for ten minutes is given up,
 * and whoever keeps the subject finds what it has left.
 */
import type { WorkCode } from "@brume/api/work.ts";
import type { Tx } from "../store/db.ts";
import type { Task } from "./view.ts";

/** What a step knows. `facts` is what earlier steps (and earlier tries of this one) found out. Neither holds secrets. */
export interface Run<Input = unknown, Facts = unknown> {
  readonly task: number;
  readonly subject: number;
  readonly project: number;
  readonly input: Input;
  readonly facts: Readonly<Partial<Facts>>;
  /** From 1. */
  readonly attempt: number;
  /** Aborted when the time is up, the task is canceled, or the process has to stop: end soon, by throwing whatever comes. */
  readonly signal: AbortSignal;
  /** Shows a sentence as the step's `Detail` while it works, at most once a second: of several in one second the last. */
  readonly note?: (detail: string) => void;
}

export interface Done<Facts> {
  /** Laid over the facts so far. JSON. */
  readonly facts?: Partial<Facts>;
  /** One sentence for the caller. */
  readonly detail?: string;
}

/** Not yet, and nothing went wrong: run the step again after `wait` milliseconds, or when somebody wakes the task. */
export interface Wait {
  readonly wait: number;
  readonly detail?: string;
  /** What to say when the time of the step is over before it came true. */
  readonly overdue?: StepError;
  /**
   * It is not its turn yet: the time of the step begins when this is over, which may take so many milliseconds, counted from when the
   * step was begun.
   */
  readonly turn?: number;
}

export interface Step<Input = unknown, Facts = unknown> {
  /** Stored in rows and shown to callers: never renamed, see `stepNames`. */
  readonly name: string;
  /** Changes the world. A step without it only writes rows. */
  do?(run: Run<Input, Facts>): Promise<Done<Facts> | Wait | void>;
  /** Rows that change together with the record that the step is done. Nothing but the database, maybe twice. */
  save?(tx: Tx, run: Run<Input, Facts>): Promise<void>;
  undo?(run: Run<Input, Facts>): Promise<void>;
  /** Rows that change together with the record that the step is undone. */
  unsave?(tx: Tx, run: Run<Input, Facts>): Promise<void>;
  readonly tries?: number;
  /** Milliseconds for all tries and their pauses together. */
  readonly time?: number;
  /** It only looks at what is there: when it fails the flow has failed, and what the steps before it have done stays. */
  readonly keeps?: boolean;
}

/** Milliseconds before the second try, the factor from pause to pause, and the longest one. */
export interface Pause {
  readonly first: number;
  readonly factor: number;
  readonly most: number;
}

export type Ending = "Completed" | "Failed" | "Canceled";

export interface Flow<Input = unknown, Facts = unknown> {
  /** Such as `server.create`. Stored in rows: never renamed. */
  readonly name: string;
  /** Kind of thing it works on. One flow at a time works on one subject, in the order of their start. */
  readonly subject: string;
  readonly steps: readonly Step<Input, Facts>[];
  readonly tries: number;
  /** Milliseconds for one step, unless the step says otherwise. */
  readonly time: number;
  /** Milliseconds for the whole flow from its turn on; what comes later is undone. Time in which no process ran is not counted. */
  readonly deadline: number;
  readonly pause: Pause;
  /** Never given up: tried until done, without deadline, neither undone nor canceled. For deletions. */
  readonly persistent: boolean;
  /** In the transaction that ends the task, before the next one gets its turn. */
  ended?(tx: Tx, run: Run<Input, Facts>, ending: Ending): Promise<void>;
  /** In the transaction of the change: where the flow's events are appended. `changed` comes at most once a second. */
  announce?(tx: Tx, task: Task, what: "created" | "changed" | "ended"): Promise<void>;
}

type Defaults = "tries" | "time" | "deadline" | "pause" | "persistent";
type Optional<T, K extends keyof T> = Omit<T, K> & Partial<Pick<T, K>>;

/** Five tries: pauses of about 1, 3, 9 and 27 seconds leave more than a minute of the two for the tries themselves. */
const defaultPause: Pause = { first: 1_000, factor: 3, most: 60_000 };
const defaultTime = 120_000;

/** Milliseconds for undoing one step, all tries and their pauses together: then it is told as not undone, and the one before it follows. */
export const undoTime = 600_000;

/** Kept free above what the steps may take, so that a step that is late says so itself. */
const spareTime = 60_000;

/** A flow with the house's defaults: five tries within two minutes per step, and as long as its steps may take together. */
export function flow<Input, Facts = Record<never, never>>(
  spec: Optional<Flow<Input, Facts>, Defaults>,
): Flow<Input, Facts> {
  const names = spec.steps.map((step) => step.name);
  if (new Set(names).size < names.length) throw new Error(`${spec.name} has two steps of one name`);
  const time = spec.time ?? defaultTime;
  const deadline = spec.steps.reduce((sum, step) => sum + (step.time ?? time), spareTime);
  return { tries: 5, deadline, pause: defaultPause, persistent: false, ...spec, time };
}

/** What a run of a reconciler leaves: when it wants to run again at the latest, rows to write, or that the subject is no more. */
export interface ReconcileResult {
  /** Milliseconds since 1970. A wish with an hour of its own (a confirmation that runs out) names it here at every run. */
  readonly at?: number;
  /** The subject and everything of it in the world are gone: forget it. */
  readonly gone?: boolean;
  /** Rows written together with the record of the run, and only if this process still holds the lease. */
  save?(tx: Tx): Promise<void>;
}

export interface ReconcilerRun {
  readonly subject: number;
  readonly attempt: number;
  readonly signal: AbortSignal;
}

export interface Reconciler {
  readonly name: string;
  readonly subject: string;
  /** There is one subject only, number 0, and it is kept from the start on. */
  readonly single: boolean;
  /** Milliseconds from one run to the next when nobody nudges. */
  readonly period: number;
  /** Milliseconds for one run. */
  readonly time: number;
  /** Subjects worked on side by side; the others wait, those that wait longest first. */
  readonly lanes: number;
  readonly pause: Pause;
  run(run: ReconcilerRun): Promise<ReconcileResult | void>;
}

/** A reconciler with the house's defaults. */
export function defineReconciler(spec: Optional<Reconciler, "single" | "time" | "lanes" | "pause">): Reconciler {
  return { single: false, time: defaultTime, lanes: Number.POSITIVE_INFINITY, pause: defaultPause, ...spec };
}

interface StepErrorOptions {
  readonly final?: boolean;
  readonly cause?: unknown;
  readonly log?: string | null;
}

/** Thrown by a step to say in the caller's words why it failed. Other errors are told to the log only. */
export class StepError extends Error {
  override readonly name = "Trouble";
  readonly code: WorkCode;
  readonly title: string;
  /** Trying again would not help. */
  readonly final: boolean;
  /** What the thing itself said last. */
  readonly log: string | null;

  constructor(code: WorkCode, title: string, detail: string, options: StepErrorOptions = {}) {
    super(detail, { cause: options.cause });
    this.code = code;
    this.title = title;
    this.final = options.final ?? false;
    this.log = options.log ?? null;
  }
}

/** Milliseconds until try number `attempt` + 1; `random` in [0, 1) spreads it by a quarter to either side. */
export function pauseAfter(pause: Pause, attempt: number, random: number): number {
  const grown = Math.min(pause.most, pause.first * pause.factor ** (attempt - 1));
  return Math.round(grown * (0.75 + random / 2));
}

/** The names that rows may hold, by flow: a snapshot of this is a law, as a renamed step strands the rows that are in it. */
export function stepNames(flows: readonly Flow[]): Record<string, readonly string[]> {
  return Object.fromEntries(flows.map((each) => [each.name, each.steps.map((step) => step.name)]));
}
