/**
 * Changes a running VM. Each function reads the current state from QEMU, does what is missing, and returns whether that was sufficient or a
 * restart is needed. So each can be repeated after an interruption.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { GIB } from "../disk/disk.ts";
import type { Accelerator, ApplyResult, ApplyResults, MachineSpec, Nic } from "../interface.ts";
import { codeCache, netdevOf, nicOf, portOf, portsFor } from "./arguments.ts";
import { type Groups, groupLimits } from "./cgroup.ts";
import type { State } from "./folder.ts";
import { codeSize, cpusOf, MIB, memoryModules, memoryOf, pluggedDevices, rootDisk } from "./monitor.ts";
import { pendingTapOf } from "./name.ts";
import { listAt, numberAt, pick, type Qmp, QmpError, textAt } from "./qmp.ts";
import type { Run, Runs } from "./run.ts";
import type { Taps } from "./tap.ts";

/** Grows the disk to `gb`. It never shrinks one: QEMU would truncate the data without an error. */
export async function growDisk(qmp: Qmp, gb: number): Promise<ApplyResult> {
  const { node, bytes } = await rootDisk(qmp);
  if (bytes >= gb * GIB) return "same";
  await qmp.run("block_resize", { "node-name": node, size: gb * GIB });
  return "live";
}

/** Limits of disk traffic per server. */
export interface DiskLimits {
  /** Operations per second; 0: no limit. */
  readonly operations: number;
  /** MB (10^6 bytes) per second; 0: no limit. */
  readonly bandwidth: number;
}

/** Limits reads and writes of the guest together. QEMU delays requests above the limit. */
export async function limitDisk(qmp: Qmp, { operations, bandwidth }: DiskLimits): Promise<void> {
  const none = { bps_rd: 0, bps_wr: 0, iops_rd: 0, iops_wr: 0 };
  const id = "/machine/peripheral/root/virtio-backend";
  await qmp.run("block_set_io_throttle", { id, bps: bandwidth * 1e6, iops: operations, ...none });
}

/** MB. Sizes of modules are multiples of this, since the guest activates memory in blocks of this size. */
const block = 128;
const modules = 8;

/** Returns the maximum memory (MB) without a restart. `inUse`: number of plugged modules. */
export const reachOfMemory = (state: State, present: number, inUse: number): number =>
  inUse < modules ? Math.max(state.maxMemory, present) : present;

/** Changes the memory to `wanted` MB by plugging or unplugging modules. */
async function changeMemory(qmp: Qmp, state: State, wanted: number): Promise<ApplyResult> {
  const present = await memoryOf(qmp);
  const more = wanted - present;
  if (more === 0) return "same";
  if (more < 0) return shrinkMemory(qmp, -more);
  const count = await memoryModules(qmp);
  if (more % block !== 0 || wanted > reachOfMemory(state, present, count)) return "nextStart";
  // An interrupted call may have left this object, whose name would be a duplicate.
  const name = `memory${count}`;
  await qmp.run("object-del", { id: name }).catch(unlessRefused);
  await qmp.run("object-add", { "qom-type": "memory-backend-ram", id: name, size: more * MIB });
  await qmp.run("device_add", { driver: "pc-dimm", id: `dimm${count}`, memdev: name });
  return "live";
}

/** Unplugs the last modules if their sizes add up to exactly `less` MB. */
async function shrinkMemory(qmp: Qmp, less: number): Promise<ApplyResult> {
  const sizes = listAt(await qmp.run("query-memory-devices")).map((one) => numberAt(one, "data", "size") / MIB);
  let left = less;
  for (let last = sizes.length - 1; last >= 0 && left >= (sizes[last] ?? 0); last--) {
    if (!(await unplug(qmp, `dimm${last}`))) return "nextStart";
    await qmp.run("object-del", { id: `memory${last}` });
    left -= sizes[last] ?? 0;
    if (left === 0) return "live";
  }
  return "nextStart";
}

const cpuName = (order: number): string => `cpu${order}`;

