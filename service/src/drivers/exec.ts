/**
 * The only door to child processes: argv in, text out, a time limit always, and what the child complained of in the error. There is
 * no shell, since names come from users, and no inherited environment, since ours may hold secrets and theirs decides in which
 * language they complain. Secrets go in by standard input or by file, never by argv, which errors and `ps` show. The forks are
 * made by a small process beside this one, `starter.ts`.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { getCompileCacheDir } from "node:module";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import type { Input, Order, Person, Report, Stop } from "./starter.ts";

type DistributiveOmit<Union, Key extends PropertyKey> = Union extends unknown ? Omit<Union, Key> : never;

/** Where children find programs. */
export const searchPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
const environment = { PATH: searchPath, LC_ALL: "C" };

interface Options {
  /** Beside `PATH` and the language C, which are all that a child gets by itself. */
  readonly environment?: Readonly<Record<string, string>>;
  /** Entered before `uid` is taken on, so it may lie in a folder that the child itself could not reach. */
  readonly cwd?: string;
  /** Numbers, for which there need be no user. All other groups are left. */
  readonly uid?: number;
  readonly gid?: number;
}

export interface RunOptions extends Options {
  /** The child may be started before there is anything to say to it; it is killed when that never comes. */
  readonly stdin?: string | Promise<string>;
  /** Milliseconds from its start, then the child and all that it started are killed; 10,000 by default. */
  readonly timeout?: number;
  /** Kills it like the time limit does. */
  readonly signal?: AbortSignal;
  /** Exit codes that are no failure; only 0 by default. */
  readonly codes?: readonly number[];
}

export interface DetachOptions extends Options {
  /** File that gets standard output and error, appended; made with mode 600. */
  readonly output: string;
}

/** A process that cannot be mistaken for a later one of the same number: `born` is field 22 of /proc/PID/stat, 0 where there is none. */
export interface Child {
  readonly pid: number;
  readonly born: number;
}

/** A command that failed. `code` is its exit code, null when it did not start or was killed. */
export class CommandError extends Error {
  readonly code: number | null;
  readonly stderr: string;
  constructor(argv: readonly string[], code: number | null, stderr: string, why: string, cause?: unknown) {
    super(`${argv.join(" ").slice(0, 160)}: ${stderr.trim().slice(-2000) || why}`, { cause });
    this.name = "CommandError";
    this.code = code;
    this.stderr = stderr;
  }
}

/** As a value, so that tests can stand in the doorway. */
export interface Exec {
  /** Resolves to standard output; rejects with a `CommandError` unless the exit code is 0, or one of `codes`. */
  run(argv: readonly string[], options?: RunOptions): Promise<string>;
  /** Starts what outlives the service. Rejects when it cannot be started; whether it works is for the caller to find out. */
  startDetached(argv: readonly string[], options: DetachOptions): Promise<Child>;
  /** The process of that number with its birth, or null. For finding again what an earlier service started. */
  find(pid: number): Child | null;
  isAlive(child: Child): boolean;
  /** False when it was gone already. */
  signal(child: Child, signal: NodeJS.Signals): boolean;
}

/** What `spawn` takes as it is. */
const person = ({ cwd, uid, gid, environment: more }: Options): Person => ({
  env: { ...environment, ...more },
  cwd,
  uid,
  gid,
});

interface Starter {
  readonly process: ChildProcess;
  readonly waiting: Map<number, (report: Report) => void>;
}

interface Begun {
  readonly report: Promise<Report>;
  input(stdin: string): void;
  stop(): void;
}

/** Birth and state out of /proc; the name of the program, in parentheses, may itself hold blanks and parentheses. */
function stat(pid: number): { readonly state: string; readonly born: number } | null {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "latin1");
    const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
    return { state: fields[0] ?? "", born: Number(fields[19]) };
  } catch {
    return null;
  }
}

function find(pid: number): Child | null {
  const found = stat(pid);
  return found === null || found.state === "Z" ? null : { pid, born: found.born };
}

