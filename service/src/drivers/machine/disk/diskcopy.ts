/**
 * Copies of a server's disks at one moment, in `<servers>/<id>.copy/`, for an operator who backs them up elsewhere. They share all
 * read-only layers with the server and end with an empty layer, so the folder can be restored as that of a server.
 */
import { existsSync, readdirSync, rmSync, statSync } from "node:fs";
import { copyFile, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { syncPathNow } from "../../../base/fsync.ts";
import type { KeyedQueue } from "../../../base/serialqueue.ts";
import type { Machines } from "../interface.ts";
import { diskName, folderOf, makeFolder } from "../qemu/folder.ts";
import type { Run } from "../qemu/run.ts";
import { freeze } from "./copy.ts";
import { type Disks, layerName, sizeOf, topOf, versionsOf } from "./disk.ts";

/** Dependencies of `createDiskCopies`. */
export interface DiskCopyOptions {
  readonly servers: string;
  readonly disks: Disks;
  readonly locks: KeyedQueue;
  readonly uid: (id: number) => number;
  /** Returns another number at each call, to synchronize with the guest agent. */
  readonly sync: () => number;
  readonly find: (id: number) => Promise<Run | null>;
  /** Merges the layers of a running server if it has too many. */
  readonly merge: (id: number) => Promise<void>;
}

const copyName = (id: number): string => `${id}.copy`;
/** Returns the path of a server's copy. */
export const copyFolder = (servers: string, id: number): string => join(servers, copyName(id));

/** Bytes of a qcow2 layer that was never written to: header, L1 table, refcount table and refcount block. */
const emptyLayerBytes = 4 * 65_536;

/** Removes all copies, also incomplete ones. Returns the ids of their servers. */
function removeCopies(servers: string): readonly number[] {
  const entries = readdirSync(servers).filter((name) => /^[0-9]+\.copy(\.part)?$/.test(name));
  for (const entry of entries) rmSync(join(servers, entry), { recursive: true, force: true });
  return [...new Set(entries.map((entry) => Number.parseInt(entry, 10)))];
}

/** Removes all copies and incomplete folders that a killed service left. Call it at the start only. */
export function sweepServers(servers: string): void {
  removeCopies(servers);
  const sweep = (folder: string): void => {
    for (const entry of readdirSync(folder, { withFileTypes: true })) {
      const path = join(folder, entry.name);
      if (entry.name.endsWith(".part")) rmSync(path, { recursive: true, force: true });
      else if (entry.isDirectory() && /^disk(-[0-9]+)?$/.test(entry.name)) sweep(path);
    }
  };
  for (const entry of readdirSync(servers, { withFileTypes: true }))
    if (entry.isDirectory() && /^[1-9][0-9]*$|\.image$/.test(entry.name)) sweep(join(servers, entry.name));
}

/** Creates the operations on copies of disks. */
export function createDiskCopies(options: DiskCopyOptions): Pick<Machines, "holdDisks" | "releaseDisks"> {
  const { servers, disks, locks, uid, sync, find, merge } = options;

  /**
   * Makes all layers with data read-only; resolves to the number of the layer above them. A stopped server whose top layer is empty needs
   * no new layer.
   */
  async function freezeLayers(id: number, disk: string, run: Run | null): Promise<number> {
    const top = topOf(disk);
    if (run === null && top > 0 && statSync(join(disk, layerName(top))).size <= emptyLayerBytes) return top;
    return freeze({ disks, disk, uid: uid(id), sync }, run);
  }

  return {
    holdDisks: (id) =>
      locks.run([id], async () => {
        const folder = folderOf(servers, id);
        const versions = versionsOf(folder.root);
        if (versions.length === 0) throw new Error(`server ${id} has no disk`);
        const run = await find(id);
        const copy = copyFolder(servers, id);
        const part = `${copy}.part`;
        for (const path of [copy, part]) await rm(path, { recursive: true, force: true });
        makeFolder(part);
        for (const version of versions) {
          const disk = folder.disk(version);
          const top = await freezeLayers(id, disk, run?.state.version === version ? run : null);
          const bytes = await sizeOf(join(disk, layerName(top)));
          await disks.fromDisk(join(part, diskName(version)), disk, top, bytes, uid(id));
        }
        if (existsSync(folder.label)) await copyFile(folder.label, join(part, "label.json"));
        await rename(part, copy);
        syncPathNow(servers);
        return copyName(id);
      }),
    async releaseDisks() {
      for (const id of removeCopies(servers)) void merge(id);
    },
  };
}
