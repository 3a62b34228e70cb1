/**
 * Types of flows and reconcilers. Both are plain values, so that tests can fail, kill and repeat every step of every flow without
 * knowing what it does. A flow is a list of named steps with `do` and `undo`; it starts and ends. A reconciler is one step without
 * input, repeated for ever, that brings the actual state to the desired state. Both are stored as rows of one table (`task.ts`)
 * and run by one loop (`engine.ts`).
 *
 * Every `do`, `undo` and `run` is idempotent: it may run twice, in two processes, after an interruption at any point. So it checks
 * the actual state first and names objects by id. `undo` of a step that was never done does nothing. An `undo` that fails for ten
 * minutes is abandoned, and the reconciler of the subject cleans up.
 */
import type { WorkCode } from "@brume/api/work.ts";
import type { Tx } from "../store/db.ts";
import type { Task } from "./view.ts";

/** Input of one try of a step. Neither `input` nor `facts` contains secrets. */
export interface Run<Input = unknown, Facts = unknown> {
  readonly task: number;
  readonly subject: number;
  readonly project: number;
  readonly input: Input;
  /** Results of earlier steps. */
  readonly facts: Readonly<Partial<Facts>>;
  /** Number of this try, from 1. */
  readonly attempt: number;
  /** Aborted at the time limit, when the task is canceled, or when the process stops. The step must then throw any error soon. */
  readonly signal: AbortSignal;
  /** Shows a sentence as the step's `Detail` while it runs. At most one per second is stored, the latest. */
  readonly note?: (detail: string) => void;
}

/** Result of a completed step. */
export interface Done<Facts> {
  /** JSON values, merged into the facts of the flow. */
  readonly facts?: Partial<Facts>;
  /** One sentence for the client. */
  readonly detail?: string;
}

/** Result of a step that is not done yet, without an error. It runs again after `wait` milliseconds, or when the task is woken. */
export interface Wait<Facts = Record<never, never>> extends Done<Facts> {
  readonly wait: number;
  /** Error of the step if it still waits at the end of its time. Default `deadline_exceeded`. */
  readonly overdue?: StepError;
  /** Set while the step waits in a queue: milliseconds that this may take from the begin of the step. The step's own time starts after it. */
  readonly turn?: number;
}

/** One named step of a flow. */
export interface Step<Input = unknown, Facts = unknown> {
  /** Stored in rows and shown to clients: never renamed, see `stepNames`. */
  readonly name: string;
  /** Changes the host. A step without `do` only writes rows. */
  do?(run: Run<Input, Facts>): Promise<Done<Facts> | Wait<Facts> | void>;
  /** Writes rows in the transaction that records the step as done. May run twice; must change only the database. */
  save?(tx: Tx, run: Run<Input, Facts>): Promise<void>;
  /** Reverts `do`, also after a partial `do`. */
  undo?(run: Run<Input, Facts>): Promise<void>;
  /** Writes rows in the transaction that records the step as undone. */
  unsave?(tx: Tx, run: Run<Input, Facts>): Promise<void>;
  /** Default: that of the flow. */
  readonly tries?: number;
  /** Milliseconds for all tries and their pauses together. Default: that of the flow. */
  readonly time?: number;
  /** Set for a step that only checks: its failure fails the flow, but earlier steps are not undone. */
  readonly keeps?: boolean;
}

/** Exponential backoff between tries. */
export interface Pause {
  /** Milliseconds before the second try. */
  readonly first: number;
  /** Factor from one pause to the next. */
  readonly factor: number;
  /** Milliseconds of the longest pause. */
  readonly most: number;
}

/** Final state of a flow. */
export type Ending = "Completed" | "Failed" | "Canceled";

/** A kind of long work with an end. */
export interface Flow<Input = unknown, Facts = unknown> {
  /** Such as `server.create`. Stored in rows: never renamed. */
  readonly name: string;
  /** Kind of the object it works on, such as `server`. Flows of one object run one at a time, in the order of their start. */
  readonly subject: string;
  readonly steps: readonly Step<Input, Facts>[];
  /** Tries of one step, unless the step sets `tries`. */
  readonly tries: number;
  /** Milliseconds for one step, unless the step sets `time`. */
  readonly time: number;
  /** Milliseconds for the whole flow, without its time in the queue; after it the flow is undone. Time without a process is not counted. */
  readonly deadline: number;
  readonly pause: Pause;
  /** Set for deletions: tried until done, without deadline, neither undone nor canceled. */
  readonly persistent: boolean;
  /** Runs in the transaction that ends the task, before the next one in the queue starts. */
  ended?(tx: Tx, run: Run<Input, Facts>, ending: Ending): Promise<void>;
  /** Appends the flow's events, in the transaction of the change. `changed` comes at most once a second. */
  announce?(tx: Tx, task: Task, what: "created" | "changed" | "ended"): Promise<void>;
}

