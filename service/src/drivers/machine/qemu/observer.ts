/**
 * How all servers are, at once. Nobody waits for a server that does not answer: it is shown as it was last known, with a word about
 * that. What has no folder but a process or a device left is shown too, so that it can be removed.
 */
import { statfsSync } from "node:fs";
import { availableParallelism, totalmem } from "node:os";
import type { Exec } from "../../exec.ts";
import { trimLog } from "../console/log.ts";
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
import { findProcesses, usageOf } from "./process.ts";
import type { Run, Runs } from "./run.ts";
import type { Taps } from "./tap.ts";

export interface ObserverOptions {
  readonly exec: Exec;
  readonly tag: string;
  readonly servers: string;
  readonly firstUid: number;
  readonly accelerator: Accelerator;
  readonly runs: Runs;
  readonly taps: Taps;
  readonly silent: Silence;
}

/** Processes that nobody has taken over, since they do not answer: they are asked again at each look. */
export interface Silence {
  /** Milliseconds since it is known not to answer. */
  ask(id: number): number;
  forget(id: number): void;
}

/** `adopt` rejects as long as the process does not answer. */
export function createSilence(adopt: (id: number) => Promise<unknown>): Silence {
  const since = new Map<number, number>();
  const asking = new Set<number>();
  return {
    ask(id) {
      const start = since.get(id) ?? performance.now();
      since.set(id, start);
      if (!asking.has(id)) {
        asking.add(id);
        adopt(id)
          .catch(() => {})
          .finally(() => asking.delete(id));
      }
      return performance.now() - start;
    },
    forget: (id) => void since.delete(id),
  };
}

/** Milliseconds that a server has for an answer. */
export const patience = 1000;
/** After so many without one it is in trouble. */
const mostSilence = 10_000;

/** Bytes that must be free before a server that was paused for lack of room goes on. */
const leastRoom = 64 * MIB;
export function hasRoom(servers: string): boolean {
  const { bsize, bavail } = statfsSync(servers);
  return bsize * bavail >= leastRoom;
}

async function disksOf(folder: Folder): Promise<readonly DiskStatus[]> {
  const found: DiskStatus[] = [];
  for (const version of versionsOf(folder.root)) {
    const disk = folder.disk(version);
    try {
      const bytes = await sizeOf(`${disk}/${layerName(topOf(disk))}`);
      found.push({ version, gb: Math.ceil(bytes / GIB), allocated: allocatedOf(disk) });
    } catch {
      // It is being removed.
    }
  }
  return found;
}

async function usageNow({ child, qmp }: Run): Promise<Usage> {
  const [traffic, memory] = await Promise.all([diskTraffic(qmp, patience), memoryInUse(qmp, patience)]);
  return { ...usageOf(child), ...traffic, memory };
}

const words: Readonly<Record<string, string>> = {
  "io-error": "its disk cannot be written: the machine's disks are full or broken",
  paused: "somebody has paused it",
};

const troubleOf = (status: string): MachineTrouble | null =>
  status === "running" ? null : status === "io-error" ? "IoError" : "Paused";

/** What of a server's process is asked in turn, none of which may keep the others waiting. */
async function sizesOf({ state, qmp }: Run) {
  const [cpus, memory, modules] = await Promise.all([
    cpusOf(qmp, patience),
    memoryOf(qmp, patience),
    memoryModules(qmp, patience),
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
  trimLog(run.folder.console);
  const label = readLabel(run.folder);
  const known = { id, label, since: state.startedAt, exit: null, boot: state.boot, version: state.version, disks };
  try {
    const status = await runState(qmp, patience);
    const [sizes, usage] = await Promise.all([sizesOf(run), usageNow(run)]);
    run.heardAt = performance.now();
    const trouble = troubleOf(status);
    return {
      ...known,
      ...sizes,
      power: trouble === null ? "running" : "paused",
      trouble,
      canResume: trouble === "Paused" || (trouble === "IoError" && hasRoom(servers)),
      stage: run.log.stage(),
      usage,
      detail: trouble === null ? "" : (words[status] ?? `it is in state "${status}"`),
    };
  } catch (error) {
    return {
      ...known,
      power: "running",
      trouble: performance.now() - run.heardAt >= mostSilence ? "NotResponding" : null,
      canResume: false,
      cpus: 0,
      memory: 0,
      reach: { cpus: 0, memory: 0 },
      stage: run.log.stage(),
      usage: null,
      detail: `it does not answer (${(error as Error).message})`,
    };
  }
}

/** `silence`: milliseconds for which its process has not answered; null: it has none. */
function restingStatus(
  id: number,
  folder: Folder,
  disks: readonly DiskStatus[],
  silence: number | null,
): MachineStatus {
  const state = readState(folder);
  const isThere = silence !== null;
  return {
    id,
    label: readLabel(folder),
    power: isThere ? "running" : "off",
    trouble: isThere && silence >= mostSilence ? "NotResponding" : null,
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
    detail: isThere ? "it runs, but does not answer" : "",
  };
}

export function capacityOf(folder: string): Capacity {
  const { bsize, blocks, bavail } = statfsSync(folder);
  const gb = (count: number) => Math.floor((count * bsize) / GIB);
  return {
    cores: availableParallelism(),
    memory: Math.floor(totalmem() / MIB),
    disk: gb(blocks),
    diskFree: gb(bavail),
  };
}

export async function observeMachines(options: ObserverOptions): Promise<MachinesStatus> {
  const { exec, tag, servers, firstUid, accelerator, runs, taps } = options;
  const processes = findProcesses(exec, tag, firstUid);
  const ids = [...new Set([...listServers(servers), ...processes.keys(), ...taps.owners()])].sort((a, b) => a - b);
  const machines = await Promise.all(
    ids.map(async (id) => {
      const folder = folderOf(servers, id);
      const disks = await disksOf(folder);
      const run = runs.all.get(id);
      const isSilent = run === undefined && processes.has(id);
      if (!isSilent) options.silent.forget(id);
      if (run !== undefined) return runningStatus(run, disks, options);
      return restingStatus(id, folder, disks, isSilent ? options.silent.ask(id) : null);
    }),
  );
  const detail = accelerator === "kvm" ? "QEMU with KVM" : "QEMU, emulating";
  return { ready: true, detail, accelerator, capacity: capacityOf(servers), machines };
}
