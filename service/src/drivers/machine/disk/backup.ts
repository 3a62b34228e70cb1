/**
 * A copy of disks and images as they were at one moment, laid out as in the data folder so that it can be put back as it is. What is
 * in the copy before this one already (by device, inode, size and time of the last change) gets one more name instead of being copied;
 * so does a layer that several servers share. Closed layers and images never change, so copying them needs no care.
 */
import { constants, existsSync } from "node:fs";
import { chmod, chown, copyFile, link, lstat, mkdir, readdir, readFile, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { syncPath } from "../../../base/fsync.ts";

export const listName = "files.json";

/** Paths in a copy by what they are copies of. */
type List = Readonly<Record<string, string>>;

export interface CopyOptions {
  readonly dataFolder: string;
  /** Where daily backups are, if that is not the data folder. */
  readonly backupFolder: string | null;
  readonly target: string;
  /** The copy before, in the same file system as `target`. */
  readonly previous: string | null;
  /** Resolves to a folder with the disks of a server that nothing writes to; null: there are none any more. */
  readonly hold: (server: number) => Promise<string | null>;
}

export interface CopySums {
  readonly servers: number;
  readonly images: number;
  readonly copied: number;
  /** Bytes that were there already. */
  readonly kept: number;
}

const isGone = (error: unknown): boolean => (error as NodeJS.ErrnoException).code === "ENOENT";

async function readList(folder: string | null): Promise<List> {
  if (folder === null) return {};
  return readFile(join(folder, listName), "utf8").then(
    (text) => JSON.parse(text) as List,
    (error: unknown) => {
      if (isGone(error)) return {};
      throw error;
    },
  );
}

/** Files of folders that are being made, or that only a process needs. */
const isPassing = (name: string): boolean =>
  /\.(part|gone|copy|image)$/.test(name) || name === "run" || name === "root";
/** Of a server's folder: where its disk was and whose it is. The rest is made anew at each start. */
const isKept = (name: string): boolean => /^disk-[1-9][0-9]*$/.test(name) || name === "label.json";

/** Throws when the disk is full, or a file changes while it is copied; then the target is no copy. */
export async function copyDisks(options: CopyOptions): Promise<CopySums> {
  const { dataFolder, backupFolder, target, previous, hold } = options;
  const before = await readList(previous);
  const list: Record<string, string> = {};
  let [servers, images, copied, kept] = [0, 0, 0, 0];

  async function reuse(key: string, to: string): Promise<boolean> {
    const here = list[key];
    const there = before[key];
    const from = here !== undefined ? join(target, here) : there !== undefined ? join(previous ?? "", there) : null;
    if (from === null) return false;
    return link(from, to).then(
      () => true,
      (error: unknown) => {
        // It was removed by hand, or has as many names as it can have.
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
    if (await reuse(key, to)) kept += Number(found.size);
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
      if (entry.isDirectory()) await copyTree(source, next, (name) => !isPassing(name));
      else if (entry.isFile()) await copyOne(source, next);
    }
    await syncPath(to);
  }

  async function copyImages(from: string, path: string): Promise<void> {
    if (!existsSync(from)) return;
    await mkdir(join(target, path), { recursive: true, mode: 0o755 });
    for (const name of (await readdir(from)).filter((name) => !isPassing(name))) {
      // One that was deleted meanwhile is half here, and without its description it is no image.
      await copyTree(join(from, name), join(path, name), (file) => !isPassing(file)).catch((error: unknown) => {
        if (!isGone(error) || existsSync(join(from, name))) throw error;
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
    await copyTree(held, join("servers", id), isKept);
    servers++;
  }
  await writeFile(join(target, listName), JSON.stringify(list), { mode: 0o600 });
  await syncPath(join(target, listName));
  return { servers, images, copied, kept };
}