/** Unplugs the vCPUs that were added last. */
async function shrinkCpus(qmp: Qmp, less: number): Promise<ApplyResult> {
  const plugged = listAt(await qmp.run("query-hotpluggable-cpus"))
    .map((slot) => Number(/^\/machine\/peripheral\/cpu([0-9]+)$/.exec(textAt(slot, "qom-path"))?.[1]))
    .filter(Number.isFinite)
    .sort((a, b) => b - a);
  if (plugged.length < less) return "nextStart";
  for (const order of plugged.slice(0, less)) if (!(await unplug(qmp, cpuName(order)))) return "nextStart";
  return "live";
}

/**
 * Returns whether TCG has a free region of its code cache for each new vCPU. QEMU 7.2 aborts if a vCPU is added and no region is free.
 * There are at least as many regions as the maximum of vCPUs, of 2 MB or more. The VM must be stopped, or it would occupy more.
 */
async function hasRegions(qmp: Qmp, cpus: number, most: number): Promise<boolean> {
  const fitting = codeCache / 2;
  const regions = fitting <= most ? most : Math.min(fitting, most * 8);
  const { used, total } = await codeSize(qmp);
  return used + (cpus * total) / regions <= total;
}

/** Changes the number of vCPUs. Under TCG they can only be added. */
async function changeCpus(qmp: Qmp, state: State, wanted: number): Promise<ApplyResult> {
  const present = await cpusOf(qmp);
  if (wanted === present) return "same";
  // TCG does not release the region of an unplugged vCPU.
  if (wanted < present) return state.accelerator === "kvm" ? shrinkCpus(qmp, present - wanted) : "nextStart";
  if (wanted > state.maxCpus) return "nextStart";
  if (state.accelerator === "kvm") return addCpus(qmp, present, wanted);
  // A full cache is flushed when the guest runs on.
  for (let tries = 5; tries > 0; tries--) {
    await qmp.run("stop");
    try {
      if (await hasRegions(qmp, wanted, state.maxCpus)) return await addCpus(qmp, present, wanted);
    } finally {
      await qmp.run("cont");
    }
    await sleep(500);
  }
  return "nextStart";
}

async function addCpus(qmp: Qmp, present: number, wanted: number): Promise<ApplyResult> {
  const order = (slot: unknown) => numberAt(slot, "props", "socket-id") * 4096 + numberAt(slot, "props", "core-id");
  const free = listAt(await qmp.run("query-hotpluggable-cpus"))
    .filter((slot) => pick(slot, "qom-path") === undefined)
    // QEMU lists the highest first. Guests with a gap in the numbers hang at shutdown.
    .sort((a, b) => order(a) - order(b))
    .slice(0, wanted - present);
  for (const slot of free) {
    const props = pick(slot, "props") as object;
    await qmp.run("device_add", { driver: textAt(slot, "type"), id: cpuName(order(slot)), ...props });
  }
  return free.length === wanted - present ? "live" : "nextStart";
}

function unlessRefused(error: unknown): void {
  if (!(error instanceof QmpError)) throw error;
}

/** Milliseconds for an unplug. The guest's driver must release the device; without a driver, and in firmware, it does not. */
const unplugTimeout = 4000;

const isPlugged = async (qmp: Qmp, name: string): Promise<boolean> =>
  listAt(await qmp.run("qom-list", { path: "/machine/peripheral" })).some((entry) => textAt(entry, "name") === name);

async function unplug(qmp: Qmp, name: string): Promise<boolean> {
  let gone = false;
  const stop = qmp.onEvent(({ name: event, data }) => {
    if (event === "DEVICE_DELETED" && textAt(data, "device") === name) gone = true;
  });
  try {
    await qmp.run("device_del", { id: name });
    for (let waited = 0; !gone && waited < unplugTimeout; waited += 20) await sleep(20);
  } catch (error) {
    // "Already in the process of unplug": an earlier request is pending and may still succeed.
    unlessRefused(error);
  } finally {
    stop();
  }
  return gone || !(await isPlugged(qmp, name));
}

/** Dependencies of `changeNics`. */
interface NicOptions {
  readonly qmp: Qmp;
  readonly tag: string;
  readonly taps: Taps;
  readonly uid: number;
}

