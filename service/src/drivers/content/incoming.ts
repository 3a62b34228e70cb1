/**
 * Receives contents from another host. Files are stored in a folder of their own until all are there and their checksums are verified; the
 * folder then gets its final name in one step. So a content exists completely or not at all, and a transfer continues after a crash.
 */
import { createHash } from "node:crypto";
import { constants } from "node:fs";
import { type FileHandle, lstat, mkdir, open, readdir, rename, rm, utimes } from "node:fs/promises";
import { dirname, join } from "node:path";
import { syncPath } from "../../base/fsync.ts";
import type { ContentFile, ContentOf, Contents } from "./interface.ts";
import { freeBytes, requireFree, writeTo } from "./write.ts";

/** Milliseconds after which an incomplete content is removed that was not continued. */
const longest = 24 * 60 * 60_000;
/** Incomplete contents of one host. */
const mostContents = 64;
const namePattern = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}(\/[A-Za-z0-9][A-Za-z0-9._-]{0,127})?$/;

/** Where contents are received, and what may be used. */
export interface IncomingPlaces {
  /** Folder of incomplete contents, on the same disk as the others. */
  readonly folder: string;
  /** Returns the final path. */
  readonly targetOf: (of: ContentOf) => string;
  /** Rejects if the complete content in `folder/name` may not be used. */
  readonly check: (of: ContentOf, folder: string, name: string) => Promise<void>;
  readonly now: () => number;
  /** Returns the free bytes of the disk of a folder. Default: those of the file system. */
  readonly freeOf?: (folder: string) => Promise<number>;
}

interface Expected {
  readonly root: string;
  readonly path: string;
  readonly files: readonly ContentFile[];
}

const keyOf = (of: ContentOf): string => ("image" in of ? `image-${of.image}` : `copy-${of.copy}`);
const isThere = (path: string): Promise<boolean> =>
  lstat(path).then(
    () => true,
    () => false,
  );

