/**
 * Finds the images and snapshots that exist on the host, including those that the database does not contain: the image folders, and the
 * snapshots in the folder of servers. The names are listed often, so that opens no file of an image.
 */
import { existsSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { allocatedOf, GIB, layerName, originOf, sizeOf, topOf } from "../disk/disk.ts";
import type { HeldImage, HeldName } from "../interface.ts";
import { type GuestImage, isImageName, listImageNames, readImage } from "./manifest.ts";

/** End of the name of a snapshot's folder. */
const snapshotEnd = ".image";

const textOf = ({ title, family, minRam }: Pick<GuestImage, "title" | "family" | "minRam">) => ({
  title,
  family,
  minRam,
});

async function readSnapshot(servers: string, name: string): Promise<HeldImage | null> {
  const folder = join(servers, `${name}${snapshotEnd}`);
  if (!existsSync(folder)) return null;
  const disk = join(folder, "disk");
  const origin = existsSync(disk) ? await originOf(disk).catch(() => null) : null;
  const bytes = existsSync(disk) ? await sizeOf(join(disk, layerName(topOf(disk)))).catch(() => 0) : 0;
  return {
    name,
    kind: "snapshot",
    ...(origin === null ? { title: "", family: "Linux", minRam: 0 } : textOf(origin)),
    gb: Math.ceil(bytes / GIB),
    bytes: existsSync(disk) ? allocatedOf(disk) : 0,
  };
}

/** Returns null if the folder contains no manifest. An image that cannot be used has the reason as its title. */
async function readHeldImage(images: string, name: string): Promise<HeldImage | null> {
  try {
    const image = await readImage(images, name);
    if (image === null) return null;
    return { name, kind: "image", ...textOf(image), gb: image.hdd, bytes: allocatedOf(join(images, name)) };
  } catch (error) {
    const { message: title } = error as Error;
    return { name, kind: "image", title, family: "Linux", minRam: 0, gb: 0, bytes: allocatedOf(join(images, name)) };
  }
}

/** Lists the names of images and snapshots. `folders`: the image folders. */
export async function listHeldNames(servers: string, folders: readonly string[]): Promise<readonly HeldName[]> {
  const images = new Set((await Promise.all(folders.map(listImageNames))).flat());
  const snapshots = (await readdir(servers)).filter((entry) => entry.endsWith(snapshotEnd));
  return [
    ...[...images].map((name) => ({ name, kind: "image" as const })),
    ...snapshots.map((entry) => ({ name: entry.slice(0, -snapshotEnd.length), kind: "snapshot" as const })),
  ];
}

/** Reads the images and snapshots of these names that exist. */
export async function readHeldImages(
  servers: string,
  folders: readonly string[],
  names: readonly string[],
): Promise<readonly HeldImage[]> {
  const found: HeldImage[] = [];
  for (const name of names.filter(isImageName)) {
    for (const folder of folders) {
      const image = await readHeldImage(folder, name);
      if (image === null) continue;
      found.push(image);
      break;
    }
    const snapshot = await readSnapshot(servers, name);
    if (snapshot !== null) found.push(snapshot);
  }
  return found;
}
