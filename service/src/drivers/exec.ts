/**
 * Runs child processes: takes an argument list, returns standard output, always with a time limit; errors contain standard error. It
 * uses no shell, because names come from clients. Children do not inherit the environment, which may contain secrets and sets the
 * language of messages. Secrets are passed by standard input or file, never by arguments, which errors and `ps` show. A small process,
 * `starter.ts`, does the forks.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { getCompileCacheDir } from "node:module";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import type { Input, Report, SpawnOptions, StartRequest, Stop } from "./children.ts";

type DistributiveOmit<Union, Key extends PropertyKey> = Union extends unknown ? Omit<Union, Key> : never;

/** `PATH` of children. */
export const searchPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
const environment = { PATH: searchPath, LC_ALL: "C" };

interface Options {
  /** Variables added to `PATH` and `LC_ALL=C`, the only ones that a child gets by default. */
  readonly environment?: Readonly<Record<string, string>>;
  /** Entered before the change to `uid`, so the child's user need not have access to the path. */
  readonly cwd?: string;
  /** Numeric ids, also without an entry in /etc/passwd. The child has no other groups. */
  readonly uid?: number;
  readonly gid?: number;
}

/** Input, deadline and expected exit codes of one command. */
export interface RunOptions extends Options {
  /** Input. With a promise, the child starts before its input is known, and is killed if the promise rejects. */
  readonly stdin?: string | Promise<string>;
  /** Milliseconds from the start, after which the child and its descendants are killed. Default 10,000. */
  readonly timeout?: number;
  /** Kills the child and its descendants. */
  readonly signal?: AbortSignal;
  /** Bytes of output and errors together, after which the child and its descendants are killed. Default 256 MiB. */
  readonly most?: number;
  /** Exit codes of success. Default: only 0. */
  readonly codes?: readonly number[];
  /** The command needs all rights of root: an `Exec` whose children have fewer passes it to one whose children have them. */
  readonly rights?: "all";
}

/** Options of `startDetached`. */
export interface DetachOptions extends Options {
  /** File to which standard output and error are appended; created with mode 600. */
  readonly output: string;
}

/** Far more than a driver reads. A result becomes one text, which JavaScript limits to twice as much. */
const mostOutput = 2 ** 28;

/** A process, distinguished from a later one with the same PID by `born`: field 22 of /proc/PID/stat, 0 if unknown. */
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

/** Returns whether the command was killed because of the length of its output. */
export const hasPrintedTooMuch = (error: unknown): boolean =>
  error instanceof CommandError && error.code === null && /: printed more than \d+ bytes$/.test(error.message);

/** Runs child processes. An interface, so that tests can replace it. */
export interface Exec {
  /** Resolves to standard output; rejects with a `CommandError` unless the exit code is 0, or one of `codes`. */
  run(argv: readonly string[], options?: RunOptions): Promise<string>;
  /** Starts a process that outlives the service. Rejects if it cannot be started; the caller checks whether it works. */
  startDetached(argv: readonly string[], options: DetachOptions): Promise<Child>;
  /** Returns the running process with this PID, or null. Used to find processes that an earlier service started. */
  find(pid: number): Child | null;
  /** Returns whether this process still runs. */
  isAlive(child: Child): boolean;
  /** Sends a signal. Returns false if the process no longer runs. */
  signal(child: Child, signal: NodeJS.Signals): boolean;
}

const spawnOptions = ({ cwd, uid, gid, environment: more }: Options): SpawnOptions => ({
  env: { ...environment, ...more },
  cwd,
  uid,
  gid,
});

/** The process that starts the children: one of its own, or the parent of this process. */
type Channel = Pick<ChildProcess, "send" | "channel"> & Pick<NodeJS.EventEmitter, "on">;

interface Starter {
  readonly process: Channel;
  readonly waiting: Map<number, (report: Report) => void>;
}

interface RunningChild {
  readonly report: Promise<Report>;
  input(stdin: string): void;
  stop(): void;
}

/** Reads state and start time from /proc. The program's name, in parentheses, may itself contain blanks and parentheses. */
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

/** The program of the starter process. */
export const starterFile = fileURLToPath(new URL("./starter.ts", import.meta.url));

/** Returns the command line that runs this command in other conditions, which its children inherit. */
export type Confinement = (command: readonly string[]) => readonly string[];

const isAlive = (child: Child): boolean => find(child.pid)?.born === child.born;

/**
 * Creates an `Exec`. By default it has its own starter process, which is started at the first call, and again after it was killed. `parent`:
 * the parent of this process starts the children, as the supervisor does. A function confines the own starter process.
 */
export function createExec(by: "own" | "parent" | Confinement = "own"): Exec {
  let starter: Starter | null = null;
  let requests = 0;

  function spawnStarter(): ChildProcess {
    const cache = getCompileCacheDir();
    const command = [process.execPath, starterFile];
    const [program = "", ...args] = typeof by === "function" ? by(command) : command;
    const child = spawn(program, args, {
      // With the compile cache the process needs no compiler and half the memory.
      env: { ...environment, ...(cache !== undefined && { NODE_COMPILE_CACHE: dirname(cache) }) },
      stdio: ["ignore", "ignore", "ignore", "ipc"],
      serialization: "advanced",
      // Otherwise a Ctrl-C at the terminal would end it before the service has stopped.
      detached: true,
    });
    // It must not keep this process alive.
    child.unref();
    child.channel?.unref();
    return child;
  }

  function ensureStarter(): Starter {
    if (starter !== null) return starter;
    const child: Channel = by === "parent" ? (process as Channel) : spawnStarter();
    const thisStarter: Starter = { process: child, waiting: new Map() };
    const end = () => {
      if (starter === thisStarter) starter = null;
      for (const [id, resolve] of thisStarter.waiting) resolve({ id, refused: "the starter process has ended" });
    };
    child.on("error", end);
    child.on("exit", end);
    child.on("message", (report: Report) => thisStarter.waiting.get(report.id)?.(report));
    starter = thisStarter;
    return thisStarter;
  }

  function begin(request: DistributiveOmit<StartRequest, "id">): RunningChild {
    const { process: child, waiting } = ensureStarter();
    const id = ++requests;
    const { promise: report, resolve } = Promise.withResolvers<Report>();
    if (waiting.size === 0) child.channel?.ref();
    waiting.set(id, (result) => {
      waiting.delete(id);
      if (waiting.size === 0) child.channel?.unref();
      resolve(result);
    });
    // A failed send means that the starter ends, which rejects all waiting calls.
    const send = (message: StartRequest | Input | Stop) => void child.send(message, () => {});
    send({ ...request, id });
    return {
      report,
      input: (stdin) => send({ id, kind: "input", stdin }),
      stop: () => send({ id, kind: "stop" }),
    };
  }

  async function run(argv: readonly string[], options: RunOptions = {}): Promise<string> {
    const { stdin = "", timeout: limit = 10_000, most = mostOutput } = options;
    const isKnown = typeof stdin === "string";
    const { report, input, stop } = begin({
      kind: "run",
      argv,
      spawn: spawnOptions(options),
      stdin: isKnown ? stdin : null,
      most,
    });
    let stopped = "";
    const end = (why: string) => {
      stopped ||= why;
      stop();
    };
    const timer = setTimeout(() => end(`took longer than ${limit} ms`), limit);
    if (!isKnown) stdin.then(input, () => end("got no input"));
    const abort = () => end("was aborted");
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
        spawn: spawnOptions(options),
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

/** Shared instance for tests and scripts. The service creates its own. */
export const exec: Exec = createExec();
