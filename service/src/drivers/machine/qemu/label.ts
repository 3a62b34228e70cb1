/**
 * The label of a server's folder: a file beside the disks that names the server. After a database restore an id can be used again; the uuid
 * in the label prevents a mix-up of disks. It also identifies a disk whose row is lost.
 */
import { existsSync, readFileSync } from "node:fs";
import { DiskError, originOf } from "../disk/disk.ts";
import type { Label, MachineSpec } from "../interface.ts";
import { type Folder, readState, replaceFile } from "./folder.ts";
import { numberAt, textAt } from "./qmp.ts";

/** Reads the label. Null if the folder was created by an older release and its server never started. */
export function readLabel(folder: Folder): Label | null {
  try {
    const value = JSON.parse(readFileSync(folder.label, "utf8")) as unknown;
    return {
      uuid: textAt(value, "uuid"),
      name: textAt(value, "name"),
      cpus: numberAt(value, "cpus"),
      memory: numberAt(value, "memory"),
      image: textAt(value, "image"),
    };
  } catch {
    const state = readState(folder);
    return state === null ? null : { uuid: state.uuid, name: "", cpus: 0, memory: 0, image: "" };
  }
}

/** Writes the label if it changed. Does nothing if the folder does not exist. */
export async function writeLabel(folder: Folder, { uuid, name = "", cpus, memory, disk }: MachineSpec): Promise<void> {
  if (!existsSync(folder.root)) return;
  const path = folder.disk(disk.version);
  const origin = existsSync(path) ? await originOf(path).catch(() => null) : null;
  const image = origin?.name ?? readLabel(folder)?.image ?? "";
  const text = `${JSON.stringify({ uuid, name, cpus, memory, image } satisfies Label)}\n`;
  if (existsSync(folder.label) && readFileSync(folder.label, "utf8") === text) return;
  await replaceFile(folder.label, text, 0o600);
}

/** Throws a `DiskError` if the folder belongs to another server with this id. */
export function checkOwner(folder: Folder, { id, uuid, disk }: MachineSpec): void {
  const owner = readLabel(folder)?.uuid ?? "";
  if (disk.version === 1 && owner !== "" && owner !== uuid)
    throw new DiskError(`the folder of server ${id} belongs to another server, which the database does not know`);
}
