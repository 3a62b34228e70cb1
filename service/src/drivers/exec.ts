/**
 * The only door to child processes: argv in, text out, a time limit always, and what the child complained of in the error. There is
 * no shell, since names come from users, and no inherited environment, since ours may hold secrets and theirs decides in which
 * language they complain. Secrets go in by standard input or by file, never by argv, which errors and `ps` show.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync, readFileSync } from "node:fs";

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
  readonly stdin?: string;
  /** Milliseconds, then the child and all that it started are killed; 10,000 by default. */
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
const person = ({ cwd, uid, gid, environment: more }: Options) => ({
  env: { ...environment, ...more },
  ...(cwd !== undefined && { cwd }),
  ...(uid !== undefined && { uid }),
  ...(gid !== undefined && { gid }),
});

function killGroup(pid: number | undefined): void {
  try {
    if (pid !== undefined) process.kill(-pid, "SIGKILL");
  } catch {
    // The group ended by itself.
  }
}

function run(argv: readonly string[], options: RunOptions = {}): Promise<string> {
  const [program = "", ...rest] = argv;
  const limit = options.timeout ?? 10_000;
  return new Promise((resolve, reject) => {
    const child = spawn(program, rest, {
      ...person(options),
      stdio: ["pipe", "pipe", "pipe"],
      // A group of its own: the limit then ends its children too, and a Ctrl-C at our terminal does not cut it in half.
      detached: true,
    });
    const out: Buffer[] = [];
    const err: Buffer[] = [];
    let stopped = "";
    const stop = (why: string) => {
      stopped ||= why;
      killGroup(child.pid);
    };
    const timer = setTimeout(() => stop(`took longer than ${limit} ms`), limit);
    const abort = () => stop("was called off");
    if (options.signal?.aborted === true) abort();
    options.signal?.addEventListener("abort", abort, { once: true });
    const tidy = () => {
      clearTimeout(timer);
      options.signal?.removeEventListener("abort", abort);
    };
    child.stdout.on("data", (chunk: Buffer) => out.push(chunk));
    child.stderr.on("data", (chunk: Buffer) => err.push(chunk));
    // A child that ends without reading its input raises EPIPE here, which is not an error of ours.
    child.stdin.on("error", () => {});
    child.on("error", (error) => {
      tidy();
      reject(new CommandError(argv, null, "", error.message, error));
    });
    child.on("close", (code, signal) => {
      tidy();
      if (stopped === "" && code !== null && (options.codes ?? [0]).includes(code))
        return resolve(Buffer.concat(out).toString());
      const said = stopped === "" ? Buffer.concat(err).toString() : "";
      reject(new CommandError(argv, code, said, stopped || `ended with ${code ?? signal}`));
    });
    child.stdin.end(options.stdin);
  });
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

export const exec: Exec = {
  run,
  async startDetached(argv, options) {
    const [program = "", ...rest] = argv;
    const output = openSync(options.output, "a", 0o600);
    try {
      const child = spawn(program, rest, {
        ...person(options),
        stdio: ["ignore", output, output],
        detached: true,
      });
      await once(child, "spawn");
      child.unref();
      const pid = child.pid ?? 0;
      return { pid, born: stat(pid)?.born ?? 0 };
    } catch (error) {
      throw new CommandError(argv, null, "", (error as Error).message, error);
    } finally {
      closeSync(output);
    }
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
