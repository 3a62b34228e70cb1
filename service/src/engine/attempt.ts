/**
 * One try of one step: the only place where foreign code runs under the engine. It is told by a signal to end (time over,
 * canceled, stopping), and when it does not listen it is left behind after a while, for one hanging call must not hold its subject for ever.
 */
import type { Alarm } from "./alarm.ts";

/** How long a step may go on after it was told to end. */
const grace = 5_000;

/** Why a step was told to end. The reason of its signal. */
export class Interruption extends Error {
  override readonly name = "Interruption";
}

export interface Attempt<T> {
  /** Never rejects late: what comes after an interruption's grace is dropped. */
  readonly result: Promise<T>;
  interrupt(why: string): void;
}

/** Runs `work` at once; at `until` (milliseconds since 1970) it is interrupted. */
export function attempt<T>(alarm: Alarm, until: number, work: (signal: AbortSignal) => Promise<T>): Attempt<T> {
  const control = new AbortController();
  const { signal } = control;
  let callOff = alarm.at(until, () => interrupt("the time for this step is over"));
  let leave: (reason: unknown) => void = () => {};
  function interrupt(why: string): void {
    if (signal.aborted) return;
    callOff();
    callOff = alarm.at(alarm.now() + grace, () => leave(signal.reason));
    control.abort(new Interruption(why));
  }
  const result = new Promise<T>((resolve, reject) => {
    leave = reject;
    work(signal).then(resolve, reject);
  });
  return { result: result.finally(() => callOff()), interrupt };
}
