/**
 * Paths and files of a server's folder, `<servers>/<id>/`, which contains everything that outlives its process:
 *
 *     label.json    uuid and description of the server, to identify it without the database
 *     state.json    how the VM was started, and how the run ended
 *     frozen        exists from a freeze of the guest's file systems until the guest agent has answered the thaw
 *     disk-<n>/     version n of its disk: a complete chain of layers (see disk.ts)
 *     seed.img      seed volume, which the guest reads at its first boot
 *     qemu.log      output of the process
 *     root/         empty: mount point of the process's private root (see confine.ts)
 *     run/          sockets and serial logs of the process (console.log, console.1.log)
 *
 * `<servers>/<image>.image/` is the snapshot for an image that is not written yet.
 * `<servers>/<id>.copy/` is a copy of disks for a backup (see diskcopy.ts).
 *
 * Only root may enter `<servers>`, which separates servers from each other. A process is started in its own `run/` before it drops its
 * rights, uses relative paths (`../disk-1/2.qcow2`), and cannot reach the folder of another server. So the parents of the data folder
 * need no read access for others, and the data folder can be moved while its servers are off.
 */
import { chmodSync, mkdirSync, readdirSync, readFileSync, renameSync, statSync } from "node:fs";
import { open, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { syncPathNow } from "../../../base/fsync.ts";
import type { Child } from "../../exec.ts";
import type { Accelerator, Exit } from "../interface.ts";
import { readId } from "./name.ts";
import { numberAt, pick, textAt } from "./qmp.ts";

/** Paths of one server's folder. `base` is the mount point of the private root, `output` the log of QEMU. */
export interface Folder {
  readonly root: string;
  readonly run: string;
  readonly base: string;
  readonly seed: string;
  readonly state: string;
  readonly label: string;
  readonly frozen: string;
  readonly output: string;
  readonly console: string;
  readonly previousConsole: string;
  disk(version: number): string;
}

export const diskName = (version: number): string => `disk-${version}`;

/** Returns the paths of a server. They need not exist. */
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
    frozen: join(root, "frozen"),
    output: join(root, "qemu.log"),
    console: join(run, "console.log"),
    previousConsole: join(run, "console.1.log"),
    disk: (version) => join(root, diskName(version)),
  };
}

/** Creates the folder of all servers, accessible to root only. */
export function makeServers(servers: string): void {
  mkdirSync(servers, { recursive: true });
  chmodSync(servers, 0o700);
}

/** Creates a folder that other users may traverse but not list. */
export const makeFolder = (path: string): void => void mkdirSync(path, { recursive: true, mode: 0o711 });

/** Returns the ids of all servers that have a folder. */
export const listServers = (servers: string): readonly number[] =>
  readdirSync(servers)
    .map(readId)
    .filter((id) => id !== null);

/** The stored state of the current or last run. */
export interface State {
  readonly uuid: string;
  readonly boot: number;
  readonly version: number;
  readonly startedAt: number;
  readonly accelerator: Accelerator;
  readonly maxCpus: number;
  readonly maxMemory: number;
  readonly share: number;
  /** The process that received `cont`, and the boot id of the host (see `hostBoot`). */
  readonly child: Child;
  readonly host: string;
  readonly exit: Exit | null;
}

const reasons = ["order", "guest", "host", "died"] as const;

function readExit(value: unknown): Exit | null {
  const reason = reasons.find((one) => one === pick(value, "reason"));
  return reason === undefined ? null : { reason, at: numberAt(value, "at"), detail: textAt(value, "detail") };
}

/** Reads the state. Null if the server never ran or the file is unreadable: all its content can be created again. */
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

/** Replaces the state file atomically. */
export const writeState = (folder: Folder, state: State): Promise<void> =>
  replaceFile(folder.state, `${JSON.stringify(state)}\n`, 0o600);

/** Replaces a file atomically and durably: after a failure or crash it has the old or the new content. */
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

/** Renames the current serial log to the previous one. An empty log is not kept: the VM of that start printed nothing. */
export function rotateConsole(folder: Folder): void {
  if ((statSync(folder.console, { throwIfNoEntry: false })?.size ?? 0) > 0)
    renameSync(folder.console, folder.previousConsole);
}
