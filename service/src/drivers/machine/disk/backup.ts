/**
 * Copies disks and images as of one moment into a backup folder, with the layout of the data folder, so that it can be restored as it is. A
 * file that the previous copy already contains (same device, inode, size and modification time) is hard-linked instead; so is a layer that
 * several servers share. Read-only layers and images never change, so they are copied without locks.
 */
import { constants, existsSync } from "node:fs";
import { chmod, chown, copyFile, link, lstat, mkdir, readdir, readFile, utimes, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { syncPath } from "../../../base/fsync.ts";

/** The file that lists the content of a copy. */
const listName = "files.json";

/** Paths in a copy, by the key of the source file. */
type List = Readonly<Record<string, string>>;

/** Input of `copyDisks`. */
export interface CopyOptions {
  readonly dataFolder: string;
  /** Folder of daily backups, if it is outside the data folder. */
  readonly backupFolder: string | null;
  readonly target: string;
  /** The previous copy, in the same file system as `target`. */
  readonly previous: string | null;
  /** Resolves to the folder with the unchanging disks of a server, as a path or relative to the servers; null if the server has none. */
  readonly hold: (server: number) => Promise<string | null>;
}

/** Numbers of servers and images, and bytes that were copied. */
export interface CopySums {
  readonly servers: number;
  readonly images: number;
  readonly copied: number;
  /** Bytes that were linked instead of copied. */
  readonly kept: number;
}

const isMissing = (error: unknown): boolean => (error as NodeJS.ErrnoException).code === "ENOENT";

async function readList(folder: string | null): Promise<List> {
  if (folder === null) return {};
  return readFile(join(folder, listName), "utf8").then(
    (text) => JSON.parse(text) as List,
    (error: unknown) => {
      if (isMissing(error)) return {};
      throw error;
    },
  );
}

/** Returns whether an entry is temporary or belongs to a process. */
const isTemporary = (name: string): boolean =>
  /\.(part|gone|copy|image)$/.test(name) || name === "run" || name === "root";
/** Returns whether an entry of a server's folder is copied. The others are created anew at each start. */
const isCopied = (name: string): boolean => /^disk-[1-9][0-9]*$/.test(name) || name === "label.json";

/** Copies all disks and images. Throws if the target is full or a file changes during the copy; then the copy is incomplete. */
export async function copyDisks(options: CopyOptions): Promise<CopySums> {
  const { dataFolder, backupFolder, target, previous, hold } = options;
  const before = await readList(previous);
  const list: Record<string, string> = {};
  let [servers, images, copied, kept] = [0, 0, 0, 0];

  async function tryLink(key: string, to: string): Promise<boolean> {
    const here = list[key];
    const there = before[key];
    const from = here !== undefined ? join(target, here) : there !== undefined ? join(previous ?? "", there) : null;
    if (from === null) return false;
    return link(from, to).then(
      () => true,
      (error: unknown) => {
        // The old file was removed, or it has the maximum number of links.
        if (["ENOENT", "EMLINK", "EPERM", "EXDEV"].includes((error as NodeJS.ErrnoException).code ?? "")) return false;
        throw error;
      },
    );
  }

  const keyOf = ({ dev, ino, size, mtimeNs }: { dev: bigint; ino: bigint; size: bigint; mtimeNs: bigint }): string =>
    [dev, ino, size, mtimeNs].join(":");

  async function copyOne(from: string, path: string): Promise<void> {
    const found = await lstat(from, { bigint: true });
    const key = keyOf(found);
    const to = join(target, path);
    if (await tryLink(key, to)) kept += Number(found.size);
    else {
      await copyFile(from, to, constants.COPYFILE_FICLONE);
      await chown(to, Number(found.uid), Number(found.gid));
      await chmod(to, Number(found.mode) & 0o777);
      await utimes(to, Number(found.atimeMs) / 1000, Number(found.mtimeMs) / 1000);
      await syncPath(to);
      if (keyOf(await lstat(from, { bigint: true })) !== key) throw new Error(`${from} changed while it was copied`);
      copied += Number(found.size);
    }
    list[key] = path;
  }

  async function copyTree(from: string, path: string, isWanted: (name: string) => boolean): Promise<void> {
    const { mode, uid, gid } = await lstat(from);
    const to = join(target, path);
    await mkdir(to, { recursive: true });
    await chmod(to, mode & 0o777);
    await chown(to, uid, gid);
    for (const entry of await readdir(from, { withFileTypes: true })) {
      if (!isWanted(entry.name)) continue;
      const [source, next] = [join(from, entry.name), join(path, entry.name)];
      if (entry.isDirectory()) await copyTree(source, next, (name) => !isTemporary(name));
      else if (entry.isFile()) await copyOne(source, next);
    }
    await syncPath(to);
  }

  async function copyImages(from: string, path: string): Promise<void> {
    if (!existsSync(from)) return;
    await mkdir(join(target, path), { recursive: true, mode: 0o755 });
    for (const name of (await readdir(from)).filter((name) => !isTemporary(name))) {
      // An image that was deleted during the copy is incomplete; without its manifest it is ignored.
      await copyTree(join(from, name), join(path, name), (file) => !isTemporary(file)).catch((error: unknown) => {
        if (!isMissing(error) || existsSync(join(from, name))) throw error;
      });
      images++;
    }
  }

  await mkdir(target, { recursive: true, mode: 0o700 });
  await copyImages(join(dataFolder, "images"), "images");
  if (backupFolder !== null) await copyImages(backupFolder, "backups");
  const folder = join(dataFolder, "servers");
  await mkdir(join(target, "servers"), { mode: 0o700 });
  for (const id of existsSync(folder) ? await readdir(folder) : []) {
    if (!/^[1-9][0-9]*$/.test(id)) continue;
    const held = await hold(Number(id));
    if (held === null) continue;
    await copyTree(resolve(folder, held), join("servers", id), isCopied);
    servers++;
  }
  await writeFile(join(target, listName), JSON.stringify(list), { mode: 0o600 });
  await syncPath(join(target, listName));
  return { servers, images, copied, kept };
}
