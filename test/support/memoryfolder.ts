/** Files of tests in memory, where nothing waits for a disk. */
import { accessSync, constants, statfsSync } from "node:fs";

/** Returns the folder of files in memory if it has `bytes` bytes, else null: in containers it may be small. */
export function memoryFolder(bytes: number): string | null {
  const folder = "/dev/shm";
  try {
    accessSync(folder, constants.W_OK);
    const { blocks, bsize } = statfsSync(folder);
    return blocks * bsize >= bytes ? folder : null;
  } catch {
    return null;
  }
}
