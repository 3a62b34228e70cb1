/**
 * Divides long work into slices, so that the event loop serves requests in between. The caller checks after each small part whether its
 * slice is over; only then does it wait for the next one.
 */
import { setImmediate as nextTurn } from "node:timers/promises";

/** A slice of work. */
export interface Turn {
  /** True if the work has run for the time of a slice. */
  isOver(): boolean;
  /** Resolves when the event loop has served what was ready, and starts the next slice. */
  next(): Promise<void>;
}

/** Milliseconds of a slice. */
const sliceTime = 5;

/** Starts the first slice. `now` returns milliseconds. */
export function createTurn(now: () => number = () => performance.now()): Turn {
  let begun = now();
  return {
    isOver: () => now() - begun >= sliceTime,
    async next() {
      await nextTurn();
      begun = now();
    },
  };
}

/** Calls `act` for each item, in slices. */
export async function forEachInTurns<T>(items: Iterable<T>, act: (item: T) => void): Promise<void> {
  const turn = createTurn();
  for (const item of items) {
    act(item);
    if (turn.isOver()) await turn.next();
  }
}
