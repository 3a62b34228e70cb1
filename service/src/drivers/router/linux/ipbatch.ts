/** Lines for `ip -batch`, with the line that failed and why in the error. */
import type { Exec } from "../../exec.ts";

export const lines = (list: readonly string[]): string => list.map((line) => `${line}\n`).join("");

/** Runs the lines in the namespace, null being our own; stops at the first that fails. */
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

/** Throws the error of a command again, unless what it was about is gone. */
export function unlessMissing(error: unknown): void {
  const { message } = ((error as Error).cause as Error | undefined) ?? (error as Error);
  if (!/No such file|Cannot find device|does not exist/.test(message)) throw error;
}
