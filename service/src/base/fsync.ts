/** Syncs files and folders to the disk, so that writes, creations, renames and removals survive a loss of power. */
import { closeSync, fsyncSync, openSync } from "node:fs";
import { open } from "node:fs/promises";

/** Syncs a file or a folder. Rejects if it does not exist. */
export async function syncPath(path: string): Promise<void> {
  const handle = await open(path, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Syncs a file or a folder synchronously. Throws if it does not exist. */
export function syncPathNow(path: string): void {
  const descriptor = openSync(path, "r");
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
