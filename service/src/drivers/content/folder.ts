/** Contents in folders of this host. Only regular files count, and no symbolic link is followed: it could lead to any file of the host. */
import { createHash } from "node:crypto";
import { constants } from "node:fs";
import { type FileHandle, lstat, open, readdir } from "node:fs/promises";
import { join } from "node:path";
import { createIncoming } from "./incoming.ts";
import type { ContentFile, ContentOf, Contents } from "./interface.ts";

/** Folders below a content's folder that are listed, too. */
const levels = 1;
/** Checksums that are kept for a repeated list. */
const mostKept = 4096;
const namePattern = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;

/** Returns the names of the regular files, in order, relative to the folder. Unfinished files end in `.part`. */
async function namesIn(folder: string, depth = 0): Promise<string[]> {
  const entries = await readdir(folder, { withFileTypes: true });
  const found = await Promise.all(
    entries.map(async (entry) => {
      if (!namePattern.test(entry.name) || entry.name.endsWith(".part")) return [];
      if (entry.isFile()) return [entry.name];
      if (!entry.isDirectory() || depth >= levels) return [];
      return (await namesIn(join(folder, entry.name), depth + 1)).map((name) => `${entry.name}/${name}`);
    }),
  );
  return found.flat().sort();
}

const openSafely = (path: string): Promise<FileHandle> => open(path, constants.O_RDONLY | constants.O_NOFOLLOW);

/** Where contents are. */
export interface ContentPlaces {
  /** Folders with a folder for each image. */
  readonly images: readonly string[];
  /** Folder with the folders of servers, and `ID.copy` for each copy. */
  readonly servers: string;
  /** Folder of contents that are being received. */
  readonly incoming: string;
  /** Rejects if the image in `folder/name`, which was received, may not be used. */
  readonly checkImage: (folder: string, name: string) => Promise<void>;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** Returns the free bytes of the disk of a folder. Default: those of the file system. */
  readonly freeOf?: (folder: string) => Promise<number>;
}

/** Creates the driver. */
export function createContents({ images, servers, incoming, checkImage, now, freeOf }: ContentPlaces): Contents {
  const sums = new Map<string, string>();

  async function folderOf(of: ContentOf): Promise<string> {
    const folders = "image" in of ? images.map((place) => join(place, of.image)) : [join(servers, `${of.copy}.copy`)];
    for (const folder of folders) if ((await lstat(folder).catch(() => null))?.isDirectory() === true) return folder;
    throw new Error(
      "image" in of ? `there is no image ${of.image}` : `there is no copy of the disks of server ${of.copy}`,
    );
  }

  /** Returns size and checksum of a file. A file with the same identity, size and time is read only once. */
  async function describe(path: string): Promise<Pick<ContentFile, "bytes" | "sha256">> {
    const handle = await openSafely(path);
    try {
      const { dev, ino, size, mtimeNs } = await handle.stat({ bigint: true });
      const key = [dev, ino, size, mtimeNs].join(":");
      let sha256 = sums.get(key);
      if (sha256 === undefined) {
        const hash = createHash("sha256");
        for await (const part of handle.createReadStream({ autoClose: false, highWaterMark: 1 << 20 }))
          hash.update(part as Buffer);
        sha256 = hash.digest("hex");
        sums.set(key, sha256);
        for (const oldest of sums.keys()) if (sums.size > mostKept) sums.delete(oldest);
      }
      return { bytes: Number(size), sha256 };
    } finally {
      await handle.close();
    }
  }

  async function listFiles(of: ContentOf): Promise<readonly ContentFile[]> {
    const folder = await folderOf(of);
    const files: ContentFile[] = [];
    for (const [number, name] of (await namesIn(folder)).entries())
      files.push({ number, name, ...(await describe(join(folder, name))) });
    return files;
  }
  const receiving = createIncoming(
    {
      folder: incoming,
      targetOf: (of) => ("image" in of ? join(images[0] ?? incoming, of.image) : join(servers, `${of.copy}.copy`)),
      check: async (of, folder, name) => ("image" in of ? checkImage(folder, name) : undefined),
      now,
      ...(freeOf && { freeOf }),
    },
    listFiles,
  );

  return {
    ...receiving,
    listFiles,
    async openFile(of, file, from) {
      const folder = await folderOf(of);
      const name = (await namesIn(folder))[file];
      if (name === undefined) throw new Error(`there is no file ${file}`);
      const handle = await openSafely(join(folder, name));
      return handle.createReadStream({ start: from, highWaterMark: 1 << 18 });
    },
  };
}
