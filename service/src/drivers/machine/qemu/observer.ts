/**
 * Observes all servers at once. A server that does not respond delays no other: its last known state is returned with an explanation.
 * Servers of which only a process or device is left are returned too, so that they can be removed.
 */
import { existsSync, statfsSync } from "node:fs";
import { availableParallelism, totalmem } from "node:os";
import { trimLog } from "../../../base/logfile.ts";
import type { Child, Exec } from "../../exec.ts";
import { allocatedOf, GIB, layerName, sizeOf, topOf, versionsOf } from "../disk/disk.ts";
import type {
  Accelerator,
  Capacity,
  DiskStatus,
  MachineStatus,
  MachinesStatus,
  MachineTrouble,
  Usage,
} from "../interface.ts";
import { type Folder, folderOf, listServers, readState } from "./folder.ts";
import { readLabel } from "./label.ts";
import { reachOfMemory } from "./live.ts";
import { cpusOf, diskTraffic, MIB, memoryInUse, memoryModules, memoryOf, runState } from "./monitor.ts";
import { findProcesses, findRecorded, usageOf } from "./process.ts";
import type { Run, Runs } from "./run.ts";
import type { Taps } from "./tap.ts";

/** Dependencies of `observeMachines`. */
export interface ObserverOptions {
  readonly exec: Exec;
  readonly tag: string;
  readonly servers: string;
  readonly firstUid: number;
  readonly accelerator: Accelerator;
  readonly runs: Runs;
  readonly taps: Taps;
  readonly unresponsive: Unresponsive;
}

/** Processes that could not be adopted because they do not respond. Each observation retries. */
export interface Unresponsive {
  /** Returns whether a process of the server could not be adopted. */
  has(id: number): boolean;
  /** Retries the adoption and returns the milliseconds since the first failure. */
  retry(id: number): number;
  /** Ends the count of a server that responds or has no process. */
  forget(id: number): void;
}

/** Creates an empty table. `adopt` rejects while the process does not respond. */
export function createUnresponsive(adopt: (id: number) => Promise<unknown>): Unresponsive {
  const since = new Map<number, number>();
  const pending = new Set<number>();
  return {
    has: (id) => since.has(id),
    retry(id) {
      const start = since.get(id) ?? performance.now();
      since.set(id, start);
      if (!pending.has(id)) {
        pending.add(id);
        adopt(id)
          .catch(() => {})
          .finally(() => pending.delete(id));
      }
      return performance.now() - start;
    },
    forget: (id) => void since.delete(id),
  };
}

/** Milliseconds in which a monitor must respond to a query. */
export const queryTimeout = 1000;
/** Milliseconds without a response after which a server is `NotResponding`. */
const unresponsiveAfter = 10_000;

/** Bytes that must be free before a VM that was paused by a full disk may resume. */
const minFreeSpace = 64 * MIB;
/** Returns whether a VM that was paused by a full disk may resume. */
export function hasSpace(servers: string): boolean {
  const { bsize, bavail } = statfsSync(servers);
  return bsize * bavail >= minFreeSpace;
}

async function disksOf(folder: Folder): Promise<readonly DiskStatus[]> {
  const found: DiskStatus[] = [];
  for (const version of versionsOf(folder.root)) {
    const disk = folder.disk(version);
    try {
      const bytes = await sizeOf(`${disk}/${layerName(topOf(disk))}`);
      found.push({ version, gb: Math.ceil(bytes / GIB), allocated: allocatedOf(disk) });
    } catch {
      // The disk is being removed.
    }
  }
  return found;
}

async function usageNow({ child, qmp }: Run): Promise<Usage> {
  const [traffic, memory] = await Promise.all([diskTraffic(qmp, queryTimeout), memoryInUse(qmp, queryTimeout)]);
  return { ...usageOf(child), ...traffic, memory };
}

const pauseReasons: Readonly<Record<string, string>> = {
  "io-error": "its disk cannot be written: the host's disks are full or broken",
  paused: "it was paused through the debug monitor",
};

const troubleOf = (status: string): MachineTrouble | null =>
  status === "running" ? null : status === "io-error" ? "IoError" : "Paused";

/** Queries the current sizes of a VM in parallel. */
async function sizesOf({ state, qmp }: Run) {
  const [cpus, memory, modules] = await Promise.all([
    cpusOf(qmp, queryTimeout),
    memoryOf(qmp, queryTimeout),
    memoryModules(qmp, queryTimeout),
  ]);
  const reach = {
    cpus: Math.max(state.maxCpus, cpus),
    memory: reachOfMemory(state, memory, modules),
  };
  return { cpus, memory, reach };
}

