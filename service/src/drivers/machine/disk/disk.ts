/**
 * The disk of a server: a folder with a whole chain of qcow2 layers, `0.qcow2` (the image), `1.qcow2`, … of which the highest is
 * written to and all others never again. A layer that several servers stand on is one file with a name in each one's folder, so the
 * file system itself counts who needs it: an image or a source may be removed at any time, and what nobody needs is gone. Backing
 * files are named by their bare name, so a chain can be moved as it is.
 *
 * A folder appears under its own name when it is complete, and a layer likewise. The highest layer is the one in force also after a
 * crash in the middle of a snapshot, for until it is written to it reads like the one below.
 */
import { constants, existsSync, readdirSync, renameSync, rmSync, statSync } from "node:fs";
import { chmod, chown, copyFile, link, open, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { syncPathNow } from "../../../base/fsync.ts";
import { CommandError, type Exec, type RunOptions } from "../../exec.ts";
import { type GuestImage, ImageError, manifestName, parseImage, printImage, readImage } from "../image/manifest.ts";
import { makeFolder } from "../qemu/folder.ts";
import { textAt } from "../qemu/qmp.ts";

export const GIB = 2 ** 30;

export const layerName = (number: number): string => `${number}.qcow2`;
/** What comes with a disk beside its layers; the last one a guest's firmware writes to. */
export const kernelName = "vmlinuz";
export const initrdName = "initrd.gz";
export const variablesName = "variables.fd";

/** Versions that are there, in order. */
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

/** The layer in force; throws when the folder holds none. */
export function topOf(disk: string): number {
  const layers = layersIn(disk);
  if (layers.length === 0) throw new Error(`${disk} holds no disk`);
  return Math.max(...layers);
}

/** What a server's disk lacks or has wrong, which no second try mends. */
export class DiskError extends Error {
  override readonly name = "DiskError";
  readonly final = true;
}

const isQcow2 = (header: Buffer, length: number): boolean => length >= 32 && header.readUInt32BE(0) === 0x514649fb;

/** Bytes of a qcow2 file as the guest sees it: header version 2 and later, offset 24, big-endian. */
export async function sizeOf(path: string): Promise<number> {
  const file = await open(path);
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(32), 0, 32, 0);
    if (!isQcow2(buffer, bytesRead)) throw new DiskError(`${path} is no qcow2 file`);
    return Number(buffer.readBigUInt64BE(24));
  } finally {
    await file.close();
  }
}

/** The name of a backing file stands in the first cluster, which has at most 2 MB, and has at most 1023 bytes. */
const lastName = 2 ** 21;
const longestName = 1023;

/** Number of the layer that this one stands on, by its header (offset of the name at 8, its length at 16); null: on none. */
async function belowOf(disk: string, layer: number): Promise<number | null> {
  const file = await open(join(disk, layerName(layer)));
  try {
    const head = Buffer.alloc(32);
    const { bytesRead } = await file.read(head, 0, head.length, 0);
    const length = head.readUInt32BE(16);
    const offset = head.readBigUInt64BE(8);
    if (!isQcow2(head, bytesRead) || length > longestName || offset > lastName)
      throw new DiskError(`layer ${layerName(layer)} of ${disk} is damaged: its header is not that of a qcow2 file`);
    if (length === 0) return null;
    const name = Buffer.alloc(Math.min(length, 64));
    await file.read(name, 0, name.length, Number(offset));
    const below = Number(/^([0-9]+)\.qcow2$/.exec(name.toString())?.[1] ?? Infinity);
    if (below >= layer)
      throw new DiskError(
        `layer ${layerName(layer)} of ${disk} is damaged: it names ${JSON.stringify(name.toString())}`,
      );
    return below;
  } finally {
    await file.close();
  }
}

/** The layer in force and all that it stands on, highest first. Others that lie beside them were merged into one of these. */
export async function chainOf(disk: string): Promise<readonly number[]> {
  const chain: number[] = [];
  for (let layer: number | null = topOf(disk); layer !== null; layer = await belowOf(disk, layer)) chain.push(layer);
  return chain;
}

/** Throws a `DiskError` unless the disk is there with all layers, and its highest is one that the server's process may write to. */
export async function checkDisk(disk: string, uid: number): Promise<void> {
  if (!existsSync(disk)) throw new DiskError(`its disk is missing: there is no ${disk}`);
  const layers = layersIn(disk);
  if (layers.length === 0) throw new DiskError(`its disk is missing: there is no layer in ${disk}`);
  const top = Math.max(...layers);
  for (let layer: number | null = top; layer !== null; ) {
    if (!layers.includes(layer))
      throw new DiskError(`its disk is damaged: layer ${layerName(layer)} of ${disk} is missing`);
    layer = await belowOf(disk, layer);
  }
  // A layer that was sealed has another above it.
  if (top === 0 || statSync(join(disk, layerName(top))).uid !== uid)
    throw new DiskError(`its disk is damaged: the highest layer of ${disk}, above ${layerName(top)}, is missing`);
}

