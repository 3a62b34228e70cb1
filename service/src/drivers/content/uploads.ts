/**
 * Files that clients upload, in a folder of this host. The caller stores how much it has acknowledged, and continues there; bytes after that
 * position were never acknowledged, and are removed.
 */
import { constants } from "node:fs";
import { type FileHandle, lstat, mkdir, open, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Writable } from "node:stream";
import { syncPath } from "../../base/fsync.ts";
import type { Uploads } from "./interface.ts";
import { freeBytes, requireFree, writeTo } from "./write.ts";

/** Milliseconds after which a file is removed that was not continued, for a database that does not know it. Callers end uploads earlier. */
const longest = 8 * 24 * 60 * 60_000;
/** Files of one host. */
const mostUploads = 1000;
const namePattern = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

/** Where the files are. */
export interface UploadPlaces {
  readonly folder: string;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** Returns the free bytes of the disk of a folder. Default: those of the file system. */
  readonly freeOf?: (folder: string) => Promise<number>;
}

/** A file that is being written. */
interface Writing {
  readonly closed: Promise<void>;
  stream: Writable | null;
  handle: FileHandle | null;
  /** Bytes that were written. */
  at: number;
  /** Resolves after the next write, and when the file is closed. */
  next: PromiseWithResolvers<void>;
}

const isMissing = (error: unknown): boolean => (error as NodeJS.ErrnoException).code === "ENOENT";

/** Creates the driver. */
export function createUploads({ folder, now, freeOf = freeBytes }: UploadPlaces): Uploads {
  const writing = new Map<string, Writing>();

  function pathOf(name: string): string {
    if (!namePattern.test(name)) throw new Error("the name of the upload is not valid");
    return join(folder, name);
  }
  /** Ends the stream that writes the file; resolves when the file is closed. */
  async function end(name: string): Promise<void> {
    for (let other = writing.get(name); other !== undefined; other = writing.get(name)) {
      other.stream?.destroy();
      await other.closed;
    }
  }
  /** Removes forgotten files. Throws if too many remain, without `name`. */
  async function makeSpace(name: string): Promise<void> {
    let others = 0;
    for (const entry of await readdir(folder)) {
      const found = await lstat(join(folder, entry)).catch(() => null);
      if (found === null || entry === name) continue;
      if (writing.has(entry) || now() - found.mtimeMs <= longest) others++;
      else await rm(join(folder, entry), { recursive: true, force: true });
    }
    if (others >= mostUploads) throw new Error(`${mostUploads} uploads are here already`);
  }

  return {
    async openUpload(name, from, bytes) {
      const path = pathOf(name);
      await end(name);
      const { promise: closed, resolve } = Promise.withResolvers<void>();
      const one: Writing = { closed, stream: null, handle: null, at: from, next: Promise.withResolvers() };
      writing.set(name, one);
      const release = (): void => {
        writing.delete(name);
        one.next.resolve();
        resolve();
      };
      try {
        await mkdir(folder, { recursive: true, mode: 0o700 });
        await makeSpace(name);
        const requireSpace = (more: number): Promise<void> => requireFree(folder, more, freeOf);
        await requireSpace(bytes - from);
        one.handle = await open(path, constants.O_WRONLY | constants.O_CREAT | constants.O_NOFOLLOW, 0o600);
        const { size } = await one.handle.stat();
        if (from > size) throw new Error(`the upload has ${size} bytes, less than ${from}`);
        await one.handle.truncate(from);
        await syncPath(folder);
        const wrote = (at: number): void => {
          one.at = at;
          one.next.resolve();
          one.next = Promise.withResolvers();
        };
        one.stream = writeTo(one.handle, from, bytes, { requireSpace, closed: release, wrote });
        // A stream that is ended for another one has no other listener.
        one.stream.on("error", () => {});
        return one.stream;
      } catch (error) {
        await one.handle?.close();
        release();
        throw error;
      }
    },

    async syncUpload(name, least) {
      const path = pathOf(name);
      const one = writing.get(name);
      while (one !== undefined && one.at < least && writing.get(name) === one) await one.next.promise;
      if (one?.handle && writing.get(name) === one) {
        const { at } = one;
        // If the file was closed meanwhile, it is synced below.
        const isSynced = await one.handle.sync().then(
          () => true,
          () => false,
        );
        if (isSynced) return at;
      }
      const handle = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW).catch((error: unknown) => {
        if (isMissing(error)) return null;
        throw error;
      });
      if (handle === null) return 0;
      try {
        const { size } = await handle.stat();
        await handle.sync();
        return size;
      } finally {
        await handle.close();
      }
    },

    async removeUpload(name) {
      const path = pathOf(name);
      await end(name);
      await rm(path, { force: true });
    },
  };
}
