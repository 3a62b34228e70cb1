/**
 * Writes a file atomically: under a temporary name, synced to the disk, then renamed. Backups and exports use it, so that no incomplete
 * backup has a valid name.
 */
import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { open, rename, rm } from "node:fs/promises";
import { dirname } from "node:path";
import { syncPath } from "../base/fsync.ts";

/** How `placeFile` treats an existing file. */
export interface PlaceOptions {
  /** Replaces an existing file. Default false. */
  readonly replace?: boolean;
}

/**
 * Calls `write` with a temporary path, then moves the file to `target`; mode 600. Rejects and leaves `target` unchanged when it exists
 * without `replace`, or when `write` rejects.
 */
export async function placeFile<T>(
  target: string,
  { replace = false }: PlaceOptions,
  write: (draft: string) => Promise<T>,
): Promise<T> {
  const refuse = (): void => {
    if (!replace && existsSync(target)) throw new Error(`${target} exists: choose another name, or add --replace`);
    if (!existsSync(dirname(target))) throw new Error(`folder ${dirname(target)} does not exist: create it first`);
  };
  refuse();
  const draft = `${target}.${randomBytes(4).toString("hex")}.partial`;
  try {
    await (await open(draft, "wx", 0o600)).close();
    const result = await write(draft);
    await syncPath(draft);
    refuse();
    await rename(draft, target);
    await syncPath(dirname(target));
    return result;
  } catch (error) {
    await rm(draft, { force: true });
    throw error;
  }
}