/** Removes what was merged; resolves to the numbers. */
export async function dropMerged(disk: string): Promise<readonly number[]> {
  const chain = await chainOf(disk);
  const merged = layersIn(disk).filter((layer) => !chain.includes(layer));
  for (const layer of merged) rmSync(join(disk, layerName(layer)));
  return merged;
}

/** The highest layer below the one in force that is not this server's alone. */
export const sharedBelow = (disk: string, chain: readonly number[]): number | undefined =>
  chain.slice(1).find((layer) => layer === 0 || statSync(join(disk, layerName(layer))).nlink > 1);

/** The image that a disk was made from, by way of others perhaps. It may be gone. */
export async function originOf(disk: string): Promise<GuestImage> {
  const text = await readFile(join(disk, manifestName), "utf8");
  return parseImage(text, textAt(JSON.parse(text), "name"));
}

/** Bytes that only this folder holds on the machine's own disks. */
export function allocatedOf(folder: string): number {
  let sum = 0;
  for (const name of readdirSync(folder)) {
    const found = statSync(join(folder, name), { throwIfNoEntry: false });
    if (found?.nlink === 1) sum += found.blocks * 512;
  }
  return sum;
}

/** One more name for a file that nobody writes to any more; a copy where the file system cannot give it. */
async function share(from: string, to: string): Promise<void> {
  await chmod(from, 0o444);
  await link(from, to).catch(async (error: unknown) => {
    if (!["EXDEV", "EMLINK", "EPERM"].includes((error as NodeJS.ErrnoException).code ?? "")) throw error;
    await copyFile(from, to, constants.COPYFILE_FICLONE);
    await chmod(to, 0o444);
  });
}

/** Each of these that is there, under its name in the other folder. */
export async function shareAll(from: string, to: string, names: readonly (readonly [string, string])[]): Promise<void> {
  for (const [here, there] of names) if (existsSync(join(from, here))) await share(join(from, here), join(to, there));
}

export interface Target {
  /** From the folder of the disk. */
  readonly path: string;
  readonly format: "qcow2" | "raw";
}

export interface Disks {
  /** `images/<name>` as the lowest layers of a new disk. */
  fromImage(disk: string, image: string, bytes: number, uid: number): Promise<void>;
  /** All layers of another disk below `top`, which nobody writes to any more, as those of a new one. */
  fromDisk(disk: string, source: string, top: number, bytes: number, uid: number): Promise<void>;
  /** The same without a layer to write to: a snapshot, which nobody stands on. */
  keep(folder: string, source: string, top: number): Promise<void>;
  /** A layer above the one in force, for `uid` to write to; that one is closed when the caller says so with `seal`. */
  addLayer(disk: string, uid: number): Promise<number>;
  seal(disk: string, layer: number): Promise<void>;
  /** Nobody has the disk open. Merges the highest layers that are this server's alone, until there are `most` of all. */
  shorten(disk: string, most: number, uid: number): Promise<void>;
  /** Nobody has the disk open. Resolves to whether there was anything to do. */
  grow(disk: string, bytes: number, uid: number): Promise<boolean>;
  /** A file of the same size and without content, for `uid` to write the whole of a disk into. */
  makeTarget(path: string, bytes: number, uid: number): Promise<void>;
  /** Writes what is read at `layer` of the disk, which nobody writes to, into a target; `raw`: as the guest's bytes. */
  flatten(disk: string, layer: number, target: Target, uid: number, signal?: AbortSignal): Promise<void>;
  /** Writes a raw disk into a target, both in `folder`. */
  pack(folder: string, raw: string, target: string, uid: number, signal?: AbortSignal): Promise<void>;
}

/** UEFI's variables as they are before the first boot. */
export const emptyVariables = "/usr/share/OVMF/OVMF_VARS_4M.fd";

/** Milliseconds in which what a killed service has left behind is killed as well, and lets go of the files that it had open. */
const inheritance = 5000;