type Defaults = "tries" | "time" | "deadline" | "pause" | "persistent";
type Optional<T, K extends keyof T> = Omit<T, K> & Partial<Pick<T, K>>;

/** Five tries have pauses of about 1, 3, 9 and 27 s. This leaves more than one of the two minutes for the tries themselves. */
const defaultPause: Pause = { first: 1_000, factor: 3, most: 60_000 };
const defaultTime = 120_000;

/** Milliseconds to undo one step, with all tries and pauses. After it the step is recorded as not undone, and undoing continues. */
export const undoTime = 600_000;

/** Milliseconds added to the sum of the steps' times, so that a late step fails by its own limit, not by the flow's. */
const spareTime = 60_000;

/**
 * Completes a flow with the defaults: per step five tries within two minutes, and a deadline of the sum of its steps' times plus one
 * minute. Throws if two steps have the same name.
 */
export function flow<Input, Facts = Record<never, never>>(
  spec: Optional<Flow<Input, Facts>, Defaults>,
): Flow<Input, Facts> {
  const names = spec.steps.map((step) => step.name);
  if (new Set(names).size < names.length) throw new Error(`flow ${spec.name} has two steps with the same name`);
  const time = spec.time ?? defaultTime;
  const deadline = spec.steps.reduce((sum, step) => sum + (step.time ?? time), spareTime);
  return { tries: 5, deadline, pause: defaultPause, persistent: false, ...spec, time };
}

/** Result of a reconciler's run. */
export interface ReconcileResult {
  /**
   * Latest time of the next run, in milliseconds since 1970. Spec with a time limit (an unconfirmed firewall) returns it at every
   * run.
   */
  readonly at?: number;
  /** The subject no longer exists, in the database and on the host: its task row is deleted. */
  readonly gone?: boolean;
  /** Writes rows in the transaction that records the run, only if this process still holds the lease. */
  save?(tx: Tx): Promise<void>;
}

/** Input of one run of a reconciler. */
export interface ReconcilerRun {
  /** Id of the object to reconcile. */
  readonly subject: number;
  /** Number of this try, from 1. */
  readonly attempt: number;
  /** As in `Run`. */
  readonly signal: AbortSignal;
}

/** A loop that brings the actual state of each of its subjects to the desired state. */
export interface Reconciler {
  /** Stored in rows: never renamed. */
  readonly name: string;
  /** Kind of the object it works on. */
  readonly subject: string;
  /** There is only one subject, with id 0. It is reconciled from the start of the engine, without a request. */
  readonly single: boolean;
  /** Milliseconds from one run to the next without a request. */
  readonly period: number;
  /** Milliseconds for one run. */
  readonly time: number;
  /** Subjects reconciled at the same time. The others wait; the longest waiting is next. */
  readonly concurrency: number;
  readonly pause: Pause;
  run(run: ReconcilerRun): Promise<ReconcileResult | void>;
}

/** Completes a reconciler with the defaults: two minutes per run, unlimited concurrency, and the pauses of flows. */
export function defineReconciler(spec: Optional<Reconciler, "single" | "time" | "concurrency" | "pause">): Reconciler {
  return { single: false, time: defaultTime, concurrency: Number.POSITIVE_INFINITY, pause: defaultPause, ...spec };
}

interface StepErrorOptions {
  readonly final?: boolean;
  readonly cause?: unknown;
  readonly log?: string | null;
}

/** Error of a step that the API shows to the client. All other errors are only logged; the client gets the code `internal`. */
export class StepError extends Error {
  override readonly name = "StepError";
  readonly code: WorkCode;
  /** Fixed sentence of the code. */
  readonly title: string;
  /** Not retried. */
  readonly final: boolean;
  /** Last output of the failed program. */
  readonly log: string | null;

  constructor(code: WorkCode, title: string, detail: string, options: StepErrorOptions = {}) {
    super(detail, { cause: options.cause });
    this.code = code;
    this.title = title;
    this.final = options.final ?? false;
    this.log = options.log ?? null;
  }
}

/** Returns the milliseconds from try `attempt` to the next. `random` in [0, 1) varies it by up to 25 % in both directions. */
export function pauseAfter(pause: Pause, attempt: number, random: number): number {
  const grown = Math.min(pause.most, pause.first * pause.factor ** (attempt - 1));
  return Math.round(grown * (0.75 + random / 2));
}

/** Returns the step names by flow. A test compares them with a snapshot, because a stored row cannot continue in a renamed step. */
export function stepNames(flows: readonly Flow[]): Record<string, readonly string[]> {
  return Object.fromEntries(flows.map((each) => [each.name, each.steps.map((step) => step.name)]));
}
