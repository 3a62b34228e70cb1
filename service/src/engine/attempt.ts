/**
 * One try of one step: the only place where the engine calls code of features. A signal interrupts it (time limit, cancellation, stop).
 * If it has not ended 5 s later, its result is dropped, because a hanging call must not block its subject for ever.
 */
import type { Alarm } from "./alarm.ts";

/** Milliseconds that a step may take to end after its interruption. */
const grace = 5_000;

/** Reason of the signal of an interrupted step. */
class Interruption extends Error {
  override readonly name = "Interruption";
}

/** One attempt of a step: its result, and the means to end it. */
export interface Attempt<T> {
  /** Rejects at the latest 5 s after an interruption. A result after that is dropped. */
  readonly result: Promise<T>;
  /** Aborts the signal of the work, with `why` as the message of its reason. */
  interrupt(why: string): void;
}

/** Runs `work` immediately and interrupts it at `until` (milliseconds since 1970). */
export function attempt<T>(alarm: Alarm, until: number, work: (signal: AbortSignal) => Promise<T>): Attempt<T> {
  const control = new AbortController();
  const { signal } = control;
  let cancelTimer = alarm.at(until, () => interrupt("the time for this step is over"));
  let rejectLate: (reason: unknown) => void = () => {};
  function interrupt(why: string): void {
    if (signal.aborted) return;
    cancelTimer();
    cancelTimer = alarm.at(alarm.now() + grace, () => rejectLate(signal.reason));
    control.abort(new Interruption(why));
  }
  const result = new Promise<T>((resolve, reject) => {
    rejectLate = reject;
    work(signal).then(resolve, reject);
  });
  return { result: result.finally(() => cancelTimer()), interrupt };
}