async function runningStatus(
  run: Run,
  disks: readonly DiskStatus[],
  { servers }: ObserverOptions,
): Promise<MachineStatus> {
  const { id, state, qmp } = run;
  // A guest causes messages of QEMU too, by errors of its drivers.
  for (const log of [run.folder.console, run.folder.output]) trimLog(log);
  const label = readLabel(run.folder);
  const known = { id, label, since: state.startedAt, exit: null, boot: state.boot, version: state.version, disks };
  try {
    const status = await runState(qmp, queryTimeout);
    const [sizes, usage] = await Promise.all([sizesOf(run), usageNow(run)]);
    run.respondedAt = performance.now();
    const trouble = troubleOf(status);
    return {
      ...known,
      ...sizes,
      power: trouble === null ? "running" : "paused",
      trouble,
      canResume: trouble === "Paused" || (trouble === "IoError" && hasSpace(servers)),
      stage: run.log.stage(),
      usage,
      detail: trouble === null ? "" : (pauseReasons[status] ?? `it is in state "${status}"`),
    };
  } catch {
    return {
      ...known,
      power: "running",
      trouble: performance.now() - run.respondedAt >= unresponsiveAfter ? "NotResponding" : null,
      canResume: false,
      cpus: 0,
      memory: 0,
      reach: { cpus: 0, memory: 0 },
      stage: run.log.stage(),
      usage: null,
      detail: "the VM does not respond",
    };
  }
}

/**
 * Returns the status of a server without a tracked run. `silentFor`: ms for which its process has not responded; null if it has no process.
 */
function untrackedStatus(
  id: number,
  folder: Folder,
  disks: readonly DiskStatus[],
  silentFor: number | null,
): MachineStatus {
  const state = readState(folder);
  const hasProcess = silentFor !== null;
  return {
    id,
    label: readLabel(folder),
    power: hasProcess ? "running" : "off",
    trouble: hasProcess && silentFor >= unresponsiveAfter ? "NotResponding" : null,
    canResume: false,
    since: state?.exit?.at ?? null,
    exit: state?.exit ?? null,
    boot: state?.boot ?? 0,
    version: 0,
    cpus: 0,
    memory: 0,
    reach: { cpus: 0, memory: 0 },
    stage: null,
    disks,
    usage: null,
    detail: hasProcess ? "the VM does not respond" : "",
  };
}

/** Returns the capacity of the host; `folder` selects the file system. */
function capacityOf(folder: string): Capacity {
  const { bsize, blocks, bavail } = statfsSync(folder);
  const gb = (count: number) => Math.floor((count * bsize) / GIB);
  return {
    cores: availableParallelism(),
    memory: Math.floor(totalmem() / MIB),
    disk: gb(blocks),
    diskFree: gb(bavail),
  };
}

/** Returns the state of the host and all servers, or of `only` those with these ids. */
export async function observeMachines(options: ObserverOptions, only?: readonly number[]): Promise<MachinesStatus> {
  const { exec, tag, servers, firstUid, accelerator, runs, taps, unresponsive } = options;
  const recorded = new Map<number, Child>();
  for (const id of only ?? []) {
    const child = runs.all.has(id) ? null : findRecorded(exec, tag, firstUid, id, folderOf(servers, id));
    if (child !== null) recorded.set(id, child);
  }
  // All processes and devices of the host are read to find what is left of a server without a folder, and a process in no state file, which
  // an earlier service started and this one could not adopt.
  const isOff = (id: number): boolean => existsSync(folderOf(servers, id).root) && !unresponsive.has(id);
  const areKnown = only?.every((id) => runs.all.has(id) || recorded.has(id) || isOff(id)) === true;
  const processes: ReadonlyMap<number, Child> = areKnown ? recorded : findProcesses(exec, tag, firstUid);
  const all = areKnown ? only : [...listServers(servers), ...processes.keys(), ...taps.owners()];
  const ids = [...new Set(all)].filter((id) => only?.includes(id) !== false).sort((a, b) => a - b);
  const machines = await Promise.all(
    ids.map(async (id) => {
      const folder = folderOf(servers, id);
      const disks = await disksOf(folder);
      const run = runs.all.get(id);
      const isSilent = run === undefined && processes.has(id);
      if (!isSilent) unresponsive.forget(id);
      if (run !== undefined) return runningStatus(run, disks, options);
      return untrackedStatus(id, folder, disks, isSilent ? unresponsive.retry(id) : null);
    }),
  );
  const detail = accelerator === "kvm" ? "QEMU with KVM" : "QEMU, emulating";
  return { ready: true, detail, accelerator, capacity: capacityOf(servers), machines };
}
