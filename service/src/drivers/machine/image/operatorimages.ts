/**
 * The part of `Images` for operator images: lists the images that are offered to all projects, and fetches and imports images. At the start
 * of the service it adopts images that the set-up built and removes files that killed processes left.
 */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Log } from "../../../base/log.ts";
import type { Exec } from "../../exec.ts";
import type { Images, OperatorImage, Refused } from "../interface.ts";
import { sweepImages } from "./folder.ts";
import { type ImageDefect, ImageError } from "./manifest.ts";
import { createImageStore } from "./store.ts";

/** Operations on operator images, the same for real and simulated servers. */
export type OperatorImages = Pick<Images, "listOperatorImages" | "ensureFetched" | "ensureImported" | "checkOrigin">;

/** Dependencies of `createOperatorImages`. */
export interface OperatorImageOptions {
  readonly exec: Exec;
  readonly dataFolder: string;
  /** Whether the image of this name was made by a user. */
  readonly isOwn: (folder: string) => boolean;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

/** Dependencies of `prepareImages`. */
export interface PrepareOptions extends OperatorImageOptions {
  /** Folder of images that the set-up built for all installations of this checkout. */
  readonly built: string;
  /** Where backups are stored, if not with the other images. */
  readonly backups?: { readonly folder: string } | null;
  /** True if the operator requested simulated servers, which need no image. */
  readonly simulate: boolean;
  readonly log: Log;
}

/** The first image of every new installation. Simulated guests need only its name. */
const firstImage: OperatorImage = {
  name: "brume-tiny",
  title: "Brume Tiny Linux",
  family: "Linux",
  os: "Linux",
  minRam: 128,
  hdd: 1,
  folder: "brume-tiny",
  guest: "tiny",
};

/** Defects that a retry will not solve. */
const final: ReadonlySet<ImageDefect> = new Set(["unsafe", "unusable", "checksum", "address", "missing"]);

const foldersIn = (dataFolder: string) => ({
  images: join(dataFolder, "images"),
  imports: join(dataFolder, "import"),
  uploads: join(dataFolder, "uploads"),
});

/** Prepares the image folder. Call it once, before other code uses images. Never throws for a single bad image. */
export async function prepareImages(options: PrepareOptions): Promise<void> {
  const { exec, backups = null, built, simulate, log, now } = options;
  const folders = foldersIn(options.dataFolder);
  for (const folder of [folders.images, folders.imports]) mkdirSync(folder, { recursive: true, mode: 0o755 });
  const store = createImageStore({ exec, ...folders, now });
  const sweptBackups = backups === null ? [] : await sweepImages(exec, backups.folder, now());
  for (const path of [...(await store.sweep()), ...sweptBackups])
    log("warn", "Removed an incomplete image of an earlier run.", { path });
  try {
    for (const { name, version } of simulate ? [] : await store.adopt(built))
      log("info", "Adopted an image that the set-up built.", { name, version });
  } catch (error) {
    // For example a full disk. Servers can use other images.
    log("error", "Could not adopt the images that the set-up built.", { error });
  }
  for (const { name, reason } of (await store.list()).broken) log("warn", "An image cannot be used.", { name, reason });
}

/** Creates the operations on operator images. `isSimulated`: the first image is listed even if it does not exist. */
export function createOperatorImages(options: OperatorImageOptions, isSimulated: boolean): OperatorImages {
  const { exec, dataFolder, now } = options;
  const store = createImageStore({ exec, ...foldersIn(dataFolder), now });
  return {
    async listOperatorImages() {
      const { images: here } = await store.list((name) => !options.isOwn(name));
      const names = new Set(here.map(({ name }) => name));
      const all = [
        ...here.map((image) => ({ ...image, folder: image.name })),
        ...store.catalogue.filter(({ name }) => !names.has(name)).map((entry) => ({ ...entry, folder: null })),
      ].map(
        ({ name, title, family, os, minRam, hdd, folder, guest }): OperatorImage => ({
          name,
          title,
          family,
          os,
          minRam,
          hdd,
          folder,
          guest,
        }),
      );
      const isFirst = ({ name }: OperatorImage) => name === firstImage.name;
      const found = all.find(isFirst) ?? (isSimulated ? firstImage : null);
      return [...(found === null ? [] : [found]), ...all.filter((image) => !isFirst(image))];
    },
    ensureFetched: async (name, transfer) => (await store.fetch(name, transfer)).name,
    ensureImported: (name, about, origin, transfer) =>
      orRefused(async () => {
        const { hdd } = await store.import({ ...about, name, os: about.family, hdd: 1 }, origin, transfer);
        return { hdd };
      }),
    checkOrigin: (origin) =>
      orRefused(
        async () => {
          await store.checkOrigin(origin);
          return null;
        },
        () => true,
      ),
  };
}

/** Returns a defect as a refusal, if it is final. */
async function orRefused<Result>(
  work: () => Promise<Result>,
  isFinal = (defect: ImageDefect): boolean => final.has(defect),
): Promise<Result | Refused> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof ImageError && isFinal(error.defect)) return { refused: error.message };
    throw error;
  }
}
