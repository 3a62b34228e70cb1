/**
 * Takes copies of a server's disk at one moment, for another server or an image, while the server runs. The writable layer becomes
 * read-only and gets a new layer above it, which takes milliseconds; both disks then share the layers below. An image must be independent,
 * so it is written out of the read-only layers. A snapshot links these layers until then, so the server may change or be removed.
 */
import { existsSync, rmSync } from "node:fs";
import { chown, copyFile, rename, rm, stat } from "node:fs/promises";
import { basename, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Exec } from "../../exec.ts";
import { type DiskExport, unreadable, writeCleansed } from "../disk/cleanse.ts";
import { inDraft, placeImage } from "../image/folder.ts";
import { type GuestImage, ImageError, isImageName, readImage } from "../image/manifest.ts";
import type { Identity, ImageSize, ImageText } from "../interface.ts";
import { layerPath, nodeOf } from "../qemu/arguments.ts";
import { makeFolder } from "../qemu/folder.ts";
import { whileFrozen } from "../qemu/guestagent.ts";
import { rootDisk } from "../qemu/monitor.ts";
import { listAt, type Qmp, QmpError, textAt } from "../qemu/qmp.ts";
import type { Run } from "../qemu/run.ts";
import {
  chainOf,
  type Disks,
  GIB,
  initrdName,
  kernelName,
  layerName,
  linkFiles,
  originOf,
  removeMergedLayers,
  sharedBelow,
  sizeOf,
  topOf,
} from "./disk.ts";

/** Input of `freeze`. */
export interface FreezeOptions {
  readonly disks: Disks;
  readonly disk: string;
  readonly uid: number;
  /** Returns another number at each call, to synchronize with the guest agent. */
  readonly sync: () => number;
}

const job = "merge";

/** Waits until QEMU merges no layers; `pause`: milliseconds between two queries. */
export async function waitForMerge(qmp: Qmp, pause: number): Promise<void> {
  while (listAt(await qmp.run("query-jobs")).some((one) => textAt(one, "id") === job))
    await sleep(pause, undefined, { ref: false });
}

/**
 * Removes unused layers of a running server: one that was added for a failed snapshot (it would be mistaken for the writable one), and
 * layers that were merged. Cancels a running merge, since the disk cannot be changed during it.
 */
export async function dropUnusedLayers({ qmp, folder, state }: Run): Promise<void> {
  const disk = folder.disk(state.version);
  await qmp.run("job-cancel", { id: job }).catch(() => {});
  await waitForMerge(qmp, 20);
  const forget = (layer: number) => qmp.run("blockdev-del", { "node-name": nodeOf(layer) }).catch(() => {});
  const { layer } = await rootDisk(qmp);
  for (let top = topOf(disk); top > layer; top--) {
    await forget(top);
    rmSync(join(disk, layerName(top)));
  }
  for (const merged of await removeMergedLayers(disk)) await forget(merged);
}

/**
 * Starts to merge the unshared layers of a running server into its writable layer if there are more than `most`. Without this, daily
 * backups would add a layer each. The merge ends by itself. Interrupted, it has no effect, since QEMU switches the chain only at its end.
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

/**
 * Makes all current layers of the disk read-only and adds a new one; resolves to its number. `run`: the server's, or null if the server is
 * off.
 */
export async function freeze({ disks, disk, uid, sync }: FreezeOptions, run: Run | null): Promise<number> {
  if (run === null) {
    const top = await disks.addLayer(disk, uid);
    await disks.seal(disk, top - 1);
    return top;
  }
  const { qmp, state } = run;
  await dropUnusedLayers(run);
  const { layer, node } = await rootDisk(qmp);
  const next = await disks.addLayer(disk, uid);
  try {
    const file = { driver: "file", filename: layerPath(state.version, next) };
    const overlay = { driver: "qcow2", "node-name": nodeOf(next), discard: "unmap", file, backing: null };
    await qmp.run("blockdev-add", overlay);
    const snapshot = () => qmp.run("blockdev-snapshot", { node, overlay: nodeOf(next) });
    await whileFrozen(run, sync, snapshot);
  } catch (error) {
    // Without a response from QEMU the writable layer is unknown; the next caller of `dropUnusedLayers` queries it.
    if (error instanceof QmpError) await dropUnusedLayers(run);
    throw error;
  }
  await disks.seal(disk, layer);
  return next;
}

