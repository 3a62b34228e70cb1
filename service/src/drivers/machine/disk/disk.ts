/**
 * The disk of a server: a folder with a complete chain of qcow2 layers: `0.qcow2` (the image), `1.qcow2`, … Only the highest layer is
 * written to. A layer that several disks use is one file with a hard link in each folder, so the link count of the file system shows who
 * needs it: an image or a source disk can be removed at any time. Backing files have relative names, so a chain can be moved.
 *
 * A folder or layer gets its final name when it is complete. After a crash during a snapshot the highest layer is still the right one to
 * write to: an empty layer reads like the one below it.
 */
import { constants, existsSync, readdirSync, renameSync, statSync } from "node:fs";
import { chmod, chown, copyFile, link, open, readFile, rename, rm, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { syncPath, syncPathNow } from "../../../base/fsync.ts";
import { CommandError, type Exec } from "../../exec.ts";
import { keepRights } from "../../privateroot.ts";
import { type GuestImage, ImageError, manifestName, parseImage, printImage, readImage } from "../image/manifest.ts";
import { makeFolder } from "../qemu/folder.ts";
import { textAt } from "../qemu/qmp.ts";
import { createDiskTools, type DiskTools, fileLimit, type ToolUse } from "./tool.ts";

export const GIB = 2 ** 30;

/** Returns the file name of a layer. */
export const layerName = (number: number): string => `${number}.qcow2`;
/** Other files of a disk; the guest's firmware writes to `variablesName`. */
export const kernelName = "vmlinuz";
export const initrdName = "initrd.gz";
export const variablesName = "variables.fd";

/** Returns the disk versions in a server's folder, ascending. */
export function versionsOf(root: string): readonly number[] {
  const found = existsSync(root) ? readdirSync(root) : [];
  return found
    .flatMap((name) => /^disk-([1-9][0-9]*)$/.exec(name)?.[1] ?? [])
    .map(Number)
    .sort((a, b) => a - b);
}

const layersIn = (disk: string): readonly number[] =>
  readdirSync(disk)
    .flatMap((name) => /^([0-9]+)\.qcow2$/.exec(name)?.[1] ?? [])
    .map(Number);

/** Returns the number of the writable layer. Throws if the folder contains no layer. */
export function topOf(disk: string): number {
  const layers = layersIn(disk);
  if (layers.length === 0) throw new Error("the disk contains no layer");
  return Math.max(...layers);
}

/** A disk is missing or damaged; a retry will not help. */
export class DiskError extends Error {
  override readonly name = "DiskError";
  readonly final = true;
}

const isQcow2 = (header: Buffer, length: number): boolean => length >= 32 && header.readUInt32BE(0) === 0x514649fb;

/** Returns the virtual size of a qcow2 file in bytes: header version 2 and later, offset 24, big-endian. */
export async function sizeOf(path: string): Promise<number> {
  const file = await open(path);
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(32), 0, 32, 0);
    if (!isQcow2(buffer, bytesRead)) throw new DiskError(`its disk is damaged: ${basename(path)} is not a qcow2 file`);
    return Number(buffer.readBigUInt64BE(24));
  } finally {
    await file.close();
  }
}

/** The name of a backing file is in the first cluster (at most 2 MB) and has at most 1023 bytes. */
const maxNameOffset = 2 ** 21;
const maxNameLength = 1023;

/** Returns the number of the backing layer from the header (offset of the name at 8, its length at 16); null if there is none. */
async function backingLayerOf(disk: string, layer: number): Promise<number | null> {
  const file = await open(join(disk, layerName(layer)));
  try {
    const head = Buffer.alloc(32);
    const { bytesRead } = await file.read(head, 0, head.length, 0);
    const length = head.readUInt32BE(16);
    const offset = head.readBigUInt64BE(8);
    if (!isQcow2(head, bytesRead) || length > maxNameLength || offset > maxNameOffset)
      throw new DiskError(`its disk is damaged: layer ${layerName(layer)} has not the header of a qcow2 file`);
    if (length === 0) return null;
    const name = Buffer.alloc(Math.min(length, 64));
    await file.read(name, 0, name.length, Number(offset));
    const below = Number(/^([0-9]+)\.qcow2$/.exec(name.toString())?.[1] ?? Infinity);
    if (below >= layer)
      throw new DiskError(`its disk is damaged: layer ${layerName(layer)} refers to a file that is not below it`);
    return below;
  } finally {
    await file.close();
  }
}

