/** Secrets in files next to the database: the sealing key and the first token. Each has 64 hexadecimal characters and mode 600. */
import { randomBytes } from "node:crypto";
import { linkSync, lstatSync, readFileSync, readlinkSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { syncPathNow } from "./fsync.ts";

/** A secret that a file of the data folder contains. */
export interface KeptSecret {
  readonly value: string;
  /** This call created it. */
  readonly isNew: boolean;
}

const isMissing = (error: unknown) => (error as NodeJS.ErrnoException).code === "ENOENT";

/** Reads the secret; returns null if the file does not exist. Throws if other users may access the file, or its content is invalid. */
export function readSecret(folder: string, name: string): string | null {
  const path = join(folder, name);
  let text: string;
  try {
    const { mode } = statSync(path);
    if ((mode & 0o077) !== 0)
      throw new Error(
        `${path} has mode ${(mode & 0o777).toString(8)}, so other users may read or write it: run chmod 600 ${path}`,
      );
    text = readFileSync(path, "utf8").trim();
  } catch (error) {
    if (isMissing(error)) return null;
    throw error;
  }
  if (!/^[0-9a-f]{64}$/.test(text)) throw new Error(`${path} must contain 64 lower-case hexadecimal characters.`);
  return text;
}

/** Returns the target of a symbolic link, which need not exist, else the path itself. */
function followLink(path: string): string {
  const isLink = lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true;
  return isLink ? resolve(dirname(path), readlinkSync(path)) : path;
}

/** Gives the file a second name. Returns false if a file has this name already. */
function linkNew(file: string, name: string): boolean {
  try {
    linkSync(file, name);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    return false;
  }
}

/**
 * Reads the secret, and creates it if it is missing. The file is complete and synced before it gets its name, so that a crash or a
 * second process cannot leave two secrets or an incomplete one. Throws as `readSecret` does.
 */
export function ensureSecretFile(folder: string, name: string): KeptSecret {
  const known = readSecret(folder, name);
  if (known !== null) return { value: known, isNew: false };
  const path = followLink(join(folder, name));
  const draft = `${path}.${process.pid}`;
  // A start that was killed left it: in a container the process always has the same PID.
  rmSync(draft, { force: true });
  let isNew: boolean;
  try {
    writeFileSync(draft, `${randomBytes(32).toString("hex")}\n`, { flag: "wx", mode: 0o600, flush: true });
    isNew = linkNew(draft, path);
  } finally {
    rmSync(draft, { force: true });
  }
  syncPathNow(dirname(path));
  return { value: readSecret(folder, name) ?? "", isNew };
}
