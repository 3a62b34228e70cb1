/**
 * From a wish to a process that runs: seed, taps, command line, process, monitor, and at last the word to go on. Until that word the
 * guest has not executed an instruction, so everything before it may be thrown away and begun anew; and it is written down before
 * the word is given, so a service that is killed here finds either nothing or a run that it knows.
 */
import { chmodSync, chownSync, existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Child, Exec } from "../../exec.ts";
import { originOf, topOf } from "../disk/disk.ts";
import type { Accelerator, MachineSpec } from "../interface.ts";
import { writeSeed } from "../seed/volume.ts";
import { groupOf } from "./accelerator.ts";
import { limitsFor, qemuArguments, socketNames } from "./arguments.ts";
import type { GroupLimits, Groups } from "./cgroup.ts";
import { type Confinement, confine, partsOf } from "./confine.ts";
import { type Folder, makeFolder, replaceFile, type State, writeState } from "./folder.ts";
import { type DiskLimits, limitDisk } from "./live.ts";
import { endProcess, hostBoot, waitForEnd } from "./process.ts";
import type { Qmp } from "./qmp.ts";
import { callMonitor, lastOutput } from "./run.ts";
import { isAbsent } from "./socket.ts";
import type { Taps } from "./tap.ts";

export interface StartOptions {
  readonly exec: Exec;
  readonly tag: string;
  readonly accelerator: Accelerator;
  readonly confinement: Confinement;
  readonly diskLimits: DiskLimits;
  readonly taps: Taps;
  readonly groups: Groups;
  readonly now: () => number;
}

export interface Started {
  readonly child: Child;
  readonly qmp: Qmp;
  readonly state: State;
}

/** MB that a process needs beside its guest's memory: QEMU itself, its caches, and files that it reads and writes. */
const ownMemory = 512;
/** MB of that which emulates: translated code, and tables for each processor that a guest can make grow. */
const emulation = (cpus: number): number => 256 + 128 * cpus;

/**
 * Weight among the servers of the machine: as many cores, as much; twice for high performance. Threads: one for each processor, up
 * to 64 for files, and some.
 */
export const groupLimits = (
  { cpus, share, memory }: Pick<MachineSpec, "cpus" | "share" | "memory">,
  accelerator: Accelerator,
): GroupLimits => ({
  weight: cpus * share,
  memory: memory + ownMemory + (accelerator === "tcg" ? emulation(cpus) : 0),
  tasks: 256,
});

/** Milliseconds until the monitor greets; a loaded machine may take its time. */
const greetingLimit = 20_000;

async function waitForMonitor(exec: Exec, folder: Folder, child: Child): Promise<Qmp> {
  for (let waited = 0; ; waited += 10) {
    // A wrong option or a dead accelerator ends the process after it made the socket.
    if (!exec.isAlive(child)) throw new Error(`QEMU ended: ${lastOutput(folder) || "without a word"}`);
    if (existsSync(join(folder.run, "qmp"))) {
      try {
        return await callMonitor(folder, greetingLimit);
      } catch (error) {
        // When it is on its way out, its own words are worth more than a closed socket.
        if (!isAbsent(error) && !(await waitForEnd(exec, child, 500))) throw error;
      }
    }
    if (waited >= greetingLimit) throw new Error(`QEMU did not open its monitor in ${greetingLimit} ms`);
    await sleep(10);
  }
}

/** Nothing of the server runs. Rejects, and nothing does, when it cannot be started. */
export async function startMachine(
  options: StartOptions,
  folder: Folder,
  machine: MachineSpec,
  uid: number,
): Promise<Started> {
  const { exec, tag, accelerator, taps, groups, now } = options;
  const { id, uuid, boot, nics, disk } = machine;
  if (!existsSync(folder.disk(disk.version))) throw new Error(`server ${id} has no disk of version ${disk.version}`);
  const layer = topOf(folder.disk(disk.version));
  const origin = await originOf(folder.disk(disk.version));

  makeFolder(folder.run);
  makeFolder(folder.base);
  for (const name of socketNames) rmSync(join(folder.run, name), { force: true });
  rmSync(folder.output, { force: true });
  await replaceFile(folder.seed, writeSeed(machine.seed), 0o444);
  chownSync(folder.run, uid, uid);
  chmodSync(folder.run, 0o700);
  await taps.make(id, nics, uid);

  let child: Child | null = null;
  let qmp: Qmp | null = null;
  let written: State | null = null;
  try {
    const argv = qemuArguments({ tag, machine, boot: origin.boot, layer, accelerator });
    const gid = groupOf(accelerator, uid);
    const parts = partsOf(folder, disk.version);
    const prisoner = { base: folder.base, parts, kvm: accelerator === "kvm", uid, gid };
    const command = confine(options.confinement, prisoner, argv);
    child = await exec.startDetached(command, { output: folder.output, cwd: folder.run });
    // Before it has any memory that counts.
    groups.set(id, groupLimits(machine, accelerator), child.pid);
    qmp = await waitForMonitor(exec, folder, child);
    // All that it makes is made: whoever breaks out of the guest cannot lay out links for us to follow.
    chownSync(folder.run, 0, 0);
    chmodSync(folder.run, 0o711);
    const limits = limitsFor({ machine, boot: origin.boot });
    const state: State = {
      uuid,
      boot,
      version: disk.version,
      startedAt: now(),
      accelerator,
      maxCpus: limits.cpus,
      maxMemory: limits.memory,
      share: machine.share,
      child,
      host: hostBoot(),
      exit: null,
    };
    await writeState(folder, state);
    written = state;
    await taps.name(nics);
    await limitDisk(qmp, options.diskLimits);
    await qmp.run("cont");
    return { child, qmp, state };
  } catch (error) {
    qmp?.close();
    if (child !== null) await endProcess(exec, child);
    await groups.remove(id);
    await taps.remove(id);
    const exit = { reason: "died", at: now(), detail: (error as Error).message } as const;
    if (written !== null) await writeState(folder, { ...written, exit });
    throw error;
  }
}