const isAlive = (child: Child): boolean => find(child.pid)?.born === child.born;

/** The door, with a process behind it that starts all others: itself started when there is something to start, and anew when somebody killed it. */
export function createExec(): Exec {
  let starter: Starter | null = null;
  let orders = 0;

  function summon(): Starter {
    if (starter !== null) return starter;
    const cache = getCompileCacheDir();
    const child = spawn(process.execPath, [fileURLToPath(new URL("./starter.ts", import.meta.url))], {
      // Without the compiler in it, it is half as large.
      env: { ...environment, ...(cache !== undefined && { NODE_COMPILE_CACHE: dirname(cache) }) },
      stdio: ["ignore", "ignore", "ignore", "ipc"],
      serialization: "advanced",
      // Else a Ctrl-C at our terminal would end it before we are done with it.
      detached: true,
    });
    const own: Starter = { process: child, waiting: new Map() };
    const end = () => {
      if (starter === own) starter = null;
      for (const [id, tell] of own.waiting) tell({ id, refused: "whoever starts processes has ended" });
    };
    child.on("error", end);
    child.on("exit", end);
    child.on("message", (report: Report) => own.waiting.get(report.id)?.(report));
    // It keeps nobody from ending.
    child.unref();
    child.channel?.unref();
    starter = own;
    return own;
  }

  function begin(order: DistributiveOmit<Order, "id">): Begun {
    const { process: child, waiting } = summon();
    const id = ++orders;
    const { promise: report, resolve } = Promise.withResolvers<Report>();
    if (waiting.size === 0) child.channel?.ref();
    waiting.set(id, (told) => {
      waiting.delete(id);
      if (waiting.size === 0) child.channel?.unref();
      resolve(told);
    });
    // Whatever keeps it from being sent ends the starter, which tells all who wait.
    const send = (message: Order | Input | Stop) => void child.send(message, () => {});
    send({ ...order, id });
    return {
      report,
      input: (stdin) => send({ id, kind: "input", stdin }),
      stop: () => send({ id, kind: "stop" }),
    };
  }

  async function run(argv: readonly string[], options: RunOptions = {}): Promise<string> {
    const { stdin = "", timeout: limit = 10_000 } = options;
    const isThere = typeof stdin === "string";
    const { report, input, stop } = begin({
      kind: "run",
      argv,
      person: person(options),
      stdin: isThere ? stdin : null,
    });
    let stopped = "";
    const end = (why: string) => {
      stopped ||= why;
      stop();
    };
    const timer = setTimeout(() => end(`took longer than ${limit} ms`), limit);
    if (!isThere) stdin.then(input, () => end("was told nothing"));
    const abort = () => end("was called off");
    if (options.signal?.aborted === true) abort();
    options.signal?.addEventListener("abort", abort, { once: true });
    const { code = null, signal, out = "", err = "", refused } = await report;
    clearTimeout(timer);
    options.signal?.removeEventListener("abort", abort);
    if (refused !== undefined) throw new CommandError(argv, null, "", stopped || refused);
    if (stopped === "" && code !== null && (options.codes ?? [0]).includes(code)) return out;
    throw new CommandError(argv, code, stopped === "" ? err : "", stopped || `ended with ${code ?? signal}`);
  }

  return {
    run,
    async startDetached(argv, options) {
      const { pid = 0, refused } = await begin({
        kind: "detach",
        argv,
        person: person(options),
        output: options.output,
      }).report;
      if (refused !== undefined) throw new CommandError(argv, null, "", refused);
      return { pid, born: stat(pid)?.born ?? 0 };
    },
    find,
    isAlive,
    signal(child, signal) {
      if (!isAlive(child)) return false;
      try {
        process.kill(child.pid, signal);
        return true;
      } catch {
        return false;
      }
    },
  };
}

/** For tests and scripts, which have one door each. The service makes its own. */
export const exec: Exec = createExec();
