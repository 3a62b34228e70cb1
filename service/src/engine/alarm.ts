/** Time that calls back, as a parameter like the clock, so that tests let two minutes pass at once. */
import { type Clock, steadyOf } from "../base/clock.ts";

export interface Alarm extends Clock {
  /** Calls once, at `time` (milliseconds since 1970) or soon after, never inside this call. Returns how to call it off. */
  at(time: number, call: () => void): () => void;
}

/** Longer timers fire at once in Node. */
const longest = 2 ** 31 - 1;

/** Timers of the machine. */
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
