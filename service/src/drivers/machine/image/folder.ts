/**
 * Creates and removes images in `<images>/`. An image is built in a draft, a folder `NAME.PID-BORN.part` whose name identifies the process
 * that works in it, and is published by one rename. The draft of a killed process is reused with its downloads when the same image is built
 * again; all others are removed. Disks of servers hard-link the files of their image, so an image can be removed or replaced at any time.
 */
import { existsSync } from "node:fs";
import { chmod, lstat, mkdir, readdir, rename, rm, stat, writeFile } from "node:fs/promises";
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
/** Prefix of the files that outlive the process of a draft: `download-SUM` is the beginning of a file with that checksum. */
export const downloadPrefix = "download-";

const parseDraft = (entry: string): { name: string; pid: number; born: number } | null => {
  const found = /^(.+)\.(\d+)-(\d+)\.part$/.exec(entry);
  return found ? { name: found[1] ?? "", pid: Number(found[2]), born: Number(found[3]) } : null;
};

const hasEnded = (exec: Exec, { pid, born }: { pid: number; born: number }): boolean => exec.find(pid)?.born !== born;

async function list(folder: string): Promise<string[]> {
  try {
    return await readdir(folder);
  } catch (error) {
    if (isMissing(error)) return [];
    throw error;
  }
}

/** Opens a draft: an empty folder, or one with downloads only. Resolves to its path. Rejects if this process already builds that image. */
export async function openDraft(exec: Exec, images: string, name: string): Promise<string> {
  if (!isImageName(name)) throw new ImageError("unusable", `"${name}" is not a valid image name.`);
  await mkdir(images, { recursive: true, mode: 0o755 });
  const born = exec.find(process.pid)?.born ?? 0;
  const draft = join(images, `${name}.${process.pid}-${born}.part`);
  for (const entry of await list(images)) {
    const owner = parseDraft(entry);
    if (owner?.name !== name || !hasEnded(exec, owner)) continue;
    // Another process may have taken or removed it.
    await rename(join(images, entry), draft).catch(() => {});
    for (const file of await list(draft))
      if (!file.startsWith(downloadPrefix)) await rm(join(draft, file), { recursive: true, force: true });
    if ((await list(draft)).length > 0) return draft;
    await rm(draft, { recursive: true, force: true });
  }
  await mkdir(draft, { mode: 0o755 });
  return draft;
}

/** Runs `work` in a draft and removes the draft unless the image was published. */
export async function inDraft<Result>(
  exec: Exec,
  images: string,
  name: string,
  work: (draft: string) => Promise<Result>,
): Promise<Result> {
  const draft = await openDraft(exec, images, name);
  try {
    return await work(draft);
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
}

/**
 * Publishes the image in the draft, replacing an older version, and removes the draft. The draft must contain the files that `image` names.
 * A crash leaves either the complete old or the complete new image.
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
  // A file name contains the version, so an existing file is identical, and a disk of a server may link to it.
  for (const file of fileNames(image)) if (!present.includes(file)) await rename(join(draft, file), join(folder, file));
  await syncPath(folder);
  await rename(join(draft, manifestName), join(folder, manifestName));
  await syncPath(folder);
  await rm(draft, { recursive: true, force: true });
}

/** Removes an image. Disks that were created from it keep their links. Succeeds for an unknown name. */
export async function removeImage(images: string, name: string): Promise<void> {
  if (!isImageName(name)) return;
  const folder = join(images, name);
  // What an operator has linked here stays where it is.
  if ((await lstat(folder).catch(() => null))?.isSymbolicLink()) return rm(folder);
  // Without its manifest, an incompletely removed folder is not an image.
  await rm(join(folder, manifestName), { force: true });
  await rm(folder, { recursive: true, force: true });
}

/**
 * Removes drafts of killed processes (with downloads only after a day, since they can be resumed) and files that no manifest names.
 * Resolves to the removed paths.
 */
export async function sweepImages(exec: Exec, images: string, now: number): Promise<string[]> {
  const removed: string[] = [];
  const remove = async (path: string) => {
    await rm(path, { recursive: true, force: true });
    removed.push(path);
  };
  const entries = await list(images);
  const drafts = entries.map(parseDraft).filter((draft) => draft !== null);
  const isBeingMade = (name: string) => drafts.some((draft) => draft.name === name && !hasEnded(exec, draft));
  for (const entry of entries) {
    const path = join(images, entry);
    const owner = parseDraft(entry);
    if (owner) {
      if (hasEnded(exec, owner) && !(await hasRecentDownload(path, now))) await remove(path);
    } else if (isImageName(entry) && !isBeingMade(entry)) {
      const image = await readImage(images, entry).catch(() => undefined);
      if (image === null) await remove(path);
      // An unreadable manifest is left for the operator.
      if (!image) continue;
      const keep = [...fileNames(image), manifestName];
      for (const file of await list(path)) if (!keep.includes(file)) await remove(join(path, file));
    }
  }
  return removed;
}

async function hasRecentDownload(draft: string, now: number): Promise<boolean> {
  for (const file of await list(draft)) {
    const age = now - (await stat(join(draft, file)).catch(() => ({ mtimeMs: 0 }))).mtimeMs;
    if (file.startsWith(downloadPrefix) && age < day) return true;
  }
  return false;
}

/** The folder of backups, if it is not the image folder. */
export interface BackupPlace {
  readonly folder: string;
  /** Returns whether the image of this name is a backup. */
  readonly isBackup: (name: string) => boolean;
}

/**
 * Returns a function from the name of an image to the folder that contains it or will contain it. Backups from before the setting stay
 * where they are.
 */
export const placeFor =
  (images: string, backups: BackupPlace | null) =>
  (name: string): string =>
    backups === null || !backups.isBackup(name) || existsSync(join(images, name)) ? images : backups.folder;
