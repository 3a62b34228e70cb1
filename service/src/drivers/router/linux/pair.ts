/**
 * Runs two commands of which the second must come after the first, such as loading a table and activating it. Starting a program takes
 * longer than a small change, so both programs start while their input is still being rendered.
 */
import type { Exec, RunOptions } from "../../exec.ts";

/** Two started commands that wait for their input. */
export interface Pair {
  /** Passes the input to the first command and resolves when it has ended. */
  first(text: string): Promise<void>;
  /** Passes the input to the second command and resolves when it has ended. */
  second(text: string): Promise<void>;
  /** Ends the commands that got no input; they do nothing. */
  dismiss(): void;
}

/** Starts both commands. The program in `argv` must read its standard input to the end before it acts, and do nothing when it is empty. */
export function createPair(
  exec: Exec,
  argv: readonly string[],
  environment: NonNullable<RunOptions["environment"]>,
): Pair {
  const start = () => {
    const { promise: stdin, resolve } = Promise.withResolvers<string>();
    const running = exec.run(argv, { stdin, timeout: 120_000, environment });
    // After `dismiss` its result is ignored.
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
      for (const send of [first, second]) send("").catch(() => {});
    },
  };
}
