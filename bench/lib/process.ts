/** Starts the programs that are measured and those that measure, each pinned to its own core if the host has two. */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { setTimeout as pause } from "node:timers/promises";
import { medianOf } from "./figures.ts";

const cores = availableParallelism();

/** Pins a command to a core: 0 for the measured program, 1 for the measuring one. */
export const pinned = (core: 0 | 1, argv: readonly string[]): readonly string[] =>
  cores > 1 ? ["taskset", "-c", String(core), ...argv] : argv;

export interface Program {
  readonly child: ChildProcess;
  /** Returns the resident memory in MB. */
  memory(): number;
  /** Resolves when the process has ended. */
  stop(signal?: NodeJS.Signals): Promise<void>;
}

/** Pins all threads of a process to core 0, if the host has two. */
export function pin(pid: number | undefined): void {
  if (cores > 1) spawnSync("taskset", ["--all-tasks", "--cpu-list", "--pid", "0", String(pid)]);
}

/** Starts a program, by default on core 0. Throws with its standard error if it ends before `stop`. */
export function start(
  argv: readonly string[],
  env: Readonly<Record<string, string>> = {},
  { isPinned = true } = {},
): Program {
  const [command = "", ...rest] = isPinned ? pinned(0, argv) : argv;
  const child = spawn(command, rest, { env: { ...process.env, ...env }, stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  child.stdout?.resume();
  child.stderr?.on("data", (text) => {
    output = `${output}${text}`.slice(-4000);
  });
  const ended = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  let stopping = false;
  child.once("exit", (code) => {
    if (!stopping) throw new Error(`${argv.join(" ")} ended with ${code}: ${output}`);
  });
  return {
    child,
    memory: () => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${child.pid}/status`, "utf8"))?.[1]) / 1024,
    async stop(signal = "SIGTERM") {
      stopping = true;
      child.kill(signal);
      await ended;
    },
  };
}

/** Returns the milliseconds of processor time of a process so far. */
export function processorTime(pid: number | undefined): number {
  const fields = readFileSync(`/proc/${pid}/stat`, "latin1").split(") ")[1]?.split(" ") ?? [];
  return (Number(fields[11]) + Number(fields[12])) * 10;
}

/** Returns the milliseconds that the threads of a process have run so far, as exact as the scheduler counts them. */
export function runTime(pid: number): number {
  const folder = `/proc/${pid}/task`;
  return readdirSync(folder).reduce(
    (sum, thread) => sum + Number(readFileSync(`${folder}/${thread}/schedstat`, "utf8").split(" ")[0]) / 1e6,
    0,
  );
}

/** Returns the median memory of 30 s without requests, in MB: it grows and shrinks with each collection of garbage. */
export async function idleMemory(when: string, { memory }: Program): Promise<number> {
  const samples: number[] = [];
  for (let second = 0; second < 30; second++) {
    samples.push(memory());
    await pause(1000);
  }
  console.log(`${when}: ${Math.min(...samples).toFixed(0)} to ${Math.max(...samples).toFixed(0)} MB`);
  return medianOf(samples);
}

/** Sends requests until `url` returns 200. Resolves to the milliseconds since the call. */
export async function untilReady(url: string, headers: Readonly<Record<string, string>> = {}): Promise<number> {
  const begun = performance.now();
  for (;;) {
    const response = await fetch(url, { headers }).catch(() => null);
    await response?.arrayBuffer();
    if (response?.ok) return performance.now() - begun;
    if (performance.now() - begun > 300_000) throw new Error(`${url} does not respond`);
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}

/** Returns why a comparison is not possible here, or null. */
export function missing(command: string): string | null {
  return spawnSync("sh", ["-c", 'command -v "$0"', command]).status === 0 ? null : `${command} is not installed`;
}
