/**
 * Starts a VM from its spec: seed volume, TAP devices, command line, process, monitor, and finally `cont`. Until `cont` the guest has not
 * executed an instruction, so every earlier step can be discarded and repeated. The state file is written before `cont`, so after a crash
 * of the service there is either no run or a recorded one.
 */
import { chmodSync, chownSync, existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { plainCause } from "../../../base/plaincause.ts";
import type { Child, Exec } from "../../exec.ts";
import { DiskError, originOf, topOf } from "../disk/disk.ts";
import type { Accelerator, MachineSpec } from "../interface.ts";
import { writeSeed } from "../seed/volume.ts";
import { groupOf } from "./accelerator.ts";
import { limitsFor, qemuArguments, socketNames } from "./arguments.ts";
import { type Groups, groupLimits } from "./cgroup.ts";
import { type Confinement, confine, mountsOf } from "./confine.ts";
import { type Folder, makeFolder, replaceFile, type State, writeState } from "./folder.ts";
import { type DiskLimits, limitDisk } from "./live.ts";
import { endProcess, hostBoot, waitForEnd } from "./process.ts";
import type { Qmp } from "./qmp.ts";
import { callMonitor, lastOutput } from "./run.ts";
import { isAbsent } from "./socket.ts";
import type { Taps } from "./tap.ts";

/** Settings and dependencies of a start. */
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

/** A VM that runs: its process, the monitor connection and the stored state. */
export interface Started {
  readonly child: Child;
  readonly qmp: Qmp;
  readonly state: State;
}

/** Milliseconds until the monitor must send its banner; a busy host may be slow. */
const monitorTimeout = 20_000;

/** QEMU's output about a layer that it cannot use. */
const layerOutput = /^qemu\S*: -blockdev driver=qcow2,\S*?filename=(?:\S*\/)?(\S+): (.+)$/m;
/** Reasons that a retry may not meet again. */
const temporary = /Could not open|Failed to |Cannot allocate memory|Too many open files|Input\/output error/;

/** Returns the error for a QEMU process that ended during its start. A layer that is damaged is a `DiskError`: no retry will help. */
export function startError(output: string): Error {
  const [, layer, reason = ""] = layerOutput.exec(output) ?? [];
  if (layer !== undefined && !temporary.test(reason))
    return new DiskError(`its disk is damaged: layer ${layer} cannot be used: ${reason}`);
  return new Error(`QEMU ended: ${output || "without output"}`);
}

async function waitForMonitor(exec: Exec, folder: Folder, child: Child): Promise<Qmp> {
  for (let waited = 0; ; waited += 10) {
    // A wrong option or an unusable accelerator ends the process after it created the socket.
    if (!exec.isAlive(child)) throw startError(lastOutput(folder));
    if (existsSync(join(folder.run, "qmp"))) {
      try {
        return await callMonitor(folder, monitorTimeout);
      } catch (error) {
        // If the process is about to end, its output explains more than a closed socket.
        if (!isAbsent(error) && !(await waitForEnd(exec, child, 500))) throw error;
      }
    }
    if (waited >= monitorTimeout) throw new Error(`QEMU did not open its monitor in ${monitorTimeout} ms`);
    await sleep(10);
  }
}

/** Starts the VM of a server that has no process. If it rejects, no process or device is left. */
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
  for (const path of [folder.output, folder.frozen]) rmSync(path, { force: true });
  await replaceFile(folder.seed, writeSeed(machine.seed), 0o444);
  chownSync(folder.run, uid, uid);
  chmodSync(folder.run, 0o700);
  await taps.create(id, nics, uid);

  let child: Child | null = null;
  let qmp: Qmp | null = null;
  let written: State | null = null;
  try {
    const argv = qemuArguments({ tag, machine, boot: origin.boot, layer, accelerator });
    const gid = groupOf(accelerator, uid);
    const mounts = mountsOf(folder, disk.version);
    const confined = { base: folder.base, mounts, kvm: accelerator === "kvm", uid, gid };
    const command = confine(options.confinement, confined, argv);
    child = await exec.startDetached(command, { output: folder.output, cwd: folder.run });
    // Before the process allocates the guest's memory.
    groups.set(id, groupLimits(machine, accelerator), child.pid);
    qmp = await waitForMonitor(exec, folder, child);
    // QEMU has created all its files. From now on a process that a guest has broken out of cannot place symbolic links that root would
    // follow.
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
    await taps.rename(nics);
    await limitDisk(qmp, options.diskLimits);
    await qmp.run("cont");
    return { child, qmp, state };
  } catch (error) {
    qmp?.close();
    if (child !== null) await endProcess(exec, child);
    await groups.remove(id);
    await taps.remove(id);
    const { message } = error as Error;
    const detail = plainCause(message, "its log on the host has more") ?? message;
    const exit = { reason: "died", at: now(), detail } as const;
    if (written !== null) await writeState(folder, { ...written, exit });
    throw error;
  }
}
