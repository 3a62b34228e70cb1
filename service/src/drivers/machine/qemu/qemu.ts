/**
 * Servers on this machine: one QEMU process, one folder and one user number each. What runs is known from the processes and their
 * monitors, what is there from the folders, so a service that was killed finds its servers again and goes on; nothing is remembered
 * that the machine does not hold.
 */
import { existsSync, readdirSync, renameSync, rmSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { syncPathNow } from "../../../base/fsync.ts";
import { createKeyedQueue } from "../../../base/serialqueue.ts";
import type { Child, Exec } from "../../exec.ts";
import { createConsoles } from "../console/log.ts";
import { cleanseDisk } from "../disk/cleanse.ts";
import { dropUnused, freeze, keepSnapshot, makeImage, mergeLayers, snapshotOf, untilMerged } from "../disk/copy.ts";
import { checkDisk, createDisks, GIB, removeOtherVersions, versionsOf } from "../disk/disk.ts";
import { createHolds, heldFolder, sweepServers } from "../disk/diskcopy.ts";
import { type BackupPlace, placeFor, removeImage } from "../image/folder.ts";
import { listHeldImages } from "../image/inventory.ts";
import type { OperatorImages } from "../image/operatorimages.ts";
import type { Accelerator, ApplyResult, ApplyResults, MachineDriver, MachineSpec, PowerEvent } from "../interface.ts";
import { withDevices } from "../sim/nics.ts";
import { createQueue } from "./bootqueue.ts";
import { createGroups } from "./cgroup.ts";
import type { Confinement } from "./confine.ts";
import { folderOf, listServers, makeFolder, makeServers, readState, rotateConsole } from "./folder.ts";
import { checkOwner, mark } from "./label.ts";
import { changeCpus, changeMemory, changeNics, type DiskLimits, growDisk, limitDisk } from "./live.ts";
import { cpusOf, memoryOf, runState } from "./monitor.ts";
import { createSilence, hasRoom, observeMachines, patience } from "./observer.ts";
import { endProcess, findProcesses, hostBoot, uidOf } from "./process.ts";
import { askToStop, createRuns, type Run } from "./run.ts";
import { groupLimits, startMachine } from "./start.ts";
import { createTaps } from "./tap.ts";

export interface QemuOptions {
  readonly exec: Exec;
  /** Tells this installation's processes and devices from others'; three letters or digits. */
  readonly tag: string;
  /** Of all servers' folders; on one file system with the images, or each disk is a whole copy of its image. */
  readonly servers: string;
  readonly images: string;
  /** Where backups are, if not with the other images. */
  readonly backups?: BackupPlace | null;
  readonly accelerator: Accelerator;
  readonly confinement: Confinement;
  readonly diskLimits: DiskLimits;
  /** Servers run as this number plus their id. No user or group should have one of them. */
  readonly firstUid: number;
  /** How many may boot at once. */
  readonly boots: number;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** From 0 to 1. */
  readonly random: () => number;
  /** What went wrong without anybody waiting for it. */
  readonly fault: (sentence: string, error: unknown) => void;
}

/** Milliseconds after which a guest that still boots gives its place to others. */
const bootLimit = { kvm: 30_000, tcg: 60_000 };

/** Each layer is one more place to look into for a read. */
const mostLayers = 32;

/** All of a driver but what is the same for simulated servers. */
export type QemuDriver = Omit<MachineDriver, keyof OperatorImages>;

/** Finds the servers that run already, and takes them over. */
export async function openQemu(options: QemuOptions): Promise<QemuDriver> {
  const { exec, tag, servers, images, accelerator, firstUid, now } = options;
  makeServers(servers);
  const placeOf = placeFor(images, options.backups ?? null);
  const folders = [images, ...(options.backups ? [options.backups.folder] : [])];
  const disks = createDisks(exec, placeOf);
  const taps = createTaps(exec, tag);
  const groups = createGroups(tag);
  const queue = createQueue(options.boots, () => performance.now());
  const turns = createKeyedQueue();
  const imageTurns = createKeyedQueue();
  const listeners = new Set<(event: PowerEvent) => void>();
  const places = new Map<Run, () => void>();
  const folder = (id: number) => folderOf(servers, id);
  const uid = (id: number) => uidOf(firstUid, id);
  const sync = () => Math.floor(options.random() * 2 ** 31);

  const tell = (event: PowerEvent): void => {
    for (const listener of listeners) {
      try {
        listener(event);
      } catch (error) {
        options.fault("Somebody did not want to hear of a server's power.", error);
      }
    }
  };
  const runs = createRuns({
    exec,
    now,
    tell,
    fault: options.fault,
    async ended(run) {
      places.get(run)?.();
      await groups.remove(run.id);
      await taps.remove(run.id);
    },
  });

  /** Also a process that was started with fewer limits has those of today from then on. */
  async function adopt(id: number, child: Child): Promise<Run | null> {
    const run = await runs.adopt(id, folder(id), child);
    if (run === null) return null;
    const { qmp, state } = run;
    const sizes = { cpus: await cpusOf(qmp), memory: await memoryOf(qmp), share: state.share };
    groups.set(id, groupLimits(sizes, state.accelerator), child.pid);
    await limitDisk(qmp, options.diskLimits);
    return run;
  }

  /** The server's run, found again if this process has not seen it yet; null when it is off. */
  async function find(id: number): Promise<Run | null> {
    const run = runs.all.get(id);
    if (run !== undefined) return run;
    const child = findProcesses(exec, tag, firstUid).get(id);
    return child === undefined ? null : adopt(id, child);
  }

  const silent = createSilence((id) => turns.run([id], () => find(id)));

  async function cut(id: number): Promise<void> {
    const run = await find(id).catch(() => null);
    if (run !== null) return runs.end(run, "order");
    const child = findProcesses(exec, tag, firstUid).get(id);
    if (child === undefined) return;
    await endProcess(exec, child);
    const state = readState(folder(id));
    if (state !== null) {
      await runs.bury(folder(id), state, { reason: "order", detail: "" });
      tell({ id, boot: state.boot, exit: readState(folder(id))?.exit ?? null });
    }
    await groups.remove(id);
    await taps.remove(id);
  }

  /** Gives the place in the queue on when the guest stands, or nobody can say why it does not. */
  async function watchBoot(run: Run, leave: () => void): Promise<void> {
    places.set(run, leave);
    const until = performance.now() + bootLimit[accelerator];
    while (run.ending === null && runs.all.has(run.id) && run.log.stage() === "starting" && performance.now() < until)
      await sleep(200, undefined, { ref: false });
    places.delete(run);
    leave();
  }

  /** True when it runs as of the wish now. One that does not answer runs: `observe` tells of its trouble. */
  async function goOn(machine: MachineSpec): Promise<boolean> {
    const { id, boot } = machine;
    const run = await find(id).catch(() => undefined);
    if (run === undefined) return (readState(folder(id))?.boot ?? 0) >= boot && isThere(id);
    if (run === null || run.ending !== null || run.state.boot < boot) return false;
    const status = await runState(run.qmp, patience).catch(() => "silent");
    if (status === "running" || (status === "silent" && isThere(id))) return true;
    if (status === "io-error" && !hasRoom(servers)) throw new Error("the machine has no room for what its disk writes");
    if (status !== "paused" && status !== "io-error") return false;
    await run.qmp.run("cont");
    return true;
  }

  const isThere = (id: number): boolean => findProcesses(exec, tag, firstUid).has(id);

  async function start(machine: MachineSpec, leave: () => void): Promise<void> {
    const { id } = machine;
    await cut(id);
    const disk = folder(id).disk(machine.disk.version);
    // From here on it is this start that an empty log is of.
    rotateConsole(folder(id));
    await checkDisk(disk, uid(id));
    await disks.shorten(disk, mostLayers, uid(id));
    await disks.grow(disk, machine.disk.gb * GIB, uid(id));
    await mark(folder(id), machine);
    const { child, qmp, state } = await startMachine({ ...options, taps, groups }, folder(id), machine, uid(id));
    const run = runs.hold(id, folder(id), child, qmp, state);
    watchBoot(run, leave).catch((error: unknown) =>
      options.fault(`The boot of server ${id} could not be watched.`, error),
    );
    tell({ id, boot: state.boot, exit: null });
  }

  /** Of one that runs. What was merged goes at once: nobody counts it. While it takes, others may do what they like with the server. */
  async function merge(id: number): Promise<void> {
    const run = runs.all.get(id);
    if (run === undefined) return;
    try {
      await turns.run([id], () => mergeLayers(run, mostLayers));
      await untilMerged(run.qmp, 1000);
      await turns.run([id], () => dropUnused(run));
    } catch (error) {
      if (runs.all.get(id) === run) options.fault(`The layers of server ${id} could not be merged.`, error);
    }
  }

  async function changeRunning(run: Run, machine: MachineSpec): Promise<ApplyResults> {
    const { qmp, state } = run;
    const before = { cpus: await cpusOf(qmp), memory: await memoryOf(qmp) };
    const room = (sizes: Pick<MachineSpec, "cpus" | "memory" | "share">) =>
      groups.set(run.id, groupLimits(sizes, accelerator), run.child.pid);
    // While it changes it may need what it had and what it will have.
    const most = { cpus: Math.max(before.cpus, machine.cpus), memory: Math.max(before.memory, machine.memory) };
    room({ ...most, share: state.share });
    const memory = await changeMemory(qmp, state, machine.memory);
    const cpus = await changeCpus(qmp, state, machine.cpus);
    // There is no place for it now, and from here on it is said so before anything is tried.
    if (cpus === "nextStart" && machine.cpus > before.cpus && machine.cpus <= state.maxCpus)
      await runs.remember(run, { maxCpus: before.cpus });
    const nics = await changeNics({ qmp, tag, taps, uid: uid(run.id) }, machine);
    // Last, since it cannot be taken back: when any of the others fails it is as it was.
    const disk = await growNow(machine, run);
    const share = state.share === machine.share ? "same" : !groups.missing.includes("cpu") ? "live" : "nextStart";
    if (share === "live") await runs.remember(run, { share: machine.share });
    room({ cpus: await cpusOf(qmp), memory: await memoryOf(qmp), share: run.state.share });
    return { cpus, memory, disk, share, nics };
  }

  /** A disk of another version than the one that is in use is nobody's to change now. */
  async function growNow({ id, disk }: MachineSpec, run: Run | null): Promise<ApplyResult> {
    if (run !== null) {
      if (run.state.version !== disk.version) return "nextStart";
      // It would be too small for what is below it.
      await dropUnused(run);
      return growDisk(run.qmp, disk.gb);
    }
    const path = folder(id).disk(disk.version);
    return existsSync(path) && (await disks.grow(path, disk.gb * GIB, uid(id))) ? "live" : "same";
  }

  /** The one it runs on, else the newest. */
  function presentDisk(id: number, run: Run | null): string {
    const version = run?.state.version ?? versionsOf(folder(id).root).at(-1);
    if (version === undefined) throw new Error(`server ${id} has no disk`);
    return folder(id).disk(version);
  }

  /** Nobody writes to the server's disk below `top` any more. */
  async function freezeNow(id: number): Promise<{ disk: string; top: number }> {
    const run = await find(id);
    const disk = presentDisk(id, run);
    return { disk, top: await freeze({ disks, disk, uid: uid(id), sync: sync() }, run) };
  }

  async function ensureCopy(machine: MachineSpec, source: number, disk: string): Promise<void> {
    const { disk: from, top } = await freezeNow(source);
    await disks.fromDisk(disk, from, top, machine.disk.gb * GIB, uid(machine.id));
  }

  await adoptAll();
  async function adoptAll(): Promise<void> {
    for (const entry of readdirSync(servers))
      if (entry.endsWith(".gone") || entry.startsWith("trial-"))
        await rm(join(servers, entry), { recursive: true, force: true });
    sweepServers(servers);
    const processes = findProcesses(exec, tag, firstUid);
    const host = hostBoot();
    const adoptOne = async (id: number) => {
      const child = processes.get(id);
      const state = readState(folder(id));
      if (child !== undefined) {
        try {
          const run = await adopt(id, child);
          if (run !== null) await dropUnused(run);
        } catch (error) {
          options.fault(`Server ${id} runs, but does not answer.`, error);
        }
        return;
      }
      if (state === null) return;
      // A machine that goes down ends its processes, and a service that still sees that cannot know why they die.
      if (state.host !== host && (state.exit === null || state.exit.reason === "died"))
        await runs.bury(folder(id), state, { reason: "host", detail: "the machine was started anew" });
      else if (state.exit === null)
        await runs.bury(folder(id), state, { reason: "died", detail: "its end was not seen: nobody was there" });
    };
    await Promise.all([...new Set([...listServers(servers), ...processes.keys()])].map(adoptOne));
  }

  return withDevices<Omit<QemuDriver, "deviceOf" | "onDevice">>(tag, options.fault, {
    ensureDisk(machine, source) {
      const { id } = machine;
      const disk = folder(id).disk(machine.disk.version);
      const from = "server" in source ? source.server : null;
      return turns.run(from === null ? [id] : [id, from], async () => {
        checkOwner(folder(id), machine);
        makeFolder(folder(id).root);
        if (!existsSync(disk)) {
          if ("image" in source) await disks.fromImage(disk, source.image, machine.disk.gb * GIB, uid(id));
          else await ensureCopy(machine, source.server, disk);
        } else await growNow(machine, await find(id));
        await mark(folder(id), machine);
      });
    },
    ensureIdentityRemoved: (id, version, signal) =>
      turns.run([id], async () => {
        if ((await find(id)) !== null) throw new Error(`server ${id} runs`);
        return cleanseDisk({ exec, disks, uid: uid(id), signal }, folder(id).root, folder(id).disk(version));
      }),
    listImages: () => listHeldImages(servers, folders),
    ensureOnlyDisk: (id, version) =>
      turns.run([id], async () => {
        const run = await find(id);
        if (run !== null && run.state.version !== version)
          throw new Error(`server ${id} runs on version ${run.state.version} of its disk`);
        if (!existsSync(folder(id).disk(version))) throw new Error(`server ${id} has no disk of version ${version}`);
        removeOtherVersions(folder(id).root, version);
      }),
    ensureSnapshot: (id, name) =>
      turns.run([id], () => keepSnapshot({ disks, servers, images: placeOf(name) }, name, () => freezeNow(id))),
    ensureImage: (id, name, about, signal) =>
      imageTurns.run([id], async () => {
        const site = { exec, servers, images: placeOf(name), disks, uid: uid(id), now: now(), signal };
        const size = await makeImage(site, name, about);
        void merge(id);
        return size;
      }),
    ...createHolds({ servers, disks, turns, uid, sync, find, merge }),
    ensureRunning: (machine) =>
      turns.run([machine.id], async () => {
        const { id, owner } = machine;
        const isUp = await goOn(machine);
        if (isUp) queue.quit(id);
        const place = isUp ? null : queue.enter(id, owner);
        if (typeof place !== "function") return place;
        await start(machine, place).catch((error: unknown) => {
          place();
          throw error;
        });
        return null;
      }),
    async ensureStopped(id, how, signal) {
      queue.quit(id);
      if (how === "cut") {
        // Whoever waits for its process has its turn before us, and goes on when that is gone.
        const running = runs.all.get(id);
        if (running !== undefined) await runs.end(running, "order");
        return turns.run([id], () => cut(id)).then(() => true);
      }
      const run = await turns.run([id], () => find(id));
      if (run === null) return true;
      return askToStop(run, signal);
    },
    apply: (machine) =>
      turns.run([machine.id], async () => {
        const run = await find(machine.id);
        await mark(folder(machine.id), machine);
        if (run !== null) return changeRunning(run, machine);
        const disk = await growNow(machine, null);
        return { cpus: "same", memory: "same", disk, share: "same", nics: "same" };
      }),
    remove: (id) =>
      turns.run([id], async () => {
        queue.quit(id);
        await cut(id);
        await taps.remove(id);
        await groups.remove(id);
        const { root } = folder(id);
        await rm(heldFolder(servers, id), { recursive: true, force: true });
        if (!existsSync(root)) return;
        // Gone in one step, however long the rest takes.
        renameSync(root, `${root}.gone`);
        syncPathNow(servers);
        rmSync(`${root}.gone`, { recursive: true, force: true });
      }),
    async removeImage(name) {
      await removeImage(placeOf(name), name);
      await rm(snapshotOf(servers, name).root, { recursive: true, force: true });
    },
    observe: () => observeMachines({ ...options, runs, taps, silent }),
    onPower(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    ...createConsoles(folder, (id) => runs.all.has(id)),
    async close() {
      await Promise.all([turns.settle(), imageTurns.settle()]);
      runs.close();
    },
  });
}
