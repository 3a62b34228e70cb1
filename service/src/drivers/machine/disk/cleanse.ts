/**
 * Writes a disk without the data that identifies its guest (see identity.ts): as one file for an image, or in place of all layers of a copy
 * that was not started yet. Layers that a copy shares with its source are never changed.
 */
import { existsSync } from "node:fs";
import { chown, readFile, rename, rm, truncate, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { syncPath, syncPathNow } from "../../../base/fsync.ts";
import type { Identity } from "../interface.ts";
import { replaceFile } from "../qemu/folder.ts";
import { pick, textAt } from "../qemu/qmp.ts";
import { type Disks, layerName, removeMergedLayers, sizeOf, topOf } from "./disk.ts";
import { FileSystemError, removeIdentity } from "./identity.ts";

/** Dependencies of the functions below. */
export interface CleanseOptions {
  readonly disks: Disks;
  /** User id of the server: root must not parse what its process has written. */
  readonly uid: number;
  readonly signal: AbortSignal | undefined;
}

/** A disk, and the file `path` that its full content of `bytes` is written to. */
export interface DiskExport {
  readonly disk: string;
  /** The folder that contains `disk` and `path`. */
  readonly root: string;
  readonly path: string;
  readonly bytes: number;
}

/** Detail of an identity that could not be removed. */
export const unreadable = "its file systems cannot be read";

/**
 * Writes the disk without its guest's identity. `isWritten: false`: a file system could not be read, and nothing was written. Rejects if a
 * program failed for another reason: a copy must not keep the identity of its source because of a failure that a repetition avoids.
 */
export async function writeCleansed(
  { disks, uid, signal }: CleanseOptions,
  { disk, root, path, bytes }: DiskExport,
): Promise<{ readonly identity: Identity; readonly isWritten: boolean }> {
  const name = "whole.raw";
  const raw = join(root, name);
  try {
    await writeFile(raw, "", { mode: 0o600 });
    await truncate(raw, bytes);
    await chown(raw, uid, uid);
    await disks.flatten(disk, topOf(disk), { path: name, format: "raw" }, uid, signal);
    const identity = await removeIdentity({ tools: disks.tools, uid, signal }, raw).catch((error: unknown) => {
      if (error instanceof FileSystemError) return null;
      throw error;
    });
    if (identity === null) return { identity: { removed: false, detail: unreadable }, isWritten: false };
    await disks.createTarget(path, bytes, uid);
    await disks.pack(root, name, basename(path), uid, signal);
    return { identity, isWritten: true };
  } finally {
    await rm(raw, { force: true });
  }
}

/** File with the result beside the layers; a repeated call returns it. */
const resultName = "identity.json";

/**
 * Removes the guest's identity from a disk that no process has open. The content becomes one new layer, unless no file system could be
 * read.
 */
export async function cleanseDisk(options: CleanseOptions, root: string, disk: string): Promise<Identity> {
  const result = join(disk, resultName);
  if (!existsSync(disk)) throw new Error(`there is no disk ${basename(disk)}`);
  if (existsSync(result)) {
    const stored: unknown = JSON.parse(await readFile(result, "utf8"));
    return { removed: pick(stored, "removed") === true, detail: textAt(stored, "detail") };
  }
  const top = topOf(disk);
  const path = join(root, "whole.qcow2");
  await rm(path, { force: true });
  const target = { disk, root, path, bytes: await sizeOf(join(disk, layerName(top))) };
  const { identity, isWritten } = await writeCleansed(options, target);
  if (isWritten) {
    // qemu-img does not sync what it converts, and the layers below are removed.
    await syncPath(path);
    await rename(path, join(disk, layerName(top + 1)));
    syncPathNow(disk);
  }
  // From here on the layers below are not part of the chain. If this is interrupted, the next call cleans the new layer again.
  await removeMergedLayers(disk);
  await replaceFile(result, JSON.stringify(identity), 0o644);
  return identity;
}
