/**
 * Starts child processes on request of another process, and reports their results to it. Loads little, because the process that does it is
 * small: see `starter.ts`.
 */
import { spawn } from "node:child_process";
import { closeSync, openSync } from "node:fs";
import type { Readable, Writable } from "node:stream";

/** Options that are passed to `spawn` unchanged. */
export interface SpawnOptions {
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string | undefined;
  readonly uid: number | undefined;
  readonly gid: number | undefined;
}

/** Request to start a child. `stdin` of null: an `Input` follows. `most`: bytes of output after which the child is killed. */
export type StartRequest = { readonly id: number; readonly argv: readonly string[]; readonly spawn: SpawnOptions } & (
  | { readonly kind: "run"; readonly stdin: string | null; readonly most: number }
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
  /** Why the child was not started, or why its output is not reported. */
  readonly refused?: string;
}

/** Starts the children of one requesting process. */
export interface Children {
  handle(request: StartRequest | Input | Stop): void;
  /** Kills all running children: their results are lost, and the next requesting process repeats their work. Detached ones continue. */
  end(): void;
}

/** A child with pipes as its standard files. */
export interface Started {
  /** Undefined if it did not start. */
  readonly pid: number | undefined;
  /** Undefined if this process has no descriptors left for pipes. */
  readonly stdin: Writable | undefined;
  readonly stdout: Readable | undefined;
  readonly stderr: Readable | undefined;
  /** Resolves when the child has ended and its output is read. Rejects if it did not start. */
  readonly closed: Promise<{ readonly code: number | null; readonly signal: NodeJS.Signals | null }>;
}

/** Starts a child in a process group of its own: `stop` also kills its descendants, and a Ctrl-C at the terminal does not interrupt it. */
export type Start = (argv: readonly string[], options: SpawnOptions) => Started;

const startByNode: Start = ([program = "", ...rest], options) => {
  const child = spawn(program, rest, { ...options, stdio: ["pipe", "pipe", "pipe"], detached: true });
  const closed: Started["closed"] = new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (code, signal) => resolve({ code, signal }));
  });
  return { pid: child.pid, stdin: child.stdin, stdout: child.stdout, stderr: child.stderr, closed };
};

/** Why a child was killed that printed more than so many bytes. */
const tooMuch = (most: number): string => `printed more than ${most} bytes`;

/** Children after which a faster start is loaded: it takes as much time as it saves with so many. */
const fewChildren = 3;

/**
 * `report` sends a report to the requesting process, if it still exists. `loadStart` loads a faster way to start children, if the host has it.
 */
export function createChildren(
  report: (what: Report) => void,
  loadStart?: (byNode: Start) => Promise<Start>,
): Children {
  const running = new Map<number, Started>();
  let start = startByNode;
  let runs = 0;

  function run({ id, argv, spawn: options, stdin, most }: Extract<StartRequest, { kind: "run" }>): void {
    runs += 1;
    if (runs === fewChildren)
      loadStart?.(startByNode).then(
        (loaded) => (start = loaded),
        () => {},
      );
    const child = start(argv, options);
    running.set(id, child);
    const out: Buffer[] = [];
    const err: Buffer[] = [];
    let bytes = 0;
    const keepIn = (parts: Buffer[]) => (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes <= most) parts.push(chunk);
      else stop(id);
    };
    child.stdout?.on("data", keepIn(out));
    child.stderr?.on("data", keepIn(err));
    // A child that ends without reading its input causes EPIPE, which is not an error.
    child.stdin?.on("error", () => {});
    const reportEnd = async (): Promise<void> => {
      const end = await child.closed.catch((error: unknown) => ({ refused: (error as Error).message }));
      if (!running.delete(id)) return;
      if ("refused" in end) report({ id, ...end });
      else if (bytes > most) report({ id, refused: tooMuch(most) });
      else report({ id, ...end, out: Buffer.concat(out).toString(), err: Buffer.concat(err).toString() });
    };
    void reportEnd();
    if (stdin !== null) child.stdin?.end(stdin);
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
    const child = running.get(id);
    try {
      if (child?.pid !== undefined) process.kill(-child.pid, "SIGKILL");
    } catch {
      // The group ended by itself.
    }
    // A descendant in a session of its own is not in the group, and may keep the pipes open.
    child?.stdout?.destroy();
    child?.stderr?.destroy();
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