/** `images`: the folder of images, or of the one of that name. */
export function createDisks(exec: Exec, images: string | ((name: string) => string)): Disks {
  const placeOf = typeof images === "string" ? () => images : images;

  async function qemuImg(argv: readonly string[], options?: RunOptions): Promise<void> {
    for (const until = performance.now() + inheritance; ; await sleep(20)) {
      try {
        await exec.run(["qemu-img", ...argv], options);
        return;
      } catch (error) {
        const isHeld = error instanceof CommandError && /Failed to get ".*" lock/.test(error.stderr);
        if (!isHeld || performance.now() > until) throw error;
      }
    }
  }

  const convert = (cwd: string, words: readonly string[], uid: number, signal: AbortSignal | undefined) =>
    qemuImg(["convert", "-n", "--target-is-zero", ...words], {
      cwd,
      uid,
      gid: uid,
      timeout: 6 * 3600_000,
      ...(signal && { signal }),
    });

  // The size is named and the backing file is not opened: a layer that a guest's process could write to is nothing for root to read.
  const create = async (path: string, backing: string | null, bytes: number, uid: number) => {
    const below = backing === null ? [] : ["-u", "-F", "qcow2", "-b", backing];
    await qemuImg(["create", "-q", "-f", "qcow2", ...below, path, String(bytes)]);
    await chown(path, uid, uid);
    await chmod(path, 0o600);
  };

  /** Builds beside, then appears. */
  async function assemble(folder: string, fill: (part: string) => Promise<void>): Promise<void> {
    const part = `${folder}.part`;
    await rm(part, { recursive: true, force: true });
    makeFolder(part);
    await fill(part);
    await rename(part, folder);
    syncPathNow(join(folder, ".."));
  }

  /** Makes a disk of the layers up to `below`: with one above them, and variables, to write to. */
  async function crown(part: string, below: number, bytes: number, uid: number): Promise<void> {
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
    await shareAll(
      source,
      part,
      names.map((name) => [name, name]),
    );
  }

  return {
    fromImage: (disk, image, bytes, uid) =>
      assemble(disk, async (part) => {
        const place = placeOf(image);
        const found = await readImage(place, image);
        if (found === null) throw new ImageError("missing", `There is no image "${image}".`);
        const { disk, kernel = "", initrd = "" } = found.files;
        const boot =
          found.boot === "kernel"
            ? ([
                [kernel, kernelName],
                [initrd, initrdName],
              ] as const)
            : [];
        await shareAll(join(place, image), part, [[disk, layerName(0)], ...boot]);
        await writeFile(join(part, manifestName), printImage(found));
        await crown(part, 0, bytes, uid);
      }),
    fromDisk: (disk, source, top, bytes, uid) =>
      assemble(disk, async (part) => {
        await shareLayers(source, part, top);
        const variables = join(source, variablesName);
        if (existsSync(variables)) await copyFile(variables, join(part, variablesName));
        await crown(part, top - 1, bytes, uid);
      }),
    keep: (folder, source, top) => assemble(folder, (part) => shareLayers(source, part, top)),
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
      await dropMerged(disk);
      for (let chain = await chainOf(disk); chain.length > most + 1; chain = chain.slice(1)) {
        const [top = 0, next = 0] = chain;
        if (next === sharedBelow(disk, chain)) return;
        const below = join(disk, layerName(next));
        await chown(below, uid, uid);
        await chmod(below, 0o600);
        // Cut short, the upper layer still covers what it was about to give away.
        const argv = ["commit", "-q", "-d", "-f", "qcow2", layerName(top)];
        await qemuImg(argv, { cwd: disk, uid, gid: uid, timeout: 3600_000 });
        rmSync(join(disk, layerName(top)));
        syncPathNow(disk);
      }
    },
    async grow(disk, bytes, uid) {
      const name = layerName(topOf(disk));
      if ((await sizeOf(join(disk, name))) >= bytes) return false;
      await qemuImg(["resize", "-q", "-f", "qcow2", name, String(bytes)], { cwd: disk, uid, gid: uid });
      return true;
    },
    makeTarget: (path, bytes, uid) => create(path, null, bytes, uid),
    flatten: (disk, layer, { path, format }, uid, signal) =>
      convert(disk, ["-f", "qcow2", "-O", format, layerName(layer), path], uid, signal),
    pack: (folder, raw, target, uid, signal) => convert(folder, ["-f", "raw", "-O", "qcow2", raw, target], uid, signal),
  };
}

/** All but this one, and what was left half made; what was on them is nobody's any more. */
export function removeOtherVersions(root: string, version: number): void {
  for (const other of versionsOf(root).filter((one) => one !== version)) {
    const disk = join(root, `disk-${other}`);
    rmSync(`${disk}.part`, { recursive: true, force: true });
    // A disk is whole as long as it has its name.
    renameSync(disk, `${disk}.part`);
  }
  for (const name of existsSync(root) ? readdirSync(root) : [])
    if (/^disk-.*\.part$/.test(name)) rmSync(join(root, name), { recursive: true, force: true });
}
