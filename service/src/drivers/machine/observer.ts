/**
 * How all servers are, at once. Nobody waits for a server that does not answer: it is shown as it was last known, with a word about
 * that. What has no folder but a process or a device left is shown too, so that it can be removed.
 */
import { statfsSync } from "node:fs";
import { availableParallelism, totalmem } from "node:os";
import type { Exec } from "../exec.ts";
import { trimLog } from "./console.ts";
import { allocatedOf, GIB, layerName, sizeOf, topOf, versionsOf } from "./disk.ts";
import { type Folder, folderOf, listServers, readState } from "./folder.ts";
import { reachOfMemory } from "./live.ts";
import { cpusOf, diskTraffic, MIB, memoryInUse, memoryModules, memoryOf, runState } from "./monitor.ts";
import type { Accelerator, Capacity, DiskStatus, MachineStatus, MachinesStatus, Usage } from "./port.ts";
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
}

/** Milliseconds that a server has for an answer. */
const patience = 1000;

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

async function runningStatus(run: Run, disks: readonly DiskStatus[]): Promise<MachineStatus> {
  const { id, state, qmp } = run;
  trimLog(run.folder.console);
  const known = { id, since: state.startedAt, exit: null, boot: state.boot, version: state.version, disks };
  try {
    const [status, cpus, memory, modules, usage] = await Promise.all([
      runState(qmp, patience),
      cpusOf(qmp),
      memoryOf(qmp),
      memoryModules(qmp),
      usageNow(run),
    ]);
    const reach = {
      cpus: state.accelerator === "kvm" ? Math.max(state.maxCpus, cpus) : cpus,
      memory: reachOfMemory(state, memory, modules),
    };
    const power = status === "running" ? "running" : "paused";
    const detail = power === "running" ? "" : (words[status] ?? `it is in state "${status}"`);
    return { ...known, power, cpus, memory, reach, stage: run.log.stage(), usage, detail };
  } catch (error) {
    const detail = `it does not answer (${(error as Error).message})`;
    const reach = { cpus: 0, memory: 0 };
    return { ...known, power: "running", cpus: 0, memory: 0, reach, stage: run.log.stage(), usage: null, detail };
  }
}

function restingStatus(id: number, folder: Folder, disks: readonly DiskStatus[], detail: string): MachineStatus {
  const state = readState(folder);
  return {
    id,
    power: detail === "" ? "off" : "running",
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
    detail,
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
      if (run !== undefined) return runningStatus(run, disks);
      return restingStatus(id, folder, disks, processes.has(id) ? "it runs, but does not answer" : "");
    }),
  );
  const detail = accelerator === "kvm" ? "QEMU with KVM" : "QEMU, emulating";
  return { ready: true, detail, accelerator, capacity: capacityOf(servers), machines };
}
