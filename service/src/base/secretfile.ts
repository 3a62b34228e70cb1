/** Secrets that live beside the database and never in it: the key that seals, and the first token. Files of 64 hexadecimal characters, mode 600. */
import { randomBytes } from "node:crypto";
import { closeSync, fsyncSync, linkSync, openSync, readFileSync, unlinkSync, writeSync } from "node:fs";
import { dirname, join } from "node:path";

export interface KeptSecret {
  readonly value: string;
  /** This call made it. */
  readonly isNew: boolean;
}

/**
 * Reads the secret, or makes it first. It is complete and on the disk before its name appears, so that neither a crash nor a
 * second process leaves two or half of one. Throws when the file holds anything else.
 */
export function keepSecret(folder: string, name: string): KeptSecret {
  const path = join(folder, name);
  const read = (): string => {
    const text = readFileSync(path, "utf8").trim();
    if (!/^[0-9a-f]{64}$/.test(text)) throw new Error(`${path} must hold 64 lower-case hexadecimal characters.`);
    return text;
  };
  const isMissing = (error: unknown) => (error as NodeJS.ErrnoException).code === "ENOENT";
  try {
    return { value: read(), isNew: false };
  } catch (error) {
    if (!isMissing(error)) throw error;
  }
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
  syncFolder(dirname(path));
  return { value: read(), isNew };
}

function syncFolder(folder: string): void {
  const handle = openSync(folder, "r");
  fsyncSync(handle);
  closeSync(handle);
}
