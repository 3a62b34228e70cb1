/**
 * A server's disks as they are at one moment, in `<servers>/<id>.copy/`, for an operator who copies them to another place. They share
 * all closed layers with the server and end with an empty layer of their own, so that the folder can be put back as that of a server.
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

export interface HoldOptions {
  readonly servers: string;
  readonly disks: Disks;
  readonly turns: KeyedQueue;
  readonly uid: (id: number) => number;
  /** Any number, for the guest's agent. */
  readonly sync: () => number;
  readonly find: (id: number) => Promise<Run | null>;
  /** Merges the layers of a server that runs, if it has too many. */
  readonly merge: (id: number) => Promise<void>;
}

export const heldFolder = (servers: string, id: number): string => join(servers, `${id}.copy`);

/** Bytes of a qcow2 layer that was never written to: header, table, and the two of its counters. */
const unwritten = 4 * 65_536;

/** Removes all of them, and parts of them. Resolves to the numbers of their servers. */
export function dropHeld(servers: string): readonly number[] {
  const entries = readdirSync(servers).filter((name) => /^[0-9]+\.copy(\.part)?$/.test(name));
  for (const entry of entries) rmSync(join(servers, entry), { recursive: true, force: true });
  return [...new Set(entries.map((entry) => Number.parseInt(entry, 10)))];
}

/** For the start, when nothing is being made: removes what a killed service had half made, and what it held. */
export function sweepServers(servers: string): void {
  dropHeld(servers);
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

export function createHolds(options: HoldOptions): Pick<Machines, "holdDisks" | "releaseDisks"> {
  const { servers, disks, turns, uid, sync, find, merge } = options;

  /** The number that nobody writes below any more. One that is off and was not written to since needs no layer. */
  async function close(id: number, disk: string, run: Run | null): Promise<number> {
    const top = topOf(disk);
    if (run === null && top > 0 && statSync(join(disk, layerName(top))).size <= unwritten) return top;
    return freeze({ disks, disk, uid: uid(id), sync: sync() }, run);
  }

  return {
    holdDisks: (id) =>
      turns.run([id], async () => {
        const folder = folderOf(servers, id);
        const versions = versionsOf(folder.root);
        if (versions.length === 0) throw new Error(`server ${id} has no disk`);
        const run = await find(id);
        const held = heldFolder(servers, id);
        const part = `${held}.part`;
        for (const path of [held, part]) await rm(path, { recursive: true, force: true });
        makeFolder(part);
        for (const version of versions) {
          const disk = folder.disk(version);
          const top = await close(id, disk, run?.state.version === version ? run : null);
          const bytes = await sizeOf(join(disk, layerName(top)));
          await disks.fromDisk(join(part, diskName(version)), disk, top, bytes, uid(id));
        }
        if (existsSync(folder.label)) await copyFile(folder.label, join(part, "label.json"));
        await rename(part, held);
        syncPathNow(servers);
        return held;
      }),
    async releaseDisks() {
      for (const id of dropHeld(servers)) void merge(id);
    },
  };
}
