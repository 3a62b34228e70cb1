/**
 * The driver for real servers: one QEMU process, one folder and one user id for each. The actual state is read from processes, their
 * monitors and the folders. So a service that was killed finds its servers again, and no state exists only in memory.
 */
import { existsSync, readdirSync, renameSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { syncPathNow } from "../../../base/fsync.ts";
import { createKeyedQueue } from "../../../base/serialqueue.ts";
import type { Child, Exec } from "../../exec.ts";
import { createConsoles } from "../console/log.ts";
import { cleanseDisk } from "../disk/cleanse.ts";
import {
  createSnapshot,
  dropUnusedLayers,
  freeze,
  makeImage,
  mergeLayers,
  snapshotOf,
  waitForMerge,
} from "../disk/copy.ts";
import { checkDisk, createDisks, GIB, removeOtherVersions, versionsOf } from "../disk/disk.ts";
import { copyFolder, createDiskCopies, sweepServers } from "../disk/diskcopy.ts";
import { type BackupPlace, placeFor, removeImage } from "../image/folder.ts";
import { listHeldNames, readHeldImages } from "../image/inventory.ts";
import type { OperatorImages } from "../image/operatorimages.ts";
import type { Accelerator, ApplyResult, MachineDriver, MachineSpec, PowerEvent } from "../interface.ts";
import { withDevices } from "../sim/nics.ts";
import { createQueue } from "./bootqueue.ts";
import { createGroups, groupLimits } from "./cgroup.ts";
import type { Confinement } from "./confine.ts";
import { folderOf, listServers, makeFolder, makeServers, readState, rotateConsole, type State } from "./folder.ts";
import { checkOwner, writeLabel } from "./label.ts";
import { changeRunning, type DiskLimits, growDisk, limitDisk } from "./live.ts";
import { cpusOf, memoryOf, runState } from "./monitor.ts";
import { createUnresponsive, hasSpace, observeMachines, queryTimeout } from "./observer.ts";
import { endProcess, findProcesses, findRecorded, hostBoot, uidOf } from "./process.ts";
import { createRuns, type Run, requestShutdown } from "./run.ts";
import { startMachine } from "./start.ts";
import { createTaps } from "./tap.ts";

/** Settings and dependencies of the driver. */
export interface QemuOptions {
  readonly exec: Exec;
  /** Tag in the names of processes and devices of this installation; three letters or digits. */
  readonly tag: string;
  /** Parent of all server folders. On another file system than the images, each disk is a full copy of its image. */
  readonly servers: string;
  readonly images: string;
  /** Where backups are stored, if not with the other images. */
  readonly backups?: BackupPlace | null;
  readonly accelerator: Accelerator;
  readonly confinement: Confinement;
  readonly diskLimits: DiskLimits;
  /** A server runs as this user id plus its own id. No user or group of the host may have one of these ids. */
  readonly firstUid: number;
  /** Maximum number of guests that boot at once. */
  readonly boots: number;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** Returns a number from 0 to 1. */
  readonly random: () => number;
  /** Logs an error of work that has no caller. */
  readonly logError: (sentence: string, error: unknown) => void;
}

/** Milliseconds after which a guest that still boots releases its slot in the boot queue. */
const bootLimit = { kvm: 30_000, tcg: 60_000 };

/** Maximum number of layers of a disk; a read may have to search each of them. */
const maxLayers = 32;

/** The driver without the operations on operator images, which are the same for simulated servers. */
export type QemuDriver = Omit<MachineDriver, keyof OperatorImages>;

/** Opens the driver and adopts the VMs that already run. */
export async function openQemu(options: QemuOptions): Promise<QemuDriver> {
  const { exec, tag, servers, images, accelerator, firstUid, now } = options;
  makeServers(servers);
  const imageFolderOf = placeFor(images, options.backups ?? null);
  const folders = [images, ...(options.backups ? [options.backups.folder] : [])];
  const disks = createDisks(exec, imageFolderOf, "needs" in options.confinement);
  const taps = createTaps(exec, tag);
  const groups = createGroups(tag);
  const queue = createQueue(options.boots, () => performance.now());
  const locks = createKeyedQueue();
  const imageLocks = createKeyedQueue();
  const listeners = new Set<(event: PowerEvent) => void>();
  const bootSlots = new Map<Run, () => void>();
  const folder = (id: number) => folderOf(servers, id);
  const uid = (id: number) => uidOf(firstUid, id);
  const sync = () => Math.floor(options.random() * 2 ** 31);

  const publish = (event: PowerEvent): void => {
    for (const listener of listeners) {
      try {
        listener(event);
      } catch (error) {
        options.logError(`A listener for power events failed (server ${event.id}).`, error);
      }
    }
  };
  const runs = createRuns({
    exec,
    now,
    sync,
    publish,
    logError: options.logError,
    async ended(run) {
      bootSlots.get(run)?.();
      await groups.remove(run.id);
      await taps.remove(run.id);
    },
  });

  /** Adopts a process and applies the current limits, which it may have been started without. */
  async function adopt(id: number, child: Child): Promise<Run | null> {
    const run = await runs.adopt(id, folder(id), child);
    if (run === null) return null;
    const { qmp, state } = run;
    const sizes = { cpus: await cpusOf(qmp), memory: await memoryOf(qmp), share: state.share };
    groups.set(id, groupLimits(sizes, state.accelerator), child.pid);
    await limitDisk(qmp, options.diskLimits);
    return run;
  }

  /** Returns the run of a server, adopting its process if necessary; null if the server is off. */
  async function find(id: number): Promise<Run | null> {
    const run = runs.all.get(id);
    if (run !== undefined) return run;
    const recorded = findRecorded(exec, tag, firstUid, id, folder(id));
    const child = recorded ?? findProcesses(exec, tag, firstUid).get(id);
    return child === undefined ? null : adopt(id, child);
  }

  const unresponsive = createUnresponsive((id) => locks.run([id], () => find(id)));

  async function powerOff(id: number): Promise<void> {
    const run = await find(id).catch(() => null);
    if (run !== null) return runs.end(run, "order");
    const child = findProcesses(exec, tag, firstUid).get(id);
    if (child === undefined) return;
    await endProcess(exec, child);
    const state = readState(folder(id));
    if (state !== null) {
      await runs.recordExit(folder(id), state, { reason: "order", detail: "" });
      publish({ id, boot: state.boot, exit: readState(folder(id))?.exit ?? null });
    }
    await groups.remove(id);
    await taps.remove(id);
  }

  /** Releases the slot in the boot queue when the guest has booted, when it ended, or after `bootLimit`. */
  async function watchBoot(run: Run, release: () => void): Promise<void> {
    bootSlots.set(run, release);
    const until = performance.now() + bootLimit[accelerator];
    while (run.ending === null && runs.all.has(run.id) && run.log.stage() === "starting" && performance.now() < until)
      await sleep(200, undefined, { ref: false });
    bootSlots.delete(run);
    release();
  }

  /**
   * Resumes a VM that runs with the requested boot number. Resolves to whether it runs; an unresponsive VM counts as running, and `observe`
   * reports its problem.
   */
  async function resumeIfRunning(machine: MachineSpec): Promise<boolean> {
    const { id, boot } = machine;
    const run = await find(id).catch(() => undefined);
    if (run === undefined) return (readState(folder(id))?.boot ?? 0) >= boot && hasProcess(id);
    if (run === null || run.ending !== null || run.state.boot < boot) return false;
    const status = await runState(run.qmp, queryTimeout).catch(() => "unresponsive");
    if (status === "running" || (status === "unresponsive" && hasProcess(id))) return true;
    if (status === "io-error" && !hasSpace(servers))
      throw new Error(`the host has no free disk space for server ${id}`);
    if (status !== "paused" && status !== "io-error") return false;
    await run.qmp.run("cont");
    return true;
  }

  const hasProcess = (id: number): boolean => findProcesses(exec, tag, firstUid).has(id);

  async function start(machine: MachineSpec, release: () => void): Promise<void> {
    const { id } = machine;
    await powerOff(id);
    const disk = folder(id).disk(machine.disk.version);
    // From here on, an empty log belongs to this start.
    rotateConsole(folder(id));
    await checkDisk(disk, uid(id));
    await disks.shorten(disk, maxLayers, uid(id));
    await disks.grow(disk, machine.disk.gb * GIB, uid(id));
    await writeLabel(folder(id), machine);
    const { child, qmp, state } = await startMachine({ ...options, taps, groups }, folder(id), machine, uid(id));
    const run = runs.track(id, folder(id), child, qmp, state);
    watchBoot(run, release).catch((error: unknown) =>
      options.logError(`Could not watch the boot of server ${id}.`, error),
    );
    publish({ id, boot: state.boot, exit: null });
  }

  /** Merges layers of a running server and removes merged ones. The server is not locked while QEMU copies. */
  async function merge(id: number): Promise<void> {
    const run = runs.all.get(id);
    if (run === undefined) return;
    try {
      await locks.run([id], () => mergeLayers(run, maxLayers));
      await waitForMerge(run.qmp, 1000);
      await locks.run([id], () => dropUnusedLayers(run));
    } catch (error) {
      if (runs.all.get(id) === run) options.logError(`Could not merge the disk layers of server ${id}.`, error);
    }
  }

  /** Grows the disk. A disk of another version than the one in use is not changed now. */
  async function growServerDisk({ id, disk }: MachineSpec, run: Run | null): Promise<ApplyResult> {
    if (run !== null) {
      if (run.state.version !== disk.version) return "nextStart";
      // An unused layer above it would be smaller than the layer below.
      await dropUnusedLayers(run);
      return growDisk(run.qmp, disk.gb);
    }
    const path = folder(id).disk(disk.version);
    return existsSync(path) && (await disks.grow(path, disk.gb * GIB, uid(id))) ? "live" : "same";
  }

  /** Returns the path of the disk in use, or of the newest one while the server is off. */
  function currentDisk(id: number, run: Run | null): string {
    const version = run?.state.version ?? versionsOf(folder(id).root).at(-1);
    if (version === undefined) throw new Error(`server ${id} has no disk`);
    return folder(id).disk(version);
  }

  /** Adds a layer to the disk, so that all layers below `top` are read-only from now on. */
  async function freezeNow(id: number): Promise<{ disk: string; top: number }> {
    const run = await find(id);
    const disk = currentDisk(id, run);
    return { disk, top: await freeze({ disks, disk, uid: uid(id), sync }, run) };
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
          if (run !== null) await dropUnusedLayers(run);
        } catch (error) {
          options.logError(`The VM of server ${id} does not respond.`, error);
          unresponsive.retry(id);
        }
        return;
      }
      if (state === null) return;
      // A disk that is full must not prevent the start. The next one records the exit.
      await recordEnd(id, state).catch((error: unknown) =>
        options.logError(`Could not record the end of server ${id}.`, error),
      );
    };
    async function recordEnd(id: number, state: State): Promise<void> {
      // A host that shuts down ends its processes. A service that still runs then cannot know the reason of their end.
      if (state.host !== host && (state.exit === null || state.exit.reason === "died"))
        await runs.recordExit(folder(id), state, { reason: "host", detail: "the host was rebooted" });
      else if (state.exit === null)
        await runs.recordExit(folder(id), state, {
          reason: "died",
          detail: "the process ended while the service was not running",
        });
    }
    await Promise.all([...new Set([...listServers(servers), ...processes.keys()])].map(adoptOne));
  }

  return withDevices<Omit<QemuDriver, "deviceOf" | "onDevice">>(tag, options.logError, {
    ensureDisk(machine, source) {
      const { id } = machine;
      const disk = folder(id).disk(machine.disk.version);
      const from = "server" in source ? source.server : null;
      return locks.run(from === null ? [id] : [id, from], async () => {
        checkOwner(folder(id), machine);
        makeFolder(folder(id).root);
        if (!existsSync(disk)) {
          if ("image" in source) await disks.fromImage(disk, source.image, machine.disk.gb * GIB, uid(id));
          else await ensureCopy(machine, source.server, disk);
        } else await growServerDisk(machine, await find(id));
        await writeLabel(folder(id), machine);
      });
    },
    ensureIdentityRemoved: (id, version, signal) =>
      locks.run([id], async () => {
        if ((await find(id)) !== null) throw new Error(`server ${id} is running`);
        return cleanseDisk({ disks, uid: uid(id), signal }, folder(id).root, folder(id).disk(version));
      }),
    listImages: () => listHeldNames(servers, folders),
    readImages: (names) => readHeldImages(servers, folders, names),
    ensureOnlyDisk: (id, version) =>
      locks.run([id], async () => {
        const run = await find(id);
        if (run !== null && run.state.version !== version)
          throw new Error(`server ${id} runs on version ${run.state.version} of its disk`);
        if (!existsSync(folder(id).disk(version))) throw new Error(`server ${id} has no disk of version ${version}`);
        await removeOtherVersions(folder(id).root, version);
      }),
    ensureSnapshot: (id, name) =>
      locks.run([id], () => createSnapshot({ disks, servers, images: imageFolderOf(name) }, name, () => freezeNow(id))),
    ensureImage: (id, name, about, signal) =>
      imageLocks.run([id], async () => {
        const site = { exec, servers, images: imageFolderOf(name), disks, uid: uid(id), now: now(), signal };
        const size = await makeImage(site, name, about);
        void merge(id);
        return size;
      }),
    ...createDiskCopies({ servers, disks, locks, uid, sync, find, merge }),
    ensureRunning: (machine) =>
      locks.run([machine.id], async () => {
        const { id, owner } = machine;
        const isUp = await resumeIfRunning(machine);
        if (isUp) queue.quit(id);
        const slot = isUp ? null : queue.enter(id, owner);
        if (typeof slot !== "function") return slot;
        await start(machine, slot).catch((error: unknown) => {
          slot();
          throw error;
        });
        return null;
      }),
    async ensureStopped(id, how, signal) {
      queue.quit(id);
      if (how === "cut") {
        // A caller that waits for this process holds the lock; it continues when the process has ended.
        const running = runs.all.get(id);
        if (running !== undefined) await runs.end(running, "order");
        return locks.run([id], () => powerOff(id)).then(() => true);
      }
      const run = await locks.run([id], () => find(id));
      if (run === null) return true;
      return requestShutdown(run, signal);
    },
    apply: (machine) =>
      locks.run([machine.id], async () => {
        const run = await find(machine.id);
        await writeLabel(folder(machine.id), machine);
        const changeDisk = () => growServerDisk(machine, run);
        if (run !== null)
          return changeRunning({ accelerator, tag, taps, groups, runs, uid: uid(run.id), changeDisk }, run, machine);
        return { cpus: "same", memory: "same", disk: await changeDisk(), share: "same", nics: "same" };
      }),
    remove: (id) =>
      locks.run([id], async () => {
        queue.quit(id);
        await powerOff(id);
        await taps.remove(id);
        await groups.remove(id);
        const { root } = folder(id);
        const gone = `${root}.gone`;
        // A removal that failed may have left a part.
        for (const path of [copyFolder(servers, id), gone]) await rm(path, { recursive: true, force: true });
        if (!existsSync(root)) return;
        // The rename makes the removal atomic; deleting the files may take long.
        renameSync(root, gone);
        syncPathNow(servers);
        await rm(gone, { recursive: true, force: true });
      }),
    async removeImage(name) {
      await removeImage(imageFolderOf(name), name);
      await rm(snapshotOf(servers, name).root, { recursive: true, force: true });
    },
    observe: (only) => observeMachines({ ...options, runs, taps, unresponsive }, only),
    onPower(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    ...createConsoles(folder, (id) => runs.all.has(id)),
    async close() {
      await Promise.all([locks.settle(), imageLocks.settle()]);
      runs.close();
    },
  });
}