/** Returns the writable layer and all its backing layers, highest first. Other layers in the folder were merged into one of these. */
export async function chainOf(disk: string): Promise<readonly number[]> {
  const chain: number[] = [];
  for (let layer: number | null = topOf(disk); layer !== null; layer = await backingLayerOf(disk, layer))
    chain.push(layer);
  return chain;
}

/** Throws a `DiskError` unless the disk exists with all its layers and boot files, and user `uid` owns the highest layer. */
export async function checkDisk(disk: string, uid: number): Promise<void> {
  if (!existsSync(disk)) throw new DiskError(`its disk is missing: there is no folder ${basename(disk)}`);
  const layers = layersIn(disk);
  if (layers.length === 0) throw new DiskError(`its disk is missing: there is no layer in ${basename(disk)}`);
  const top = Math.max(...layers);
  for (let layer: number | null = top; layer !== null; ) {
    if (!layers.includes(layer)) throw new DiskError(`its disk is damaged: layer ${layerName(layer)} is missing`);
    layer = await backingLayerOf(disk, layer);
  }
  // A sealed layer must have another layer above it.
  if (top === 0 || statSync(join(disk, layerName(top))).uid !== uid)
    throw new DiskError(`its disk is damaged: the highest layer, above ${layerName(top)}, is missing`);
  requireFile(disk, manifestName);
  const { boot } = await originOf(disk);
  for (const name of boot === "kernel" ? [kernelName, initrdName] : []) requireFile(disk, name);
}

function requireFile(disk: string, name: string): void {
  if (!existsSync(join(disk, name))) throw new DiskError(`its disk is damaged: file ${name} is missing`);
}

/** Removes layers that were merged into others; resolves to their numbers. */
export async function removeMergedLayers(disk: string): Promise<readonly number[]> {
  const chain = await chainOf(disk);
  const merged = layersIn(disk).filter((layer) => !chain.includes(layer));
  for (const layer of merged) await rm(join(disk, layerName(layer)), { force: true });
  return merged;
}

/** Returns the highest layer below the writable one that other disks share. */
export const sharedBelow = (disk: string, chain: readonly number[]): number | undefined =>
  chain.slice(1).find((layer) => layer === 0 || statSync(join(disk, layerName(layer))).nlink > 1);

/** Returns the manifest of the image that a disk was created from, directly or through copies. The image itself may be removed. */
export async function originOf(disk: string): Promise<GuestImage> {
  const text = await readFile(join(disk, manifestName), "utf8");
  return parseImage(text, textAt(JSON.parse(text), "name"));
}

/** Returns the bytes on the host's disks that only this folder uses. */
export function allocatedOf(folder: string): number {
  let sum = 0;
  for (const name of readdirSync(folder)) {
    const found = statSync(join(folder, name), { throwIfNoEntry: false });
    if (found?.nlink === 1) sum += found.blocks * 512;
  }
  return sum;
}

/** Shares a read-only file by a hard link, or by a copy if the file system refuses the link. */
async function linkOrCopy(from: string, to: string): Promise<void> {
  await chmod(from, 0o444);
  await link(from, to).catch(async (error: unknown) => {
    if (!["EXDEV", "EMLINK", "EPERM"].includes((error as NodeJS.ErrnoException).code ?? "")) throw error;
    await copyFile(from, to, constants.COPYFILE_FICLONE);
    await chmod(to, 0o444);
  });
}

/** Shares each of these files that exists, as pairs of the name in `from` and the name in `to`. */
export async function linkFiles(
  from: string,
  to: string,
  names: readonly (readonly [string, string])[],
): Promise<void> {
  for (const [here, there] of names)
    if (existsSync(join(from, here))) await linkOrCopy(join(from, here), join(to, there));
}

/** A file that a disk is written to. */
export interface Target {
  /** Relative to the folder that contains the disk. */
  readonly path: string;
  readonly format: "qcow2" | "raw";
}

