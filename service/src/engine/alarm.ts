/** Timers as a parameter, like the clock, so that tests can advance two minutes immediately. */
import { type Clock, steadyOf } from "../base/clock.ts";

/** A clock that also calls back at a time. */
export interface Alarm extends Clock {
  /** Calls `call` once, at `time` (milliseconds since 1970) or soon after, never synchronously. Returns a function that cancels it. */
  at(time: number, call: () => void): () => void;
}

/** Milliseconds of the longest timer of Node; longer ones fire immediately. */
const longest = 2 ** 31 - 1;

/** Returns an alarm that uses the timers of Node. */
export function createAlarm(clock: Clock): Alarm {
  return {
    now: () => clock.now(),
    steady: () => steadyOf(clock),
    at(time, call) {
      const timer = setTimeout(call, Math.min(longest, Math.max(0, time - clock.now())));
      return () => clearTimeout(timer);
    },
  };
}
