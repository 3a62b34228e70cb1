/**
 * Starts child processes on request of another process, and reports their results to it. Loads little, because the process that does it is
 * small: see `starter.ts`.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, openSync } from "node:fs";

/** Options that are passed to `spawn` unchanged. */
export interface SpawnOptions {
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string | undefined;
  readonly uid: number | undefined;
  readonly gid: number | undefined;
}

/** Request to start a child. `stdin` of null: an `Input` follows. */
export type StartRequest = { readonly id: number; readonly argv: readonly string[]; readonly spawn: SpawnOptions } & (
  | { readonly kind: "run"; readonly stdin: string | null }
  | { readonly kind: "detach"; readonly output: string }
);

/** Input of a child whose request had `stdin: null`. */
export interface Input {
  readonly id: number;
  readonly kind: "input";
  readonly stdin: string;
}

/** Request to kill a child and its descendants. */
export interface Stop {
  readonly id: number;
  readonly kind: "stop";
}

/** Response to a `StartRequest`: after the end of the child, or for a detached one after its start. */
export interface Report {
  readonly id: number;
  /** PID of a detached child. */
  readonly pid?: number;
  readonly code?: number | null;
  readonly signal?: NodeJS.Signals | null;
  readonly out?: string;
  readonly err?: string;
  /** Why the child was not started. */
  readonly refused?: string;
}

/** Starts the children of one requesting process. */
export interface Children {
  handle(request: StartRequest | Input | Stop): void;
  /** Kills all running children: their results are lost, and the next requesting process repeats their work. Detached ones continue. */
  end(): void;
}

/** `report` sends a report to the requesting process, if it still exists. */
export function createChildren(report: (what: Report) => void): Children {
  const running = new Map<number, ChildProcess>();

  function run({ id, argv, spawn: options, stdin }: Extract<StartRequest, { kind: "run" }>): void {
    const [program = "", ...rest] = argv;
    // In a process group of its own: `stop` also kills its descendants, and a Ctrl-C at the terminal does not interrupt it.
    const child = spawn(program, rest, { ...options, stdio: ["pipe", "pipe", "pipe"], detached: true });
    running.set(id, child);
    const out: Buffer[] = [];
    const err: Buffer[] = [];
    child.stdout.on("data", (chunk: Buffer) => out.push(chunk));
    child.stderr.on("data", (chunk: Buffer) => err.push(chunk));
    // A child that ends without reading its input causes EPIPE, which is not an error.
    child.stdin.on("error", () => {});
    child.on("error", (error) => {
      running.delete(id);
      report({ id, refused: error.message });
    });
    child.on("close", (code, signal) => {
      if (!running.delete(id)) return;
      report({ id, code, signal, out: Buffer.concat(out).toString(), err: Buffer.concat(err).toString() });
    });
    if (stdin !== null) child.stdin.end(stdin);
  }

  function detach({ id, argv, spawn: options, output }: Extract<StartRequest, { kind: "detach" }>): void {
    const [program = "", ...rest] = argv;
    const file = openSync(output, "a", 0o600);
    try {
      const child = spawn(program, rest, { ...options, stdio: ["ignore", file, file], detached: true });
      child.once("error", (error) => report({ id, refused: error.message }));
      child.once("spawn", () => report({ id, pid: child.pid ?? 0 }));
      child.unref();
    } finally {
      closeSync(file);
    }
  }

  function stop(id: number): void {
    try {
      const pid = running.get(id)?.pid;
      if (pid !== undefined) process.kill(-pid, "SIGKILL");
    } catch {
      // The group ended by itself.
    }
  }

  return {
    handle(request) {
      try {
        if (request.kind === "stop") stop(request.id);
        else if (request.kind === "input") running.get(request.id)?.stdin?.end(request.stdin);
        else if (request.kind === "run") run(request);
        else detach(request);
      } catch (error) {
        report({ id: request.id, refused: (error as Error).message });
      }
    },
    end() {
      for (const id of running.keys()) stop(id);
    },
  };
}
