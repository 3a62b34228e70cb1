/**
 * Two commands of which the second must come after the first, such as a table and its awakening. Starting a program takes longer than
 * a small change does, so both are started while the text of what they are to do is still in the making.
 */
import type { Exec, RunOptions } from "../../exec.ts";

export interface Pair {
  first(text: string): Promise<void>;
  second(text: string): Promise<void>;
  /** Whichever was told nothing ends without having done anything. */
  dismiss(): void;
}

/** `argv`: of a program that reads its standard input to the end before it does anything, and does nothing when it is empty. */
export function createPair(
  exec: Exec,
  argv: readonly string[],
  environment: NonNullable<RunOptions["environment"]>,
): Pair {
  const start = () => {
    const { promise: stdin, resolve } = Promise.withResolvers<string>();
    const running = exec.run(argv, { stdin, timeout: 120_000, environment });
    // Whoever dismisses it does not look how it ends.
    running.catch(() => {});
    return async (text: string): Promise<void> => {
      resolve(text);
      await running;
    };
  };
  const [first, second] = [start(), start()];
  return {
    first,
    second,
    dismiss() {
      for (const tell of [first, second]) tell("").catch(() => {});
    },
  };
}
