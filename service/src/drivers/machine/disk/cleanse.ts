/**
 * A disk without what identifies its guest (see identity.ts): written out whole, for an image, or in place of all layers of a copy
 * that has not been started yet. The layers that a copy shares with its source are never changed.
 */
import { existsSync } from "node:fs";
import { chown, readFile, rename, rm, truncate, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { syncPathNow } from "../../../base/fsync.ts";
import type { Exec } from "../../exec.ts";
import type { Identity } from "../interface.ts";
import { pick, textAt } from "../qemu/qmp.ts";
import { type Disks, dropMerged, layerName, sizeOf, topOf } from "./disk.ts";
import { removeIdentity } from "./identity.ts";

export interface CleanseOptions {
  readonly exec: Exec;
  readonly disks: Disks;
  /** Of the server: what its process has written is nothing for root to read. */
  readonly uid: number;
  readonly signal: AbortSignal | undefined;
}

export interface Whole {
  readonly disk: string;
  /** The folder that `disk` and `path` are in. */
  readonly root: string;
  readonly path: string;
  readonly bytes: number;
}

export const unreadable = "its file systems are not to be read";

/** `isWritten: false`: no file system could be read, and there is nothing at `path`. */
export async function writeCleansed(
  { exec, disks, uid, signal }: CleanseOptions,
  { disk, root, path, bytes }: Whole,
): Promise<{ readonly identity: Identity; readonly isWritten: boolean }> {
  const name = "whole.raw";
  const raw = join(root, name);
  try {
    await writeFile(raw, "", { mode: 0o600 });
    await truncate(raw, bytes);
    await chown(raw, uid, uid);
    await disks.flatten(disk, topOf(disk), { path: `../${name}`, format: "raw" }, uid, signal);
    const identity = await removeIdentity({ exec, uid, signal }, raw).catch(() => {
      signal?.throwIfAborted();
      return null;
    });
    if (identity === null) return { identity: { removed: false, detail: unreadable }, isWritten: false };
    await disks.makeTarget(path, bytes, uid);
    await disks.pack(root, name, basename(path), uid, signal);
    return { identity, isWritten: true };
  } finally {
    await rm(raw, { force: true });
  }
}

/** What came of it, beside the layers: whoever asks again gets the same answer. */
const resultName = "identity.json";

/** Of a disk that no process has open. Its content goes into one layer of its own, unless no file system could be read. */
export async function cleanseDisk(options: CleanseOptions, root: string, disk: string): Promise<Identity> {
  const result = join(disk, resultName);
  if (!existsSync(disk)) throw new Error(`there is no disk ${disk}`);
  if (existsSync(result)) {
    const known: unknown = JSON.parse(await readFile(result, "utf8"));
    return { removed: pick(known, "removed") === true, detail: textAt(known, "detail") };
  }
  const top = topOf(disk);
  const path = join(root, "whole.qcow2");
  await rm(path, { force: true });
  const whole = { disk, root, path, bytes: await sizeOf(join(disk, layerName(top))) };
  const { identity, isWritten } = await writeCleansed(options, whole);
  if (isWritten) {
    await rename(path, join(disk, layerName(top + 1)));
    syncPathNow(disk);
  }
  // From here on the layers below are not of the chain. Cut short, the same is done once more to what is clean already.
  await dropMerged(disk);
  await writeFile(`${result}.part`, JSON.stringify(identity));
  await rename(`${result}.part`, result);
  syncPathNow(disk);
  return identity;
}
