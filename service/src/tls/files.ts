/**
 * Files of the certificate that the service orders itself: key and certificate in one file, so that no crash separates them; the account key
 * of each authority; and the last attempt. Each has mode 600 and is complete whenever it has its name.
 */
import { createHash } from "node:crypto";
import { mkdir, open, readFile, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { syncPath } from "../base/fsync.ts";
import type { KeyPair } from "../drivers/authority/interface.ts";

/** The last attempt to order a certificate. Times in ms since 1970. */
export interface Attempt {
  /** What was ordered: another directory or other names begin without failures. */
  readonly directory: string;
  readonly names: readonly string[];
  /** Failed orders in a row. */
  readonly failures: number;
  readonly at: number;
  readonly next: number;
  /** Why it failed; "": it has not ended. */
  readonly reason: string;
}

/** The files. Reads return null for a missing or damaged file. */
export interface CertificateFiles {
  readPair(): Promise<{ readonly directory: string; readonly pair: KeyPair } | null>;
  writePair(pair: KeyPair, directory: string): Promise<void>;
  readAccountKey(directory: string): Promise<string | null>;
  writeAccountKey(directory: string, key: string): Promise<void>;
  readAttempt(): Promise<Attempt | null>;
  writeAttempt(attempt: Attempt): Promise<void>;
  removeAttempt(): Promise<void>;
}

const read = (path: string): Promise<string | null> =>
  readFile(path, "utf8").catch((error: unknown) => {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  });

/** What is done on the disk, step by step. An interface, so that tests can end a process at each step. */
export interface Disk {
  mkdir(path: string): Promise<void>;
  remove(path: string): Promise<void>;
  /** Creates a file with this content, and syncs it. */
  create(path: string, text: string): Promise<void>;
  rename(from: string, to: string): Promise<void>;
  /** Syncs a folder. */
  sync(path: string): Promise<void>;
}

/** The disk of the host. */
export const nodeDisk: Disk = {
  mkdir: async (path) => void (await mkdir(path, { recursive: true, mode: 0o700 })),
  remove: (path) => rm(path, { force: true }),
  async create(path, text) {
    const file = await open(path, "wx", 0o600);
    try {
      await file.writeFile(text);
      await file.sync();
    } finally {
      await file.close();
    }
  },
  rename,
  sync: syncPath,
};

/** Replaces the file. After a crash it has the old or the new content, and the new one if this resolved. */
async function writeTo(disk: Disk, folder: string, name: string, text: string): Promise<void> {
  await disk.mkdir(folder);
  const draft = join(folder, `${name}.new`);
  await disk.remove(draft);
  await disk.create(draft, text);
  await disk.rename(draft, join(folder, name));
  await disk.sync(folder);
}

const pairName = "certificate.pem";
const attemptName = "attempt.json";
const accountName = (directory: string): string =>
  `account-${createHash("sha256").update(directory).digest("hex").slice(0, 16)}.pem`;

/** Returns the blocks of a PEM text whose label matches. */
const blocks = (text: string, label: RegExp): string =>
  [...text.matchAll(/-----BEGIN ([A-Z ]+)-----[^-]+-----END \1-----/g)]
    .filter(([, name = ""]) => label.test(name))
    .map(([block]) => `${block}\n`)
    .join("");

/** Opens the folder, which is created by the first write. */
export function openCertificateFiles(folder: string, disk: Disk = nodeDisk): CertificateFiles {
  const write = (name: string, text: string): Promise<void> => writeTo(disk, folder, name, text);
  return {
    async readPair() {
      const text = await read(join(folder, pairName));
      if (text === null) return null;
      const pair = { certificate: blocks(text, /^CERTIFICATE$/), key: blocks(text, /PRIVATE KEY$/) };
      return { directory: /^Authority: (\S+)$/m.exec(text)?.[1] ?? "", pair };
    },
    writePair: ({ certificate, key }, directory) =>
      write(pairName, `Authority: ${directory}\n${blocks(key, /PRIVATE KEY$/)}${blocks(certificate, /^CERTIFICATE$/)}`),
    readAccountKey: (directory) => read(join(folder, accountName(directory))),
    writeAccountKey: (directory, key) => write(accountName(directory), key),
    async readAttempt() {
      const text = await read(join(folder, attemptName));
      try {
        return text === null ? null : (JSON.parse(text) as Attempt);
      } catch {
        return null;
      }
    },
    writeAttempt: (attempt) => write(attemptName, `${JSON.stringify(attempt)}\n`),
    removeAttempt: () => disk.remove(join(folder, attemptName)),
  };
}
