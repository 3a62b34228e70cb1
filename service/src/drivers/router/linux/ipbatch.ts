/**
 * Runs batches of `ip` commands; errors contain the failed line and the reason.
 */
import type { CommandError, Exec } from "../../exec.ts";

/** Joins lines for standard input, each with a line end. */
export const lines = (list: readonly string[]): string => list.map((line) => `${line}\n`).join("");

/**
 * Runs the lines in a namespace (null: this process's own) and stops at the first failure. Rejects with an error that contains that line.
 */
export async function runBatch(exec: Exec, namespace: string | null, batch: readonly string[]): Promise<void> {
  if (batch.length === 0) return;
  const argv = ["ip", ...(namespace === null ? [] : ["-n", namespace]), "-batch", "-"];
  // The name of a namespace is a mount of the host.
  const isMounting = batch.some((line) => /^netns (?:add|del) /.test(line));
  await exec.run(argv, { stdin: lines(batch), ...(isMounting && { rights: "all" }) }).catch((error: unknown) => {
    const { message } = error as Error;
    const { stderr } = error as Partial<CommandError>;
    const [, number] = /Command failed -:(\d+)/.exec(message) ?? [];
    const line = batch[Number(number) - 1];
    const why = (stderr ?? "")
      .replaceAll(/^Command failed.*$|RTNETLINK answers: /gm, "")
      .trim()
      .replaceAll(/\s*\n\s*/g, "; ");
    throw new Error(`ip${line === undefined ? "" : `, at "${line}"`}: ${why === "" ? message : why}`, { cause: error });
  });
}

/** Rethrows the error of a command unless it reports that the object does not exist. */
export function unlessMissing(error: unknown): void {
  const { message } = ((error as Error).cause as Error | undefined) ?? (error as Error);
  if (!/No such file|Cannot find device|does not exist/.test(message)) throw error;
}
