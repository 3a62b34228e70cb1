/**
 * A server's disk as it is at one moment, for another server or for an image, while the server goes on. The layer in force is closed
 * and a new one put over it, which takes as long as a blink: what is below belongs to both from then on. An image stands alone, so
 * it is written out of the closed layers, kept by links of their own until that is done: the server may do or become what it likes.
 */
import { existsSync, rmSync } from "node:fs";
import { chown, copyFile, rename, rm, stat } from "node:fs/promises";
import { basename, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Exec } from "../../exec.ts";
import { unreadable, type Whole, writeCleansed } from "../disk/cleanse.ts";
import { openDraft, placeImage } from "../image/folder.ts";
import { type GuestImage, ImageError, isImageName, readImage } from "../image/manifest.ts";
import type { Identity, ImageSize, ImageText } from "../interface.ts";
import { layerPath, nodeOf } from "../qemu/arguments.ts";
import { makeFolder } from "../qemu/folder.ts";
import { askAgent } from "../qemu/guestagent.ts";
import { rootDisk } from "../qemu/monitor.ts";
import { listAt, type Qmp, QmpError, textAt } from "../qemu/qmp.ts";
import type { Run } from "../qemu/run.ts";
import {
  chainOf,
  type Disks,
  dropMerged,
  GIB,
  initrdName,
  kernelName,
  layerName,
  originOf,
  shareAll,
  sharedBelow,
  sizeOf,
  topOf,
} from "./disk.ts";

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

const job = "merge";

/** Resolves when no layers are being merged; `pause`: milliseconds between two looks. */
export async function untilMerged(qmp: Qmp, pause: number): Promise<void> {
  while (listAt(await qmp.run("query-jobs")).some((one) => textAt(one, "id") === job))
    await sleep(pause, undefined, { ref: false });
}

/**
 * A layer that was made for a snapshot which did not come about, of which nothing is in use but which would be taken for the one in
 * force; and layers that were merged. A merge that still goes on is called off: the disk could not be changed beside it.
 */
export async function dropUnused({ qmp, folder, state }: Run): Promise<void> {
  const disk = folder.disk(state.version);
  await qmp.run("job-cancel", { id: job }).catch(() => {});
  await untilMerged(qmp, 20);
  const forget = (layer: number) => qmp.run("blockdev-del", { "node-name": nodeOf(layer) }).catch(() => {});
  const { layer } = await rootDisk(qmp);
  for (let top = topOf(disk); top > layer; top--) {
    await forget(top);
    rmSync(join(disk, layerName(top)));
  }
  for (const merged of await dropMerged(disk)) await forget(merged);
}

/**
 * Begins to copy into the layer in force what lies between it and the layers that others share, if there are more than `most`: a
 * server that runs for months and is backed up every day would else have hundreds. Ends by itself; cut short it has done nothing,
 * for the chain is another one only at the end.
 */
export async function mergeLayers({ qmp, folder, state: { version } }: Run, most: number): Promise<void> {
  const disk = folder.disk(version);
  const chain = await chainOf(disk);
  const base = sharedBelow(disk, chain);
  if (chain.length <= most + 1 || base === undefined || base === chain[1]) return;
  const { node } = await rootDisk(qmp);
  const stay = { base: layerPath(version, base), "backing-file": layerName(base) };
  await qmp.run("block-stream", { "job-id": job, device: node, ...stay });
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

/** What is kept for an image until it is written: in the folder of servers, since layers are shared within a file system. */
export function snapshotOf(servers: string, name: string): { readonly root: string; readonly disk: string } {
  if (!isImageName(name)) throw new ImageError("unusable", `"${name}" cannot be the name of an image.`);
  const root = join(servers, `${name}.image`);
  return { root, disk: join(root, "disk") };
}

export interface ImageOptions {
  readonly exec: Exec;
  readonly servers: string;
  readonly images: string;
  readonly disks: Disks;
  /** Of the server: what its process has written is nothing for root to read. */
  readonly uid: number;
  readonly now: number;
  readonly signal: AbortSignal | undefined;
}

/** What is said of an image that has it still. */
export const keptIdentity = "it was kept as it is";

/** Writes the disk into one file, without what identifies its guest if that can be found. */
async function writeWhole(
  options: ImageOptions,
  whole: Whole,
  { family }: Pick<GuestImage, "family">,
  { keepsIdentity = false }: ImageText,
): Promise<Identity> {
  const { disks, uid, signal } = options;
  const { disk, path, bytes } = whole;
  if (!keepsIdentity && family === "Linux") {
    const { identity, isWritten } = await writeCleansed(options, whole);
    if (isWritten) return identity;
  }
  await disks.makeTarget(path, bytes, uid);
  await disks.flatten(disk, topOf(disk), { path: `../${basename(path)}`, format: "qcow2" }, uid, signal);
  const reason = family === "Linux" ? unreadable : `in a ${family} guest nothing is looked for`;
  return { removed: false, detail: keepsIdentity ? keptIdentity : reason };
}

/** Also to another file system, where it is copied. */
async function move(from: string, to: string): Promise<void> {
  await rename(from, to).catch(async (error: unknown) => {
    if ((error as NodeJS.ErrnoException).code !== "EXDEV") throw error;
    await copyFile(from, to);
    await rm(from);
  });
}

async function writeImage(options: ImageOptions, name: string, about: ImageText): Promise<GuestImage> {
  const { exec, images } = options;
  const { root, disk } = snapshotOf(options.servers, name);
  const path = join(root, "whole.qcow2");
  await rm(path, { force: true });
  const origin = await originOf(disk);
  const bytes = await sizeOf(join(disk, layerName(topOf(disk))));
  const identity = await writeWhole(options, { disk, root, path, bytes }, origin, about);
  const draft = await openDraft(exec, images, name);
  const version = String(options.now);
  const files = { ...origin.files, disk: `disk-${version}.qcow2` };
  const hdd = Math.ceil(bytes / GIB);
  const image: GuestImage = {
    ...origin,
    name,
    title: about.title,
    hdd,
    version,
    source: "",
    made: options.now,
    files,
    identity,
  };
  await move(path, join(draft, files.disk));
  await chown(join(draft, files.disk), 0, 0);
  const { kernel = "", initrd = "" } = origin.boot === "kernel" ? files : {};
  const boot = [[kernelName, kernel] as const, [initrdName, initrd] as const].filter(([, there]) => there !== "");
  await shareAll(disk, draft, boot);
  await placeImage(images, draft, image);
  return image;
}

/** The snapshot is there, or the image already. */
export async function makeImage(options: ImageOptions, name: string, about: ImageText): Promise<ImageSize> {
  const { images, servers } = options;
  const image = (await readImage(images, name)) ?? (await writeImage(options, name, about));
  await rm(snapshotOf(servers, name).root, { recursive: true, force: true });
  const { blocks } = await stat(join(images, name, image.files.disk));
  const { identity = { removed: false, detail: keptIdentity } } = image;
  return { gb: image.hdd, bytes: blocks * 512, identity };
}

/** Kept, unless it is or has become an image already. `moment` resolves to the number that nobody writes below any more. */
export async function keepSnapshot(
  { disks, servers, images }: Pick<ImageOptions, "disks" | "servers" | "images">,
  name: string,
  moment: () => Promise<{ readonly disk: string; readonly top: number }>,
): Promise<void> {
  const kept = snapshotOf(servers, name);
  if (existsSync(kept.disk) || (await readImage(images, name)) !== null) return;
  makeFolder(kept.root);
  const { disk, top } = await moment();
  await disks.keep(kept.disk, disk, top);
}