/** Creates and changes disks of servers that are off, by `qemu-img`. */
export interface Disks {
  readonly tools: DiskTools;
  /** Creates a disk with the image as its lowest layer and at least `bytes`, writable for `uid`. */
  fromImage(disk: string, image: string, bytes: number, uid: number): Promise<void>;
  /** Creates a disk with all layers of `source` below `top`, which must be read-only. */
  fromDisk(disk: string, source: string, top: number, bytes: number, uid: number): Promise<void>;
  /** Links the same layers without a writable one: a snapshot. */
  snapshot(folder: string, source: string, top: number): Promise<void>;
  /** Adds an empty writable layer, owned by `uid`, and resolves to its number. The caller makes the previous one read-only with `seal`. */
  addLayer(disk: string, uid: number): Promise<number>;
  /** Makes a layer read-only. */
  seal(disk: string, layer: number): Promise<void>;
  /** Merges the highest unshared layers until at most `most` remain. No process may have the disk open. */
  shorten(disk: string, most: number, uid: number): Promise<void>;
  /** Grows the disk to `bytes`. Resolves to whether it was smaller. No process may have the disk open. */
  grow(disk: string, bytes: number, uid: number): Promise<boolean>;
  /** Creates an empty qcow2 file of this virtual size, owned by `uid`, as a target for `flatten` or `pack`. */
  createTarget(path: string, bytes: number, uid: number): Promise<void>;
  /** Writes the content of the disk at `layer`, which must be read-only, into a target; `raw`: as the guest's bytes. */
  flatten(disk: string, layer: number, target: Target, uid: number, signal?: AbortSignal): Promise<void>;
  /** Writes a raw disk into a qcow2 target, both in `folder`. */
  pack(folder: string, raw: string, target: string, uid: number, signal?: AbortSignal): Promise<void>;
}

/** UEFI variables as before the first boot. */
const emptyVariables = "/usr/share/OVMF/OVMF_VARS_4M.fd";

/** Milliseconds in which processes of a killed service end and release their locks on files. */
const lockTimeout = 5000;

/**
 * Creates the disk operations. `images`: the image folder, or a function that returns it for an image. `isConfined`: no program may read a
 * disk without a private root.
 */
