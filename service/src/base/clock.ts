/** Time as a parameter, so that tests control it. */
export interface Clock {
  /** Returns milliseconds since 1970 by the host's clock, which can be set. For dates. */
  now(): number;
  /** Returns monotonic milliseconds, for intervals inside this process. Without it, `now` is used. */
  steady?(): number;
}

/** The clocks of the host. */
export const systemClock: Clock = { now: () => Date.now(), steady: () => performance.now() };

/** Returns the monotonic time of the clock in milliseconds. */
export const steadyOf = (clock: Clock): number => clock.steady?.() ?? clock.now();

/**
 * Returns the milliseconds since a stored time. A time in the future was stored before the clock was set back; its age is unknown, so
 * the result is `Infinity` and no interval waits for it. `slack`: milliseconds that a time may be in the future, because small
 * adjustments of the clock are normal.
 */
export function since(time: number, now: number, slack = 0): number {
  if (time > now + slack) return Number.POSITIVE_INFINITY;
  return now - time;
}

/** A change of the host's clock. */
export interface ClockStep {
  /** Milliseconds; negative if the clock was set back. */
  readonly by: number;
  /** Time after the change, in milliseconds since 1970. */
  readonly now: number;
}

/** Milliseconds within which a step is detected. Times stored after the step and before its detection are correct and are not moved. */
const unseen = 15_000;

/** Returns the exclusive bounds of due times that were stored before the step. */
export const dueBefore = ({ by, now }: ClockStep): { readonly from: number; readonly to: number } =>
  by > 0 ? { from: now - by, to: now - unseen } : { from: now - by - unseen, to: Number.MAX_SAFE_INTEGER };