/** Returns the paths of the snapshot for an image. It is in the folder of servers, since hard links need one file system. */
export function snapshotOf(servers: string, name: string): { readonly root: string; readonly disk: string } {
  if (!isImageName(name)) throw new ImageError("unusable", `"${name}" cannot be the name of an image.`);
  const root = join(servers, `${name}.image`);
  return { root, disk: join(root, "disk") };
}

/** Dependencies of `makeImage`. */
export interface ImageOptions {
  readonly exec: Exec;
  readonly servers: string;
  readonly images: string;
  readonly disks: Disks;
  /** User id of the server: root must not parse what its process has written. */
  readonly uid: number;
  readonly now: number;
  readonly signal: AbortSignal | undefined;
}

/** Detail of an image whose identity was kept on purpose. */
const keptIdentity = "it was kept as it is";

/** Writes the disk into one file, without the guest's identity if it can be removed. */
async function exportDisk(
  options: ImageOptions,
  diskExport: DiskExport,
  { family }: Pick<GuestImage, "family">,
  { keepsIdentity = false }: ImageText,
): Promise<Identity> {
  const { disks, uid, signal } = options;
  const { disk, path, bytes } = diskExport;
  if (!keepsIdentity && family === "Linux") {
    const { identity, isWritten } = await writeCleansed(options, diskExport);
    if (isWritten) return identity;
  }
  await disks.createTarget(path, bytes, uid);
  await disks.flatten(disk, topOf(disk), { path: basename(path), format: "qcow2" }, uid, signal);
  const reason = family === "Linux" ? unreadable : `identity removal does not support ${family} guests`;
  return { removed: false, detail: keepsIdentity ? keptIdentity : reason };
}

/** Moves a file, also to another file system. */
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
  const identity = await exportDisk(options, { disk, root, path, bytes }, origin, about);
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
  const { kernel = "", initrd = "" } = origin.boot === "kernel" ? files : {};
  const boot = [[kernelName, kernel] as const, [initrdName, initrd] as const].filter(([, there]) => there !== "");
  await inDraft(exec, images, name, async (draft) => {
    await move(path, join(draft, files.disk));
    await chown(join(draft, files.disk), 0, 0);
    await linkFiles(disk, draft, boot);
    await placeImage(images, draft, image);
  });
  return image;
}

/** Writes the image from its snapshot, which must exist unless the image does, and removes the snapshot. */
export async function makeImage(options: ImageOptions, name: string, about: ImageText): Promise<ImageSize> {
  const { images, servers } = options;
  const image = (await readImage(images, name)) ?? (await writeImage(options, name, about));
  await rm(snapshotOf(servers, name).root, { recursive: true, force: true });
  const { blocks } = await stat(join(images, name, image.files.disk));
  const { identity = { removed: false, detail: keptIdentity } } = image;
  return { gb: image.hdd, bytes: blocks * 512, identity };
}

/** Takes the snapshot for an image unless the snapshot or the image exists. `freezeDisk` makes the layers below `top` read-only. */
export async function createSnapshot(
  { disks, servers, images }: Pick<ImageOptions, "disks" | "servers" | "images">,
  name: string,
  freezeDisk: () => Promise<{ readonly disk: string; readonly top: number }>,
): Promise<void> {
  const snapshot = snapshotOf(servers, name);
  if (existsSync(snapshot.disk) || (await readImage(images, name)) !== null) return;
  makeFolder(snapshot.root);
  const { disk, top } = await freezeDisk();
  await disks.snapshot(snapshot.disk, disk, top);
}
