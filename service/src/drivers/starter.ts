/**
 * Starts the service's children from a small process of its own. A fork copies the page tables of whoever forks and stops it until
 * the child runs, which in the service itself takes ten milliseconds and more of everybody's time. Run by `exec.ts`, told by
 * messages what to start, and gone with its parent; what was started to outlive the service does.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, openSync } from "node:fs";

/** What `spawn` takes as it is. */
export interface Person {
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string | undefined;
  readonly uid: number | undefined;
  readonly gid: number | undefined;
}

export type Order = { readonly id: number; readonly argv: readonly string[]; readonly person: Person } & (
  | { readonly kind: "run"; readonly stdin: string | null }
  | { readonly kind: "detach"; readonly output: string }
);

/** The input of a child that was started before there was any: its order had `stdin: null`. */
export interface Input {
  readonly id: number;
  readonly kind: "input";
  readonly stdin: string;
}

/** Kills the child of an order and all that it started. */
export interface Stop {
  readonly id: number;
  readonly kind: "stop";
}

export interface Report {
  readonly id: number;
  /** Of a detached child, once it runs. */
  readonly pid?: number;
  readonly code?: number | null;
  readonly signal?: NodeJS.Signals | null;
  readonly out?: string;
  readonly err?: string;
  /** Why nothing was started. */
  readonly refused?: string;
}

const running = new Map<number, ChildProcess>();
const report = (what: Report): void => void process.send?.(what, undefined, {}, () => {});

function run({ id, argv, person, stdin }: Extract<Order, { kind: "run" }>): void {
  const [program = "", ...rest] = argv;
  // A group of its own: a stop then ends its children too, and a Ctrl-C at our terminal does not cut it in half.
  const child = spawn(program, rest, { ...person, stdio: ["pipe", "pipe", "pipe"], detached: true });
  running.set(id, child);
  const out: Buffer[] = [];
  const err: Buffer[] = [];
  child.stdout.on("data", (chunk: Buffer) => out.push(chunk));
  child.stderr.on("data", (chunk: Buffer) => err.push(chunk));
  // A child that ends without reading its input raises EPIPE here, which is not an error of ours.
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

function detach({ id, argv, person, output }: Extract<Order, { kind: "detach" }>): void {
  const [program = "", ...rest] = argv;
  const file = openSync(output, "a", 0o600);
  try {
    const child = spawn(program, rest, { ...person, stdio: ["ignore", file, file], detached: true });
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

process.on("disconnect", () => {
  // Nobody waits for them, and whoever comes after us begins anew what they are at.
  for (const id of running.keys()) stop(id);
  process.exit();
});
process.on("message", (order: Order | Input | Stop) => {
  try {
    if (order.kind === "stop") stop(order.id);
    else if (order.kind === "input") running.get(order.id)?.stdin?.end(order.stdin);
    else if (order.kind === "run") run(order);
    else detach(order);
  } catch (error) {
    report({ id: order.id, refused: (error as Error).message });
  }
});
