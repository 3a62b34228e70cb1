/**
 * Runs batches of `ip` commands; errors contain the failed line and the reason.
 */
import type { Exec } from "../../exec.ts";

/** Joins lines for standard input, each with a line end. */
export const lines = (list: readonly string[]): string => list.map((line) => `${line}\n`).join("");

/**
 * Runs the lines in a namespace (null: this process's own) and stops at the first failure. Rejects with an error that contains that line.
 */
export async function runBatch(exec: Exec, namespace: string | null, batch: readonly string[]): Promise<void> {
  if (batch.length === 0) return;
  const argv = ["ip", ...(namespace === null ? [] : ["-n", namespace]), "-batch", "-"];
  await exec.run(argv, { stdin: lines(batch) }).catch((error: unknown) => {
    const { message } = error as Error;
    const [, number] = /Command failed -:(\d+)/.exec(message) ?? [];
    const [, why = ""] = /^(?:RTNETLINK answers|Error): (.*)$/m.exec(message) ?? [];
    throw new Error(`ip, at "${batch[Number(number) - 1] ?? ""}"${why === "" ? "" : `: ${why}`}`, { cause: error });
  });
}

/** Rethrows the error of a command unless it reports that the object does not exist. */
export function unlessMissing(error: unknown): void {
  const { message } = ((error as Error).cause as Error | undefined) ?? (error as Error);
  if (!/No such file|Cannot find device|does not exist/.test(message)) throw error;
}
