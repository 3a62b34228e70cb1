/**
 * Changes of a running server. Each looks at what the process has, does what is missing, and says whether that was all or the rest
 * waits for the next start; so each may be repeated after it was cut short.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { GIB } from "../disk/disk.ts";
import type { ApplyResult, MachineSpec, Nic } from "../interface.ts";
import { codeCache, netdevOf, nicOf, placeOf, placesFor } from "./arguments.ts";
import type { State } from "./folder.ts";
import { codeSize, cpusOf, MIB, memoryModules, memoryOf, pluggedDevices, rootDisk } from "./monitor.ts";
import { unheldOf } from "./name.ts";
import { listAt, numberAt, pick, type Qmp, QmpError, textAt } from "./qmp.ts";
import type { Taps } from "./tap.ts";

/** QEMU shrinks a disk without a word, and with it goes what is on it: we never ask for that. */
export async function growDisk(qmp: Qmp, gb: number): Promise<ApplyResult> {
  const { node, bytes } = await rootDisk(qmp);
  if (bytes >= gb * GIB) return "same";
  await qmp.run("block_resize", { "node-name": node, size: gb * GIB });
  return "live";
}

export interface DiskLimits {
  /** Operations a second; 0: no limit. */
  readonly operations: number;
  /** MB (10^6 bytes) a second; 0: no limit. */
  readonly bandwidth: number;
}

/** Reads and writes of the guest together. Those that come too fast wait inside QEMU. */
export async function limitDisk(qmp: Qmp, { operations, bandwidth }: DiskLimits): Promise<void> {
  const none = { bps_rd: 0, bps_wr: 0, iops_rd: 0, iops_wr: 0 };
  const id = "/machine/peripheral/root/virtio-backend";
  await qmp.run("block_set_io_throttle", { id, bps: bandwidth * 1e6, iops: operations, ...none });
}

/** Modules come in multiples of this, since the guest switches memory on in blocks. */
const block = 128;
const modules = 8;

/** The most memory that can be reached without a start. */
export const reachOfMemory = (state: State, present: number, inUse: number): number =>
  inUse < modules ? Math.max(state.maxMemory, present) : present;

export async function changeMemory(qmp: Qmp, state: State, wanted: number): Promise<ApplyResult> {
  const present = await memoryOf(qmp);
  const more = wanted - present;
  if (more === 0) return "same";
  if (more < 0) return shrinkMemory(qmp, -more);
  const count = await memoryModules(qmp);
  if (more % block !== 0 || wanted > reachOfMemory(state, present, count)) return "nextStart";
  // What a call that was cut short has left is taken away again, or its name would be in the way.
  const name = `memory${count}`;
  await qmp.run("object-del", { id: name }).catch(unlessRefused);
  await qmp.run("object-add", { "qom-type": "memory-backend-ram", id: name, size: more * MIB });
  await qmp.run("device_add", { driver: "pc-dimm", id: `dimm${count}`, memdev: name });
  return "live";
}

/** The modules that came last, if they are as much as is to go. */
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

/** The processors that came last. */
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
 * Under TCG each processor translates into a region of the code cache of its own, and QEMU 7.2 ends when one is added and none is
 * free. There are at least as many as there may be processors, of 2 MB or more. The machine has to be held still: it would take more.
 */
async function hasRegions(qmp: Qmp, cpus: number, most: number): Promise<boolean> {
  const fit = codeCache / 2;
  const regions = fit <= most ? most : Math.min(fit, most * 8);
  const { used, total } = await codeSize(qmp);
  return used + (cpus * total) / regions <= total;
}

export async function changeCpus(qmp: Qmp, state: State, wanted: number): Promise<ApplyResult> {
  const present = await cpusOf(qmp);
  if (wanted === present) return "same";
  // TCG counts a processor that was taken away as one that is there still.
  if (wanted < present) return state.accelerator === "kvm" ? shrinkCpus(qmp, present - wanted) : "nextStart";
  if (wanted > state.maxCpus) return "nextStart";
  if (state.accelerator === "kvm") return addCpus(qmp, present, wanted);
  // A cache that is full is emptied when more is translated.
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
    // QEMU lists the highest first, and a gap in the numbers makes guests hang when they switch off.
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

/** A guest lets go of a device when its driver says so; one without a driver, or in its firmware, does not. */
const letGo = 4000;

const isThere = async (qmp: Qmp, name: string): Promise<boolean> =>
  listAt(await qmp.run("qom-list", { path: "/machine/peripheral" })).some((entry) => textAt(entry, "name") === name);

async function unplug(qmp: Qmp, name: string): Promise<boolean> {
  let gone = false;
  const stop = qmp.onEvent(({ name: event, data }) => {
    if (event === "DEVICE_DELETED" && textAt(data, "device") === name) gone = true;
  });
  try {
    await qmp.run("device_del", { id: name });
    for (let waited = 0; !gone && waited < letGo; waited += 20) await sleep(20);
  } catch (error) {
    // "Already in the process of unplug": the guest was asked before, and may still do it.
    unlessRefused(error);
  } finally {
    stop();
  }
  return gone || !(await isThere(qmp, name));
}

export interface NicOptions {
  readonly qmp: Qmp;
  readonly tag: string;
  readonly taps: Taps;
  readonly uid: number;
}

async function plug({ qmp, tag, taps, uid }: NicOptions, server: number, nic: Nic, place: string): Promise<void> {
  await taps.make(server, [nic], uid);
  const tap = { type: "tap", id: netdevOf(nic.id), ifname: unheldOf(tag, nic.id), script: "no", downscript: "no" };
  // One without its card is of a call that was cut short.
  await qmp.run("netdev_del", { id: netdevOf(nic.id) }).catch(unlessRefused);
  await qmp.run("netdev_add", tap);
  try {
    await qmp.run("device_add", {
      driver: "virtio-net-pci",
      netdev: netdevOf(nic.id),
      id: nicOf(nic.id),
      mac: nic.mac,
      bus: place,
    });
  } catch (error) {
    await qmp.run("netdev_del", { id: netdevOf(nic.id) }).catch(unlessRefused);
    throw error;
  }
  await taps.name([nic]);
}

export async function changeNics(options: NicOptions, machine: MachineSpec): Promise<ApplyResult> {
  const { qmp, taps } = options;
  const present = await pluggedDevices(qmp);
  await taps.name(machine.nics.filter(({ id }) => present.has(nicOf(id))));
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
  const free = Array.from({ length: placesFor(machine) }, (_, index) => placeOf(index)).filter(
    (one) => !taken.has(one),
  );
  for (const nic of coming) {
    const place = free.shift();
    if (place === undefined) return "nextStart";
    try {
      await plug(options, machine.id, nic, place);
    } catch (error) {
      // Fewer places were made at the start than there would be now.
      if (error instanceof QmpError && /Bus '.*' not found/.test(error.message)) return "nextStart";
      throw error;
    }
  }
  return left ? "nextStart" : "live";
}