/** Creates the receiving methods. `list` returns the files of a content that is complete. */
export function createIncoming(
  { folder, targetOf, check, now, freeOf = freeBytes }: IncomingPlaces,
  list: Contents["listFiles"],
): Pick<Contents, "expectFiles" | "writeFile" | "completeFiles"> {
  const expected = new Map<string, Expected>();
  /** Files that are being written; each promise resolves when the file is closed. */
  const busy = new Map<string, Promise<void>>();

  /** Throws unless names and positions are as `listFiles` returns them, and the disk has space. */
  async function requireSound(files: readonly ContentFile[]): Promise<void> {
    const names = new Set(files.map(({ name }) => name));
    if (files.some(({ name, number }, at) => number !== at || !namePattern.test(name) || name.endsWith(".part")))
      throw new Error("the list of files is not one that a host returns");
    if (names.size !== files.length || files.some(({ name }) => names.has(dirname(name))))
      throw new Error("the list of files has a name twice");
    await requireSpace(files.reduce((sum, { bytes }) => sum + bytes, 0));
  }
  const requireSpace = (total: number): Promise<void> => requireFree(folder, total, freeOf);
  /** Removes contents that were not continued. Throws if too many others are incomplete, besides `root`. */
  async function makeSpace(root: string): Promise<void> {
    let others = 0;
    for (const name of await readdir(folder)) {
      const path = join(folder, name);
      const isBusy = [...busy.keys()].some((file) => file.startsWith(`${path}/`));
      const isOld = !isBusy && now() - (await lstat(path)).mtimeMs > longest;
      if (isOld) await rm(path, { recursive: true, force: true });
      else if (path !== root) others++;
    }
    if (others >= mostContents) throw new Error(`${mostContents} incomplete contents are here already`);
  }
  /** Bytes of the file that are stored. */
  async function storedOf({ path }: Expected, { name, bytes }: ContentFile): Promise<number> {
    const found = await lstat(join(path, name)).catch(() => null);
    return found?.isFile() === true ? Math.min(found.size, bytes) : 0;
  }
  /** Resolves when no file is being written: the end of a connection arrives here later than at its other end. */
  async function closedAll({ path, files }: Expected): Promise<void> {
    for (const { name } of files) await busy.get(join(path, name));
  }
  const find = (of: ContentOf): Expected => {
    const found = expected.get(keyOf(of));
    if (found === undefined) throw new Error("this content is not expected: its files must be listed first");
    return found;
  };

  return {
    async expectFiles(of, files) {
      const key = keyOf(of);
      const target = targetOf(of);
      if (await isThere(target)) {
        const present = await list(of);
        const text = (all: readonly ContentFile[]) => all.map(({ name, sha256 }) => `${name} ${sha256}`).join("\n");
        if (text(present) !== text(files)) throw new Error("this host has another content of this name already");
        expected.delete(key);
        return files.map(({ bytes }) => bytes);
      }
      await mkdir(folder, { recursive: true, mode: 0o700 });
      await requireSound(files);
      // Another list of files is another content, with a folder of its own.
      const digest = createHash("sha256").update(JSON.stringify(files)).digest("hex").slice(0, 16);
      const root = join(folder, `${key}-${digest}`);
      await makeSpace(root);
      const path = join(root, "image" in of ? of.image : "copy");
      for (const name of [".", ...files.map((file) => dirname(file.name))])
        await mkdir(join(path, name), { recursive: true, mode: 0o755 });
      await utimes(root, now() / 1000, now() / 1000);
      const one = { root, path, files };
      expected.set(key, one);
      await closedAll(one);
      return Promise.all(files.map((file) => storedOf(one, file)));
    },

    async writeFile(of, number, from) {
      const one = find(of);
      const file = one.files[number];
      if (file === undefined) throw new Error(`there is no file ${number}`);
      const path = join(one.path, file.name);
      while (busy.has(path)) await busy.get(path);
      const { promise, resolve } = Promise.withResolvers<void>();
      busy.set(path, promise);
      const closed = (): void => {
        busy.delete(path);
        resolve();
      };
      let handle: FileHandle | undefined;
      try {
        handle = await open(path, constants.O_WRONLY | constants.O_CREAT | constants.O_NOFOLLOW, 0o644);
        if (from > (await handle.stat()).size) throw new Error(`file ${number} has less than ${from} bytes`);
        await handle.truncate(from);
        return writeTo(handle, from, file.bytes, { requireSpace, closed });
      } catch (error) {
        await handle?.close();
        closed();
        throw error;
      }
    },

    async completeFiles(of) {
      const target = targetOf(of);
      if (!expected.has(keyOf(of)) && (await isThere(target))) return;
      const one = find(of);
      await closedAll(one);
      for (const file of one.files) {
        const path = join(one.path, file.name);
        const sum = (await storedOf(one, file)) < file.bytes ? null : await sumOf(path);
        if (sum === null) throw new Error(`${file.name} is not complete`);
        if (sum === file.sha256) continue;
        await rm(path, { force: true });
        throw new Error(`the SHA-256 of ${file.name} is ${sum}; expected ${file.sha256}`);
      }
      await check(of, dirname(one.path), one.path.slice(dirname(one.path).length + 1));
      for (const name of new Set(one.files.map((file) => dirname(file.name)))) await syncPath(join(one.path, name));
      await mkdir(dirname(target), { recursive: true, mode: 0o755 });
      // Without this check, a rename would replace an empty folder.
      if (await isThere(target)) throw new Error("this host has a content of this name already");
      await rename(one.path, target);
      await syncPath(dirname(target));
      expected.delete(keyOf(of));
      await rm(one.root, { recursive: true, force: true });
    },
  };
}

/** Returns the checksum; a file of no bytes may not have been sent, and is created. */
async function sumOf(path: string): Promise<string> {
  const handle = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_CREAT, 0o644);
  try {
    const hash = createHash("sha256");
    for await (const part of handle.createReadStream({ autoClose: false, highWaterMark: 1 << 20 }))
      hash.update(part as Buffer);
    return hash.digest("hex");
  } finally {
    await handle.close();
  }
}
