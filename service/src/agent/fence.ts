/**
 * The fence of an agent: the highest number that a control plane has sent. Calls with an older number are refused, so a control plane that
 * was replaced can change nothing, even if it does not know yet.
 */
import { AgentError } from "./error.ts";

/** Refuses control planes that a newer one has replaced. */
export interface Fence {
  /** Returns a number above all that were seen, and refuses older ones from now on. */
  next(): number;
  /** Accepts a number and refuses older ones from now on. Throws `stale_fence`. */
  pass(number: number): void;
  /** Calls the listener with each number that ends older ones. Returns a function that unsubscribes. */
  onRaise(listener: (number: number) => void): () => void;
}

/** Creates the fence of an agent that has just started. */
export function createFence(): Fence {
  let highest = 0;
  const listeners = new Set<(number: number) => void>();
  const raise = (number: number): void => {
    highest = number;
    for (const listener of listeners) listener(number);
  };
  return {
    next() {
      raise(highest + 1);
      return highest;
    },
    pass(number) {
      if (number < highest)
        throw new AgentError(
          "stale_fence",
          `another control plane with the newer number ${highest} uses this host; number ${number} is refused: stop this control plane`,
        );
      if (number > highest) raise(number);
    },
    onRaise(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
  };
}
