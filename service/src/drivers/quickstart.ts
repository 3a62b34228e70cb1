/**
 * Starts children by posix_spawn(3): until a child runs its program, it shares the memory of this process. Node forks instead, which copies
 * the page tables, and afterwards each page that either process writes. For a short program this is most of the processor time. libc is called
 * through koffi.
 */
import { accessSync, constants as files } from "node:fs";
import { Socket } from "node:net";
import { constants } from "node:os";
import type { Start, Started } from "./children.ts";

/** fcntl.h */
const O_CLOEXEC = 0o2000000;
/** POSIX_SPAWN_SETSIGDEF, SETSIGMASK and SETSID (spawn.h): as in children of Node, no signal is ignored or blocked. */
const flags = 0x04 | 0x08 | 0x80;
const WNOHANG = 1;
/** Bytes for the opaque structs of spawn.h, of which glibc's take 336, and for a sigset_t. */
const structBytes = 1024;

type End = Awaited<Started["closed"]>;

/** Reads a status of waitpid(2). */
function endOf(status: number): End {
  const number = status & 0x7f;
  if (number === 0) return { code: (status >> 8) & 0xff, signal: null };
  const found = Object.entries(constants.signals).find(([, one]) => one === number);
  return { code: null, signal: (found?.[0] ?? `SIG${number}`) as NodeJS.Signals };
}

/** Returns the path of a program in the search path; null: there is none. */
function findIn(searchPath: string, program: string): string | null {
  const paths = program.includes("/") ? [program] : searchPath.split(":").map((folder) => `${folder}/${program}`);
  const isProgram = (path: string): boolean => {
    try {
      accessSync(path, files.X_OK);
      return true;
    } catch {
      return false;
    }
  };
  return paths.find(isProgram) ?? null;
}

/**
 * Loads libc. The returned function passes to `byNode` what posix_spawn cannot do (users, folders) and what fails, so errors are those of Node.
 * Rejects without koffi.
 */
export async function loadQuickStart(byNode: Start): Promise<Start> {
  const { default: koffi } = await import("koffi");
  const libc = koffi.load(null);
  const pipe2: (ends: number[], flags: number) => number = libc.func("int pipe2(_Out_ int *, int)");
  const close: (file: number) => number = libc.func("int close(int)");
  const waitpid: (pid: number, status: number[], options: number) => number = libc.func(
    "int waitpid(int, _Out_ int *, int)",
  );
  const spawn: (
    pid: number[],
    path: string,
    actions: Buffer,
    attributes: Buffer,
    argv: readonly (string | null)[],
    env: readonly (string | null)[],
  ) => number = libc.func("int posix_spawn(_Out_ int *, const char *, void *, void *, const char **, const char **)");
  const call = (name: string, ...types: readonly string[]): ((...values: readonly (Buffer | number)[]) => number) =>
    libc.func(`int ${name}(${types.join(", ")})`);
  const beginActions = call("posix_spawn_file_actions_init", "void *");
  const addDuplicate = call("posix_spawn_file_actions_adddup2", "void *", "int", "int");
  const endActions = call("posix_spawn_file_actions_destroy", "void *");

  const attributes = Buffer.alloc(structBytes);
  call("posix_spawnattr_init", "void *")(attributes);
  call("posix_spawnattr_setflags", "void *", "short")(attributes, flags);
  call("posix_spawnattr_setsigmask", "void *", "void *")(attributes, Buffer.alloc(structBytes));
  // Not sigfillset: it leaves out two signals of glibc itself, which would be ignored.
  call("posix_spawnattr_setsigdefault", "void *", "void *")(attributes, Buffer.alloc(structBytes, 0xff));

  const running = new Map<number, (end: End) => void>();
  process.on("SIGCHLD", () => {
    for (const [pid, resolve] of running) {
      const status = [0];
      if (waitpid(pid, status, WNOHANG) !== pid) continue;
      running.delete(pid);
      resolve(endOf(status[0] ?? 0));
    }
  });

  /** Starts the program with these ends of pipes as its standard files. Returns its PID; null: it failed. */
  function launch(
    path: string,
    argv: readonly string[],
    env: readonly string[],
    ends: readonly number[],
  ): number | null {
    const actions = Buffer.alloc(structBytes);
    beginActions(actions);
    for (const [number, end] of ends.entries()) addDuplicate(actions, end, number);
    const pid = [0];
    const failure = spawn(pid, path, actions, attributes, [...argv, null], [...env, null]);
    endActions(actions);
    return failure === 0 ? (pid[0] ?? null) : null;
  }

  return (argv, options) => {
    const env = Object.entries(options.env).map(([name, value]) => `${name}=${value}`);
    const isSpecial = options.cwd !== undefined || options.uid !== undefined || options.gid !== undefined;
    const path = findIn(options.env["PATH"] ?? "", argv[0] ?? "");
    if (isSpecial || path === null || [...argv, ...env].some((text) => text.includes("\0")))
      return byNode(argv, options);
    const pipes = [0, 1, 2].flatMap(() => {
      const ends = [-1, -1];
      return pipe2(ends, O_CLOEXEC) === 0 ? [ends as [number, number]] : [];
    });
    const [input, output, errors] = pipes;
    const pid =
      input !== undefined && output !== undefined && errors !== undefined
        ? launch(path, argv, env, [input[0], output[1], errors[1]])
        : null;
    if (pid === null || input === undefined || output === undefined || errors === undefined) {
      for (const end of pipes.flat()) close(end);
      return byNode(argv, options);
    }
    const ended = new Promise<End>((resolve) => running.set(pid, resolve));
    for (const end of [input[0], output[1], errors[1]]) close(end);
    const stdin = new Socket({ fd: input[1], readable: false, writable: true });
    const [stdout, stderr] = [output, errors].map(
      ([end]) => new Socket({ fd: end, readable: true, writable: false }),
    ) as [Socket, Socket];
    const isClosed = (socket: Socket) => new Promise((resolve) => socket.once("close", resolve));
    const closed = Promise.all([ended, isClosed(stdout), isClosed(stderr)]).then(([end]) => {
      stdin.destroy();
      return end;
    });
    return { pid, stdin, stdout, stderr, closed };
  };
}
