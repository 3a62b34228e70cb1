/**
 * One folder per server, `<servers>/<id>/`, which holds all of it that outlives a process:
 *
 *     label.json    which server it belongs to: its uuid, and what people need to know it again without the database
 *     state.json    how it was started, and how that ended
 *     disk-<n>/     a version of its disk: a whole chain of layers (see disk.ts)
 *     seed.img      what the guest reads at its first boot
 *     qemu.log      what the process complained of
 *     root/         empty: the process's own root is laid over it, where only the process sees it (see confine.ts)
 *     run/          the process's own: sockets, and what the serial line said (console.log, console.1.log)
 *
 * Beside them stand snapshots, `<servers>/<image>.image/`, until the images are written that they were kept for.
 *
 * Likewise `<servers>/<id>.copy/`, which an operator copies for a backup (see held.ts).
 *
 * `<servers>` is closed to everybody but root, and that is the lock between servers: a process is put into its own `run/` before it
 * loses its rights, names everything from there (`../disk-1/2.qcow2`), and cannot climb into a neighbour's. So paths on the way to
 * the data folder need not be open to anybody, and the folder can be moved while its servers are off.
 */
import { chmodSync, mkdirSync, readdirSync, readFileSync, renameSync, statSync } from "node:fs";
import { open, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { syncPathNow } from "../../../base/fsync.ts";
import type { Child } from "../../exec.ts";
import type { Accelerator, Exit } from "../interface.ts";
import { readId } from "./name.ts";
import { numberAt, pick, textAt } from "./qmp.ts";

export interface Folder {
  readonly root: string;
  readonly run: string;
  readonly base: string;
  readonly seed: string;
  readonly state: string;
  readonly label: string;
  readonly output: string;
  readonly console: string;
  readonly previousConsole: string;
  disk(version: number): string;
}

export const diskName = (version: number): string => `disk-${version}`;

export function folderOf(servers: string, id: number): Folder {
  const root = join(servers, String(id));
  const run = join(root, "run");
  return {
    root,
    run,
    base: join(root, "root"),
    seed: join(root, "seed.img"),
    state: join(root, "state.json"),
    label: join(root, "label.json"),
    output: join(root, "qemu.log"),
    console: join(run, "console.log"),
    previousConsole: join(run, "console.1.log"),
    disk: (version) => join(root, diskName(version)),
  };
}

export function makeServers(servers: string): void {
  mkdirSync(servers, { recursive: true });
  chmodSync(servers, 0o700);
}

/** Others may pass through, but not get here. */
export const makeFolder = (path: string): void => void mkdirSync(path, { recursive: true, mode: 0o711 });

export const listServers = (servers: string): readonly number[] =>
  readdirSync(servers)
    .map(readId)
    .filter((id) => id !== null);

/** What is remembered of the present run, or of the last one. */
export interface State {
  readonly uuid: string;
  readonly boot: number;
  readonly version: number;
  readonly startedAt: number;
  readonly accelerator: Accelerator;
  readonly maxCpus: number;
  readonly maxMemory: number;
  readonly share: number;
  /** The process that was told to go on, and in which life of the machine: see `hostBoot`. */
  readonly child: Child;
  readonly host: string;
  readonly exit: Exit | null;
}

const reasons = ["order", "guest", "host", "died"] as const;

function readExit(value: unknown): Exit | null {
  const reason = reasons.find((one) => one === pick(value, "reason"));
  return reason === undefined ? null : { reason, at: numberAt(value, "at"), detail: textAt(value, "detail") };
}

/** Null when it never ran; a file that is not to be read counts as that, since nothing in it cannot be made anew. */
export function readState(folder: Folder): State | null {
  try {
    const value = JSON.parse(readFileSync(folder.state, "utf8")) as unknown;
    return {
      uuid: textAt(value, "uuid"),
      boot: numberAt(value, "boot"),
      version: numberAt(value, "version"),
      startedAt: numberAt(value, "startedAt"),
      accelerator: pick(value, "accelerator") === "kvm" ? "kvm" : "tcg",
      maxCpus: numberAt(value, "maxCpus"),
      maxMemory: numberAt(value, "maxMemory"),
      share: numberAt(value, "share"),
      child: { pid: numberAt(value, "child", "pid"), born: numberAt(value, "child", "born") },
      host: textAt(value, "host"),
      exit: readExit(pick(value, "exit")),
    };
  } catch {
    return null;
  }
}

export const writeState = (folder: Folder, state: State): Promise<void> =>
  replaceFile(folder.state, `${JSON.stringify(state)}\n`, 0o600);

/** Afterwards there is the new content or, after any failure, the old one. */
export async function replaceFile(path: string, content: string | Uint8Array, mode: number): Promise<void> {
  const part = `${path}.part`;
  await rm(part, { force: true });
  const file = await open(part, "wx", mode);
  try {
    await file.writeFile(content);
    await file.chmod(mode);
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(part, path);
  syncPathNow(dirname(path));
}

/** The log of the start before is kept, older ones go; a start at which nothing was said was none. */
export function rotateConsole(folder: Folder): void {
  if ((statSync(folder.console, { throwIfNoEntry: false })?.size ?? 0) > 0)
    renameSync(folder.console, folder.previousConsole);
}
