/** Time as a parameter, so that tests own it. */
export interface Clock {
  /** Milliseconds since 1970, by the clock of the machine, which can be set. For dates. */
  now(): number;
  /** Milliseconds since some moment. Nothing sets it back or forward. For intervals inside this process; without it `now` is as good. */
  steady?(): number;
}

export const systemClock: Clock = { now: () => Date.now(), steady: () => performance.now() };

/** Milliseconds that only ever grow evenly. */
export const steadyOf = (clock: Clock): number => clock.steady?.() ?? clock.now();

/**
 * How long ago a stored time is, in milliseconds. One that lies ahead was stored before the clock was set back: how long ago that is
 * cannot be known, and it is `Infinity`, so that whatever waits for time to pass does not wait for the wrong time to come.
 * `slack`: how far ahead a time may be, since clocks are also set by little.
 */
export function since(time: number, now: number, slack = 0): number {
  if (time > now + slack) return Number.POSITIVE_INFINITY;
  return now - time;
}

/** A step of the clock. */
export interface ClockStep {
  /** Milliseconds; below 0: it was set back. */
  readonly by: number;
  /** Milliseconds since 1970, after it. */
  readonly now: number;
}

/** Milliseconds in which a step is surely seen. What was stored meanwhile has the new time already, and is not moved. */
const unseen = 15_000;

/** Due times from before the step lie between these. Both are exclusive. */
export const dueBefore = ({ by, now }: ClockStep): { readonly from: number; readonly to: number } =>
  by > 0 ? { from: now - by, to: now - unseen } : { from: now - by - unseen, to: Number.MAX_SAFE_INTEGER };
