/**
 * A server's disk as it is at one moment, for another server or for an image, while the server goes on. For a copy the layer in force
 * is closed and a new one put over it, which takes as long as a blink: what is below belongs to both from then on. An image stands
 * alone, so it is written out: by QEMU beside its work if the server runs, else out of closed layers.
 */
import { rmSync } from "node:fs";
import { chown, rename, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Exec } from "../exec.ts";
import { askAgent } from "./agent.ts";
import { layerPath, nodeOf } from "./arguments.ts";
import { type Disks, GIB, initrdName, kernelName, layerName, originOf, shareAll, sizeOf, topOf } from "./disk.ts";
import { type Folder, makeFolder } from "./folder.ts";
import { type Image, readImage } from "./image.ts";
import { openDraft, placeImage } from "./imagefolder.ts";
import { finishJob, rootDisk } from "./monitor.ts";
import type { ImageSize, ImageText } from "./port.ts";
import { QmpError } from "./qmp.ts";
import type { Run } from "./run.ts";

/** Runs `work` while the guest's file systems are still, if it has somebody who can do that. */
async function whileStill<Result>(run: Run, sync: number, work: () => Promise<Result>): Promise<Result> {
  const ask = (command: string) => askAgent(run.folder.run, sync, command, {}, 500).catch(() => null);
  if (run.log.stage() === "starting" || (await ask("guest-ping")) === null) return work();
  await ask("guest-fsfreeze-freeze");
  try {
    return await work();
  } finally {
    await ask("guest-fsfreeze-thaw");
  }
}

export interface FreezeOptions {
  readonly disks: Disks;
  readonly disk: string;
  readonly uid: number;
  /** Any number, for the guest's agent. */
  readonly sync: number;
}

/** A layer that was made for a snapshot which did not come about: nothing is in it, but it would be taken for the one in force. */
export async function dropUnused({ qmp, folder, state }: Run): Promise<void> {
  const disk = folder.disk(state.version);
  const { layer } = await rootDisk(qmp);
  for (let top = topOf(disk); top > layer; top--) {
    await qmp.run("blockdev-del", { "node-name": nodeOf(top) }).catch(() => {});
    rmSync(join(disk, layerName(top)));
  }
}

/** Nobody writes to what is below the number that this resolves to. `run`: of the server if it is on. */
export async function freeze({ disks, disk, uid, sync }: FreezeOptions, run: Run | null): Promise<number> {
  if (run === null) {
    const top = await disks.addLayer(disk, uid);
    await disks.seal(disk, top - 1);
    return top;
  }
  const { qmp, state } = run;
  await dropUnused(run);
  const { layer, node } = await rootDisk(qmp);
  const next = await disks.addLayer(disk, uid);
  try {
    const file = { driver: "file", filename: layerPath(state.version, next) };
    const overlay = { driver: "qcow2", "node-name": nodeOf(next), discard: "unmap", file, backing: null };
    await qmp.run("blockdev-add", overlay);
    await whileStill(run, sync, () => qmp.run("blockdev-snapshot", { node, overlay: nodeOf(next) }));
  } catch (error) {
    // Where QEMU did not answer, whoever asks it next finds out which layer is in force.
    if (error instanceof QmpError) await dropUnused(run);
    throw error;
  }
  await disks.seal(disk, layer);
  return next;
}

export interface ImageOptions {
  readonly exec: Exec;
  readonly images: string;
  readonly disks: Disks;
  readonly folder: Folder;
  readonly uid: number;
  readonly sync: number;
  readonly now: number;
  readonly signal: AbortSignal | undefined;
  /** Runs the work while nothing else is done to the server; `disk` is the one in use, `run` null while it is off. */
  held<Result>(work: (disk: string, run: Run | null) => Promise<Result>): Promise<Result>;
}

const job = "image";
const target = "image";
const partOf = (folder: Folder): string => join(folder.root, "image.part");

/** What an earlier service began and did not end: nobody waits for it any more. */
export async function dropImage(folder: Folder, run: Run | null): Promise<void> {
  if (run !== null) {
    await run.qmp.run("job-cancel", { id: job }).catch(() => {});
    await finishJob(run.qmp, job, () => sleep(20)).catch(() => {});
    await run.qmp.run("blockdev-del", { "node-name": target }).catch(() => {});
  }
  await rm(partOf(folder), { recursive: true, force: true });
}

/** Begins at the moment that is to be kept; what it resolves to waits for the end. */
async function begin(options: ImageOptions, disk: string, run: Run | null): Promise<() => Promise<void>> {
  const { disks, uid, folder, signal } = options;
  await dropImage(folder, run);
  makeFolder(partOf(folder));
  const path = join(partOf(folder), "disk.qcow2");
  const filename = "../image.part/disk.qcow2";
  if (run === null) {
    const layer = (await freeze({ ...options, disk }, null)) - 1;
    await disks.makeTarget(path, await sizeOf(join(disk, layerName(layer))), uid);
    return () => disks.flatten(disk, layer, filename, uid, signal);
  }
  const { qmp } = run;
  const { node, bytes } = await rootDisk(qmp);
  await disks.makeTarget(path, bytes, uid);
  const file = { driver: "file", filename };
  await qmp.run("blockdev-add", { driver: "qcow2", "node-name": target, discard: "unmap", file });
  const wish = { "job-id": job, device: node, target, sync: "full", "auto-dismiss": false };
  await whileStill(run, options.sync, () => qmp.run("blockdev-backup", wish));
  return async () => {
    await finishJob(qmp, job, () => sleep(100), signal);
    await qmp.run("blockdev-del", { "node-name": target });
  };
}

export async function makeImage(options: ImageOptions, name: string, about: ImageText): Promise<ImageSize> {
  const { exec, images, folder } = options;
  const sizeAt = async (image: Image): Promise<ImageSize> => {
    const { blocks } = await stat(join(images, name, image.files.disk));
    return { gb: image.hdd, bytes: blocks * 512 };
  };
  const present = await readImage(images, name);
  if (present !== null) return sizeAt(present);
  const { disk, finish } = await options.held(async (disk, run) => ({ disk, finish: await begin(options, disk, run) }));
  try {
    await finish();
    const path = join(partOf(folder), "disk.qcow2");
    const origin = await originOf(disk);
    const draft = await openDraft(exec, images, name);
    const version = String(options.now);
    const files = { ...origin.files, disk: `disk-${version}.qcow2` };
    const hdd = Math.ceil((await sizeOf(path)) / GIB);
    const image: Image = { ...origin, name, title: about.title, hdd, version, source: "", made: options.now, files };
    await rename(path, join(draft, files.disk));
    await chown(join(draft, files.disk), 0, 0);
    const { kernel = "", initrd = "" } = origin.boot === "kernel" ? files : {};
    const boot = [[kernelName, kernel] as const, [initrdName, initrd] as const].filter(([, there]) => there !== "");
    await shareAll(disk, draft, boot);
    await placeImage(images, draft, image);
    return await sizeAt(image);
  } finally {
    // What stays because the server itself went away, or its disks are full, is dropped by the next one.
    await options.held((_, run) => dropImage(folder, run)).catch(() => {});
  }
}
