/** Secrets that live beside the database and never in it: the key that seals, and the first token. Files of 64 hexadecimal characters, mode 600. */
import { randomBytes } from "node:crypto";
import { closeSync, fsyncSync, linkSync, openSync, readFileSync, statSync, unlinkSync, writeSync } from "node:fs";
import { dirname, join } from "node:path";
import { syncPathNow } from "./fsync.ts";

export interface KeptSecret {
  readonly value: string;
  /** This call made it. */
  readonly isNew: boolean;
}

const isMissing = (error: unknown) => (error as NodeJS.ErrnoException).code === "ENOENT";

/** Reads the secret; null when there is no such file. Throws when others may read the file, or when it holds anything else. */
export function readSecret(folder: string, name: string): string | null {
  const path = join(folder, name);
  let text: string;
  try {
    const { mode } = statSync(path);
    if ((mode & 0o077) !== 0)
      throw new Error(
        `${path} has the mode ${(mode & 0o777).toString(8)}, so others than its owner may read or write it: chmod 600 ${path}`,
      );
    text = readFileSync(path, "utf8").trim();
  } catch (error) {
    if (isMissing(error)) return null;
    throw error;
  }
  if (!/^[0-9a-f]{64}$/.test(text)) throw new Error(`${path} must hold 64 lower-case hexadecimal characters.`);
  return text;
}

/**
 * Reads the secret, or makes it first. It is complete and on the disk before its name appears, so that neither a crash nor a
 * second process leaves two or half of one. Throws as `readSecret` does.
 */
export function ensureSecretFile(folder: string, name: string): KeptSecret {
  const known = readSecret(folder, name);
  if (known !== null) return { value: known, isNew: false };
  const path = join(folder, name);
  const draft = `${path}.${process.pid}`;
  const file = openSync(draft, "wx", 0o600);
  writeSync(file, `${randomBytes(32).toString("hex")}\n`);
  fsyncSync(file);
  closeSync(file);
  let isNew = true;
  try {
    linkSync(draft, path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    isNew = false;
  } finally {
    unlinkSync(draft);
  }
  syncPathNow(dirname(path));
  return { value: readSecret(folder, name) ?? "", isNew };
}