export function createDisks(exec: Exec, images: string | ((name: string) => string), isConfined = false): Disks {
  const tools = createDiskTools(exec, isConfined);
  const imageFolderOf = typeof images === "string" ? () => images : images;

  /** Runs `qemu-img` on files of guests. */
  async function qemuImg(argv: readonly string[], use: ToolUse): Promise<void> {
    for (const until = performance.now() + lockTimeout; ; await sleep(20)) {
      try {
        await tools.run(["qemu-img", ...argv], use);
        return;
      } catch (error) {
        const isLocked = error instanceof CommandError && /Failed to get ".*" lock/.test(error.stderr);
        if (!isLocked || performance.now() > until) throw error;
      }
    }
  }

  const convert = (
    words: readonly string[],
    from: string,
    to: string,
    use: Pick<ToolUse, "folder" | "uid" | "bytes">,
    signal: AbortSignal | undefined,
  ) =>
    qemuImg(["convert", "-n", "--target-is-zero", ...words, to], {
      ...use,
      readable: [from],
      writable: [to],
      timeout: 6 * 3600_000,
      ...(signal && { signal }),
    });

  // `-u` with an explicit size keeps qemu-img from opening the backing file: it reads nothing that a guest's process could write to, so it
  // sees the files of the host. Its user owns the folder, and it needs no capability.
  const create = async (path: string, backing: string | null, bytes: number, uid: number) => {
    const below = backing === null ? [] : ["-u", "-F", "qcow2", "-b", backing];
    // What an interrupted call left may belong to the user of the server.
    await rm(path, { force: true });
    const rights = process.getuid?.() === 0 ? keepRights([]) : [];
    await exec.run([...rights, "qemu-img", "create", "-q", "-f", "qcow2", ...below, path, String(bytes)]);
    await chown(path, uid, uid);
    await chmod(path, 0o600);
  };

  /** Builds a folder under a temporary name, then renames it. After a loss of power it is complete or does not exist. */
  async function assemble(folder: string, fill: (part: string) => Promise<void>): Promise<void> {
    const part = `${folder}.part`;
    await rm(part, { recursive: true, force: true });
    makeFolder(part);
    await fill(part);
    // Also shared files: the process that wrote a layer may have been killed before it synced it.
    for (const name of readdirSync(part)) await syncPath(join(part, name));
    await syncPath(part);
    await rename(part, folder);
    // The folder of the server may be new too.
    for (const parent of [dirname(folder), dirname(dirname(folder))]) await syncPath(parent);
  }

  /** Completes a disk: adds a writable layer above `below`, and UEFI variables if needed. */
  async function addWritableLayer(part: string, below: number, bytes: number, uid: number): Promise<void> {
    if ((await originOf(part)).boot === "uefi") {
      const variables = join(part, variablesName);
      if (!existsSync(variables)) await copyFile(emptyVariables, variables);
      await chown(variables, uid, uid);
      await chmod(variables, 0o600);
    }
    const size = Math.max(bytes, await sizeOf(join(part, layerName(below))));
    await create(join(part, layerName(below + 1)), layerName(below), size, uid);
  }

  async function shareLayers(source: string, part: string, top: number): Promise<void> {
    const layers = Array.from({ length: top }, (_, number) => layerName(number));
    const names = [...layers, kernelName, initrdName, manifestName];
    await linkFiles(
      source,
      part,
      names.map((name) => [name, name]),
    );
  }

  return {
    tools,
    fromImage: (disk, image, bytes, uid) =>
      assemble(disk, async (part) => {
        const imageFolder = imageFolderOf(image);
        const found = await readImage(imageFolder, image);
        if (found === null) throw new ImageError("missing", `There is no image "${image}".`);
        const { disk, kernel = "", initrd = "" } = found.files;
        const boot =
          found.boot === "kernel"
            ? ([
                [kernel, kernelName],
                [initrd, initrdName],
              ] as const)
            : [];
        await linkFiles(join(imageFolder, image), part, [[disk, layerName(0)], ...boot]);
        await writeFile(join(part, manifestName), printImage(found));
        await addWritableLayer(part, 0, bytes, uid);
      }),
    fromDisk: (disk, source, top, bytes, uid) =>
      assemble(disk, async (part) => {
        await shareLayers(source, part, top);
        const variables = join(source, variablesName);
        if (existsSync(variables)) await copyFile(variables, join(part, variablesName));
        await addWritableLayer(part, top - 1, bytes, uid);
      }),
    snapshot: (folder, source, top) => assemble(folder, (part) => shareLayers(source, part, top)),
    async addLayer(disk, uid) {
      const top = topOf(disk);
      const path = join(disk, layerName(top + 1));
      await create(`${path}.part`, layerName(top), await sizeOf(join(disk, layerName(top))), uid);
      renameSync(`${path}.part`, path);
      syncPathNow(disk);
      return top + 1;
    },
    async seal(disk, layer) {
      await chown(join(disk, layerName(layer)), 0, 0);
      await chmod(join(disk, layerName(layer)), 0o444);
    },
    async shorten(disk, most, uid) {
      await removeMergedLayers(disk);
      for (let chain = await chainOf(disk); chain.length > most + 1; chain = chain.slice(1)) {
        const [top = 0, next = 0] = chain;
        if (next === sharedBelow(disk, chain)) return;
        const below = join(disk, layerName(next));
        await chown(below, uid, uid);
        await chmod(below, 0o600);
        // If this is interrupted, the upper layer still contains all its data.
        await qemuImg(["commit", "-q", "-d", "-f", "qcow2", layerName(top)], {
          folder: disk,
          readable: ["."],
          writable: [layerName(top), layerName(next)],
          bytes: fileLimit(await sizeOf(join(disk, layerName(top)))),
          uid,
          timeout: 3600_000,
        });
        await rm(join(disk, layerName(top)));
        syncPathNow(disk);
      }
    },
    async grow(disk, bytes, uid) {
      const name = layerName(topOf(disk));
      if ((await sizeOf(join(disk, name))) >= bytes) return false;
      await qemuImg(["resize", "-q", "-f", "qcow2", name, String(bytes)], {
        folder: disk,
        readable: ["."],
        writable: [name],
        bytes: fileLimit(bytes),
        uid,
        timeout: 10_000,
      });
      return true;
    },
    createTarget: (path, bytes, uid) => create(path, null, bytes, uid),
    async flatten(disk, layer, { path, format }, uid, signal) {
      const words = ["-f", "qcow2", "-O", format, join(basename(disk), layerName(layer))];
      const bytes = fileLimit(await sizeOf(join(disk, layerName(layer))));
      await convert(words, basename(disk), path, { folder: dirname(disk), uid, bytes }, signal);
    },
    async pack(folder, raw, target, uid, signal) {
      const bytes = fileLimit(statSync(join(folder, raw)).size);
      await convert(["-f", "raw", "-O", "qcow2", raw], raw, target, { folder, uid, bytes }, signal);
    },
  };
}

/** Removes all disks except this version, and incomplete ones. */
export async function removeOtherVersions(root: string, version: number): Promise<void> {
  for (const other of versionsOf(root).filter((one) => one !== version)) {
    const disk = join(root, `disk-${other}`);
    await rm(`${disk}.part`, { recursive: true, force: true });
    // Renamed first: a disk with its final name must be complete.
    renameSync(disk, `${disk}.part`);
  }
  for (const name of existsSync(root) ? readdirSync(root) : [])
    if (/^disk-.*\.part$/.test(name)) await rm(join(root, name), { recursive: true, force: true });
}
