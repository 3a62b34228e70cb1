/** Programs that are measured or that measure: started pinned to a core of their own where the machine has two, and ended with their data. */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { availableParallelism } from "node:os";

const cores = availableParallelism();

/** `argv` on one core: 0 for what is measured, 1 for what measures. */
export const pinned = (core: 0 | 1, argv: readonly string[]): readonly string[] =>
  cores > 1 ? ["taskset", "-c", String(core), ...argv] : argv;

export interface Program {
  readonly child: ChildProcess;
  /** Resident memory in MB. */
  memory(): number;
  /** Resolves when it is gone. */
  stop(signal?: NodeJS.Signals): Promise<void>;
}

/** Starts it on core 0; what it writes on standard error is shown only when it ends by itself. */
export function start(argv: readonly string[], env: Readonly<Record<string, string>> = {}): Program {
  const [command = "", ...rest] = pinned(0, argv);
  const child = spawn(command, rest, { env: { ...process.env, ...env }, stdio: ["ignore", "pipe", "pipe"] });
  let said = "";
  child.stdout?.resume();
  child.stderr?.on("data", (text) => {
    said = `${said}${text}`.slice(-4000);
  });
  const gone = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  let stopping = false;
  child.once("exit", (code) => {
    if (!stopping) throw new Error(`${argv.join(" ")} ended with ${code}: ${said}`);
  });
  return {
    child,
    memory: () => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${child.pid}/status`, "utf8"))?.[1]) / 1024,
    async stop(signal = "SIGTERM") {
      stopping = true;
      child.kill(signal);
      await gone;
    },
  };
}

/** Asks until `url` answers 200; milliseconds from the call on. */
export async function untilReady(url: string, headers: Readonly<Record<string, string>> = {}): Promise<number> {
  const begun = performance.now();
  for (;;) {
    const answer = await fetch(url, { headers }).catch(() => null);
    await answer?.arrayBuffer();
    if (answer?.ok) return performance.now() - begun;
    if (performance.now() - begun > 60_000) throw new Error(`${url} does not answer`);
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}

/** Why a comparison cannot be made here; null when it can. */
export function missing(command: string): string | null {
  return spawnSync("sh", ["-c", 'command -v "$0"', command]).status === 0 ? null : `${command} is not installed`;
}
