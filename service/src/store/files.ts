/**
 * A file that is whole or not there: it is written under a passing name, brought to the disk, and only then given its own.
 * Backups and exports are made this way, for half a backup under a good name is worse than none.
 */
import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { open, rename, rm } from "node:fs/promises";
import { dirname } from "node:path";
import { syncPath } from "../base/fsync.ts";

/** Whether a file that is there may be replaced; nothing replaces one unasked. */
export interface PlaceOptions {
  readonly replace?: boolean;
}

/**
 * Lets `write` make the file under the name it is given, then moves it to `target`; mode 600. Rejects, with `target` as it
 * was, when `target` exists and `replace` is not set, or when `write` rejects.
 */
export async function placeFile<T>(
  target: string,
  { replace = false }: PlaceOptions,
  write: (draft: string) => Promise<T>,
): Promise<T> {
  const refuse = (): void => {
    if (!replace && existsSync(target)) throw new Error(`${target} exists: choose another name, or add --replace`);
    if (!existsSync(dirname(target))) throw new Error(`there is no folder ${dirname(target)}: make it first`);
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
