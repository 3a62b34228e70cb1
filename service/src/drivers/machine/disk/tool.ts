/**
 * Runs the programs that read untrusted disks: `qemu-img`, `e2fsck`, `debugfs`. A defect in one of them must give its guest nothing: each
 * run has a user id without rights, a root of its own with only the files of this call (see ../../privateroot.ts), no network, no
 * visible processes of others, a filter of system calls, and limits of memory, processes, file size and time. Only the named files are writable.
 */
import { join } from "node:path";
import { CommandError, type Exec, type RunOptions } from "../../exec.ts";
import {
  dropRights,
  enterRoot,
  filterCalls,
  filterPrograms,
  findNeeds,
  findProgram,
  type PrivateRoot,
} from "../../privateroot.ts";

/** One run of a program on files of one folder. The program is started in this folder, and all paths are relative to it. */
export interface ToolUse extends Pick<RunOptions, "stdin" | "codes" | "signal"> {
  readonly folder: string;
  /** Files and folders that the program sees; "." is all of `folder`. */
  readonly readable: readonly string[];
  /** Existing files that the program may change; the user `uid` must have the right. */
  readonly writable: readonly string[];
  /** Maximum size in bytes of a file that it writes. */
  readonly bytes: number;
  /** User and group id of the program; no effect unless this process is root. */
  readonly uid: number;
  /** Milliseconds. */
  readonly timeout: number;
}

/** Runs programs on untrusted disks. */
export interface DiskTools {
  /** Resolves to the standard output; rejects with a `CommandError` that shows only the program and its arguments. */
  run(argv: readonly string[], use: ToolUse): Promise<string>;
  /** Rejects with the reason if this host does not permit a private root; then programs see the file system of the host. */
  tryRoot(): Promise<void>;
}

/** Memory of a program in bytes, and the number of processes and threads of its user; the VM of the same server may have 256. */
const memory = 2 * 2 ** 30;
const tasks = 512;
/** Bytes that a program prints at most: a disk decides what is printed, such as the content of its files. */
const mostOutput = 64 * 2 ** 20;

/** Mount point of the private roots: every host has this folder, and no program here needs it. */
const base = "/sys";
const folder = "/disk";

const programs = ["qemu-img"] as const;
/** Without these, only the identity of guests cannot be removed. */
const identityPrograms = ["e2fsck", "debugfs"] as const;

/** Returns the programs for removing identities that this host does not have. */
export const missingPrograms = (): readonly string[] => identityPrograms.filter((name) => findProgram(name) === null);

/** Returns the largest size in bytes of a disk file with this virtual size: qcow2 needs 10 bytes per cluster of 64 KiB, and tables. */
export const fileLimit = (virtualSize: number): number => Math.ceil(virtualSize * 1.001) + 16 * 2 ** 20;

/**
 * Creates the runner. What the programs need is found at the first call. `isRequired`: a call fails if its program cannot have a private
 * root; otherwise the program then sees the file system of the host, with the other limits.
 */
export function createDiskTools(exec: Exec, isRequired = false): DiskTools {
  let found: Promise<readonly string[]> | null = null;

  function commandFor(needs: readonly string[], argv: readonly string[], use: Omit<ToolUse, "timeout">): string[] {
    const { uid, bytes } = use;
    const at = (path: string) => [join(use.folder, path), join(folder, path)] as const;
    const root: PrivateRoot = {
      base,
      devices: "null",
      folder,
      needs,
      mounts: [
        ...use.readable.map((path) => ["ro", ...at(path)] as const),
        ...use.writable.map((path) => ["rw", ...at(path)] as const),
      ],
    };
    const spaces = ["--net", "--pid", "--fork", "--kill-child"];
    return enterRoot(root, spaces, [...limits(bytes), ...rightsOf(uid, argv)], true);
  }

  const rightsOf = (uid: number, argv: readonly string[]): string[] => [
    ...dropRights(uid, uid),
    ...filterCalls("disk"),
    ...argv,
  ];
  const limits = (bytes: number): readonly string[] => [
    "prlimit",
    `--as=${memory}`,
    `--fsize=${bytes}`,
    `--nproc=${tasks}`,
    "--core=0",
  ];

  /** Finds what the programs need of the host, and runs one in a private root. */
  async function tryPrograms(): Promise<readonly string[]> {
    const present = identityPrograms.filter((name) => findProgram(name) !== null);
    const needs = await findNeeds(exec, ["prlimit", ...programs, ...present, ...filterPrograms()]);
    const nothing = { folder: "/", readable: [], writable: [], bytes: 0, uid: 65_534 };
    await exec.run(commandFor(needs, ["qemu-img", "--version"], nothing));
    return needs;
  }
  const findPrograms = (): Promise<readonly string[]> => {
    // A failure may be temporary, so the next call tries again.
    found ??= tryPrograms().catch((error: unknown) => {
      found = null;
      throw error;
    });
    return found;
  };

  return {
    async tryRoot() {
      await findPrograms();
    },
    async run(argv, use) {
      const { bytes, uid, stdin, codes, signal, timeout } = use;
      const options: RunOptions = {
        timeout,
        most: mostOutput,
        ...(stdin !== undefined && { stdin }),
        ...(codes !== undefined && { codes }),
        ...(signal !== undefined && { signal }),
      };
      const isRoot = process.getuid?.() === 0;
      const needs = isRoot ? await (isRequired ? findPrograms() : findPrograms().catch(() => null)) : null;
      const command =
        needs !== null ? commandFor(needs, argv, use) : [...limits(bytes), ...(isRoot ? rightsOf(uid, argv) : argv)];
      try {
        return await exec.run(command, { ...options, ...(needs === null && { cwd: use.folder }) });
      } catch (error) {
        if (!(error instanceof CommandError)) throw error;
        throw new CommandError(argv, error.code, error.stderr, reasonOf(error), error);
      }
    },
  };
}

/**
 * Returns the exit code of a program that ended by itself: `mark` is in all its output of errors. Null if it was killed, for example for lack
 * of memory, or did not start: its shell returns 128 and more, and a program that prepares its root has other messages.
 */
export const ownCode = (error: unknown, mark: RegExp): number | null =>
  error instanceof CommandError && error.code !== null && error.code < 128 && mark.test(error.stderr)
    ? error.code
    : null;

/** Returns the end of the message: how the program ended, without the command line. */
const reasonOf = ({ message }: CommandError): string => message.slice(message.lastIndexOf(": ") + 2);
