/**
 * How images come and go in `<images>/`. An image is made in a draft, a folder `NAME.PID-BORN.part` that says which process works in
 * it, and appears whole by one rename. What a killed process left is found by that name: the next one who makes the same image takes
 * it over, with what was downloaded so far; everything else is swept. Disks of servers hold their image by links of their own, so an
 * image may go, or be followed by a newer one, at any time.
 */
import { existsSync } from "node:fs";
import { chmod, mkdir, readdir, rename, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { syncPath } from "../../../base/fsync.ts";
import type { Exec } from "../../exec.ts";
import {
  fileNames,
  type GuestImage,
  ImageError,
  isImageName,
  isMissing,
  manifestName,
  printImage,
  readImage,
} from "./manifest.ts";

const day = 86_400_000;
/** What of a draft outlives the process that made it: `download-SUM`, the beginning of a file with that checksum. */
export const downloadPrefix = "download-";

const parseDraft = (entry: string): { name: string; pid: number; born: number } | null => {
  const found = /^(.+)\.(\d+)-(\d+)\.part$/.exec(entry);
  return found ? { name: found[1] ?? "", pid: Number(found[2]), born: Number(found[3]) } : null;
};

const isDead = (exec: Exec, { pid, born }: { pid: number; born: number }): boolean => exec.find(pid)?.born !== born;

async function list(folder: string): Promise<string[]> {
  try {
    return await readdir(folder);
  } catch (error) {
    if (isMissing(error)) return [];
    throw error;
  }
}

/** Resolves to the path of an empty folder, or one with downloads only. Rejects when this process is making that image already. */
export async function openDraft(exec: Exec, images: string, name: string): Promise<string> {
  if (!isImageName(name)) throw new ImageError("unusable", `"${name}" cannot be the name of an image.`);
  await mkdir(images, { recursive: true, mode: 0o755 });
  const born = exec.find(process.pid)?.born ?? 0;
  const draft = join(images, `${name}.${process.pid}-${born}.part`);
  for (const entry of await list(images)) {
    const owner = parseDraft(entry);
    if (owner?.name !== name || !isDead(exec, owner)) continue;
    // Somebody may have been quicker, here or by sweeping.
    await rename(join(images, entry), draft).catch(() => {});
    for (const file of await list(draft))
      if (!file.startsWith(downloadPrefix)) await rm(join(draft, file), { recursive: true, force: true });
    if ((await list(draft)).length > 0) return draft;
    await rm(draft, { recursive: true, force: true });
  }
  await mkdir(draft, { mode: 0o755 });
  return draft;
}

/**
 * Makes the image in the draft appear, in place of an older version if there is one, and removes the draft. The draft must hold the
 * files that `image` names. Killed at any point, either the old image or the new one is there, whole.
 */
export async function placeImage(images: string, draft: string, image: GuestImage): Promise<void> {
  const folder = join(images, image.name);
  for (const file of fileNames(image)) {
    await chmod(join(draft, file), 0o644);
    await syncPath(join(draft, file));
  }
  const manifest = join(draft, manifestName);
  await writeFile(manifest, printImage(image), { mode: 0o644 });
  await syncPath(manifest);
  const keep = [...fileNames(image), manifestName];
  for (const file of await list(draft))
    if (!keep.includes(file)) await rm(join(draft, file), { recursive: true, force: true });
  await syncPath(draft);
  try {
    await rename(draft, folder);
  } catch (error) {
    if (!["ENOTEMPTY", "EEXIST"].includes((error as NodeJS.ErrnoException).code ?? "")) throw error;
    await placeInto(folder, draft, image);
  }
  await syncPath(images);
}

async function placeInto(folder: string, draft: string, image: GuestImage): Promise<void> {
  const present = await list(folder);
  // A name is a version: what is there under it is the same, and may be lying under the disk of a server.
  for (const file of fileNames(image)) if (!present.includes(file)) await rename(join(draft, file), join(folder, file));
  await syncPath(folder);
  await rename(join(draft, manifestName), join(folder, manifestName));
  await syncPath(folder);
  await rm(draft, { recursive: true, force: true });
}

/** Servers that were made from it go on: their disks hold it by a link of their own. An unknown one is fine. */
export async function removeImage(images: string, name: string): Promise<void> {
  if (!isImageName(name)) return;
  // Without this there is no image, whatever happens to the rest.
  await rm(join(images, name, manifestName), { force: true });
  await rm(join(images, name), { recursive: true, force: true });
}

/**
 * Removes what killed processes left (downloads, which may be resumed, a day later) and files that their image no longer names.
 * Resolves to what it removed.
 */
export async function sweepImages(exec: Exec, images: string, now: number): Promise<string[]> {
  const removed: string[] = [];
  const remove = async (path: string) => {
    await rm(path, { recursive: true, force: true });
    removed.push(path);
  };
  const entries = await list(images);
  const drafts = entries.map(parseDraft).filter((draft) => draft !== null);
  const isBeingMade = (name: string) => drafts.some((draft) => draft.name === name && !isDead(exec, draft));
  for (const entry of entries) {
    const path = join(images, entry);
    const owner = parseDraft(entry);
    if (owner) {
      if (isDead(exec, owner) && !(await holdsDownload(path, now))) await remove(path);
    } else if (isImageName(entry) && !isBeingMade(entry)) {
      const image = await readImage(images, entry).catch(() => undefined);
      if (image === null) await remove(path);
      // What cannot be read is left for a person to look at.
      if (!image) continue;
      const keep = [...fileNames(image), manifestName];
      for (const file of await list(path)) if (!keep.includes(file)) await remove(join(path, file));
    }
  }
  return removed;
}

async function holdsDownload(draft: string, now: number): Promise<boolean> {
  for (const file of await list(draft)) {
    const age = now - (await stat(join(draft, file)).catch(() => ({ mtimeMs: 0 }))).mtimeMs;
    if (file.startsWith(downloadPrefix) && age < day) return true;
  }
  return false;
}

export interface BackupPlace {
  readonly folder: string;
  /** By the name of the image's folder. */
  readonly isBackup: (name: string) => boolean;
}

/** The folder of images that has the image of this name, or gets it. A backup from before the setting stays where it was made. */
export const placeFor =
  (images: string, backups: BackupPlace | null) =>
  (name: string): string =>
    backups === null || !backups.isBackup(name) || existsSync(join(images, name)) ? images : backups.folder;
