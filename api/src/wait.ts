/**
 * Waits for background work: until an object is settled, or until an action of a server has ended. Reads repeat with growing pauses;
 * clock and sleep are parameters.
 */
import type { Action } from "./action.ts";

const unsettled = new Set<unknown>(["New", "FromPool", "Deleting", "Postponed", "InProgress"]);

/**
 * Returns true if the background work on an object is complete (docs/spec.md#headers-and-queries-for-changes): an action has ended, an
 * object exists, and its last desired state is applied.
 */
export function isSettled(answer: unknown): boolean {
  if (typeof answer !== "object" || answer === null) return true;
  const { State, Generation, AppliedGeneration } = answer as Readonly<Record<string, unknown>>;
  return !unsettled.has(State) && Generation === AppliedGeneration;
}

/** Thrown by `waitFor` after `timeout`. `last` is the object as it was read last. */
export class WaitError extends Error {
  override readonly name = "WaitError";
  readonly last: unknown;

  constructor(what: string, ms: number, last: unknown) {
    super(`${what}: timed out after ${ms} ms`);
    this.last = last;
  }
}

/** Thrown by `waitFor` if the action failed or was canceled. Programs compare `code`. */
export class ActionError extends Error {
  override readonly name = "ActionError";
  /** Code of background work (`work.ts`); `canceled`: the action was canceled without an error. */
  readonly code: string;
  /** Name of the failed step, or null. */
  readonly step: string | null;
  readonly action: Action;

  constructor(action: Action) {
    const { ID, ServerID, Type, State, Error: cause } = action;
    const reason = cause === null ? "" : `: ${cause.code}: ${cause.detail}`;
    super(`action ${ID} (${Type}) of server ${ServerID}: ${State}${reason}`);
    this.code = cause?.code ?? "canceled";
    this.step = cause?.step ?? null;
    this.action = action;
  }
}

/** Second argument of `waitFor`. */
export interface WaitOptions<A> {
  /** Cancels the wait; the work continues. */
  readonly signal?: AbortSignal;
  /** Returns true when the wait is over. Default: `isSettled`. */
  readonly until?: (answer: A) => boolean;
  /** Longest wait in milliseconds. Default 60,000; for an action 900,000. */
  readonly timeout?: number;
  /** Is called with the object after the first read and after each read that differs from the one before. */
  readonly onProgress?: (answer: A) => void;
}

/** Time source of `waitFor`, in milliseconds, so that tests need not wait. */
export interface WaitClock {
  readonly now: () => number;
  readonly sleep: (ms: number, signal?: AbortSignal) => Promise<void>;
}

/** Reads an object repeatedly until `until` returns true, and returns it. Reads a last time at `timeout`, then throws `WaitError`. */
export async function waitUntil<A>(
  what: string,
  read: () => Promise<A>,
  { until = isSettled, timeout = 60_000, signal, onProgress }: WaitOptions<A>,
  { now, sleep }: WaitClock,
): Promise<A> {
  const end = now() + timeout;
  let shown: string | undefined;
  for (let pause = 100; ; pause = Math.min(pause * 1.5, 2000)) {
    const answer = await read();
    if (onProgress) {
      const text = JSON.stringify(answer);
      if (text !== shown) onProgress(answer);
      shown = text;
    }
    if (until(answer)) return answer;
    const left = end - now();
    if (left <= 0) throw new WaitError(what, timeout, answer);
    await sleep(Math.min(pause, left), signal);
  }
}

/** Returns a completed action. Throws `ActionError` for one that failed or was canceled. */
export function requireCompleted(action: Action): Action {
  if (action.State !== "Completed") throw new ActionError(action);
  return action;
}