async function plug({ qmp, tag, taps, uid }: NicOptions, server: number, nic: Nic, port: string): Promise<void> {
  await taps.create(server, [nic], uid);
  const tap = { type: "tap", id: netdevOf(nic.id), ifname: pendingTapOf(tag, nic.id), script: "no", downscript: "no" };
  // A backend without its NIC is left from an interrupted call.
  await qmp.run("netdev_del", { id: netdevOf(nic.id) }).catch(unlessRefused);
  await qmp.run("netdev_add", tap);
  try {
    await qmp.run("device_add", {
      driver: "virtio-net-pci",
      netdev: netdevOf(nic.id),
      id: nicOf(nic.id),
      mac: nic.mac,
      bus: port,
    });
  } catch (error) {
    await qmp.run("netdev_del", { id: netdevOf(nic.id) }).catch(unlessRefused);
    throw error;
  }
  await taps.rename([nic]);
}

/** Plugs and unplugs NICs until the VM has those of the spec. */
async function changeNics(options: NicOptions, machine: MachineSpec): Promise<ApplyResult> {
  const { qmp, taps } = options;
  const present = await pluggedDevices(qmp);
  await taps.rename(machine.nics.filter(({ id }) => present.has(nicOf(id))));
  const wanted = new Map(machine.nics.map((nic) => [nicOf(nic.id), nic]));
  const leaving = [...present.keys()].filter((name) => !wanted.has(name));
  const coming = [...wanted].filter(([name]) => !present.has(name)).map(([, nic]) => nic);
  if (leaving.length === 0 && coming.length === 0) return "same";
  let left = false;
  for (const name of leaving) {
    if (await unplug(qmp, name)) await qmp.run("netdev_del", { id: name.replace(/^nic/, "n") }).catch(unlessRefused);
    else left = true;
  }
  const taken = new Set((await pluggedDevices(qmp)).values());
  const free = Array.from({ length: portsFor(machine) }, (_, index) => portOf(index)).filter((one) => !taken.has(one));
  for (const nic of coming) {
    const port = free.shift();
    if (port === undefined) return "nextStart";
    try {
      await plug(options, machine.id, nic, port);
    } catch (error) {
      // The VM was started with fewer ports than it would get today.
      if (error instanceof QmpError && /Bus '.*' not found/.test(error.message)) return "nextStart";
      throw error;
    }
  }
  return left ? "nextStart" : "live";
}

/** Dependencies of `changeRunning`. */
export interface ChangeOptions extends Omit<NicOptions, "qmp"> {
  readonly accelerator: Accelerator;
  readonly groups: Groups;
  readonly runs: Pick<Runs, "updateState">;
  /** Grows the disk to the size of the spec. */
  changeDisk(): Promise<ApplyResult>;
}

/** Changes sizes and NICs of a running VM to those of the spec. Resolves to what is in force now and what needs a restart. */
export async function changeRunning(options: ChangeOptions, run: Run, machine: MachineSpec): Promise<ApplyResults> {
  const { accelerator, groups, runs } = options;
  const { qmp, state } = run;
  const before = { cpus: await cpusOf(qmp), memory: await memoryOf(qmp) };
  const setLimits = (sizes: Pick<MachineSpec, "cpus" | "memory" | "share">) =>
    groups.set(run.id, groupLimits(sizes, accelerator), run.child.pid);
  // During the change it may need the larger of both sizes.
  const most = { cpus: Math.max(before.cpus, machine.cpus), memory: Math.max(before.memory, machine.memory) };
  setLimits({ ...most, share: state.share });
  const memory = await changeMemory(qmp, state, machine.memory);
  const cpus = await changeCpus(qmp, state, machine.cpus);
  // QEMU could not add all of them. Store the limit, so that later calls report it without an attempt.
  if (cpus === "nextStart" && machine.cpus > before.cpus && machine.cpus <= state.maxCpus)
    await runs.updateState(run, { maxCpus: before.cpus });
  const nics = await changeNics({ ...options, qmp }, machine);
  // Last, since a disk cannot shrink: if another change fails, the disk is unchanged.
  const disk = await options.changeDisk();
  const share = state.share === machine.share ? "same" : !groups.missing.includes("cpu") ? "live" : "nextStart";
  if (share === "live") await runs.updateState(run, { share: machine.share });
  setLimits({ cpus: await cpusOf(qmp), memory: await memoryOf(qmp), share: run.state.share });
  return { cpus, memory, disk, share, nics };
}
