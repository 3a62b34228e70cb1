/**
 * Lists the images and snapshots that exist on the host, including those that the database does not contain: the image folders, and the
 * snapshots in the folder of servers.
 */
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { allocatedOf, GIB, layerName, originOf, sizeOf, topOf } from "../disk/disk.ts";
import type { HeldImage } from "../interface.ts";
import { type GuestImage, listImages } from "./manifest.ts";

const textOf = ({ title, family, minRam }: Pick<GuestImage, "title" | "family" | "minRam">) => ({
  title,
  family,
  minRam,
});

async function snapshotIn(servers: string, entry: string): Promise<HeldImage> {
  const name = entry.replace(/\.image$/, "");
  const disk = join(servers, entry, "disk");
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

/** Lists images and snapshots. `folders`: the image folders. */
export async function listHeldImages(servers: string, folders: readonly string[]): Promise<readonly HeldImage[]> {
  const snapshots = readdirSync(servers).filter((entry) => entry.endsWith(".image"));
  return [
    ...(await Promise.all(folders.map(imagesIn))).flat(),
    ...(await Promise.all(snapshots.map((entry) => snapshotIn(servers, entry)))),
  ];
}

async function imagesIn(images: string): Promise<readonly HeldImage[]> {
  const { images: usable, broken } = await listImages(images);
  return [
    ...usable.map((image): HeldImage => {
      const { name, hdd: gb } = image;
      return { name, kind: "image", ...textOf(image), gb, bytes: allocatedOf(join(images, name)) };
    }),
    ...broken.map(
      ({ name, reason }): HeldImage => ({
        name,
        kind: "image",
        title: reason,
        family: "Linux",
        minRam: 0,
        gb: 0,
        bytes: allocatedOf(join(images, name)),
      }),
    ),
  ];
}
