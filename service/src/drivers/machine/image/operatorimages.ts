/**
 * The operator's half of `Images`: what is offered to all projects, and how images come in from outside. At the start of the service,
 * images that the set-up built are copied in, and files that killed processes left are removed.
 */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Log } from "../../../base/log.ts";
import type { Exec } from "../../exec.ts";
import type { Images, OperatorImage, Refused } from "../interface.ts";
import { sweepImages } from "./folder.ts";
import { type ImageDefect, ImageError } from "./manifest.ts";
import { createImageStore } from "./store.ts";

export type OperatorImages = Pick<Images, "listOperatorImages" | "ensureFetched" | "ensureImported" | "checkOrigin">;

export interface OperatorImageOptions {
  readonly exec: Exec;
  readonly dataFolder: string;
  /** Whether a folder is of an image that a customer made. */
  readonly isOwn: (folder: string) => boolean;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

export interface PrepareOptions extends OperatorImageOptions {
  /** Folder of images that the set-up built for all installations of this checkout. */
  readonly built: string;
  /** Where backups are, if not with the other images. */
  readonly backups?: { readonly folder: string } | null;
  /** No guest is to run, on purpose: then no image is needed either. */
  readonly simulate: boolean;
  readonly log: Log;
}

/** Image 1 of every fresh installation. Simulated guests need nothing of it but its name. */
const first: OperatorImage = {
  name: "brume-tiny",
  title: "Brume Tiny Linux",
  family: "Linux",
  os: "Linux",
  minRam: 128,
  hdd: 1,
  folder: "brume-tiny",
  guest: "tiny",
};

/** What no second try would mend. */
const final: ReadonlySet<ImageDefect> = new Set(["unsafe", "unusable", "checksum", "address", "missing"]);

const foldersIn = (dataFolder: string) => ({ images: join(dataFolder, "images"), imports: join(dataFolder, "import") });

/** Once, before anything uses images. */
export async function prepareImages(options: PrepareOptions): Promise<void> {
  const { exec, backups = null, built, simulate, log, now } = options;
  const folders = foldersIn(options.dataFolder);
  for (const folder of Object.values(folders)) mkdirSync(folder, { recursive: true, mode: 0o755 });
  const store = createImageStore({ exec, ...folders, now });
  const elsewhere = backups === null ? [] : await sweepImages(exec, backups.folder, now());
  for (const path of [...(await store.sweep()), ...elsewhere])
    log("warn", "A half-made image of an earlier run was removed.", { path });
  try {
    for (const { name, version } of simulate ? [] : await store.adopt(built))
      log("info", "An image was taken over.", { name, version });
  } catch (error) {
    // A full disk, say: servers want another image then, and everything else goes on.
    log("error", "The images that the set-up built could not be taken over.", { error });
  }
  for (const { name, reason } of (await store.list()).broken) log("warn", "An image cannot be used.", { name, reason });
}

/** `isSimulated`: guests are simulated, and so is their image. */
export function createOperatorImages(options: OperatorImageOptions, isSimulated: boolean): OperatorImages {
  const { exec, dataFolder, now } = options;
  const store = createImageStore({ exec, ...foldersIn(dataFolder), now });
  return {
    async listOperatorImages() {
      const here = (await store.list()).images.filter(({ name }) => !options.isOwn(name));
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
      const isFirst = ({ name }: OperatorImage) => name === first.name;
      const found = all.find(isFirst) ?? (isSimulated ? first : null);
      return [...(found === null ? [] : [found]), ...all.filter((image) => !isFirst(image))];
    },
    ensureFetched: async (name, transfer) => (await store.fetch(name, transfer)).name,
    ensureImported: (name, about, origin, transfer) =>
      orRefused(async () => {
        const { hdd } = await store.import({ ...about, name, os: about.family, hdd: 1 }, origin, transfer);
        return { hdd };
      }),
    checkOrigin: (origin) =>
      orRefused(async () => {
        await store.judge(origin);
        return null;
      }),
  };
}

async function orRefused<Result>(work: () => Promise<Result>): Promise<Result | Refused> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof ImageError && final.has(error.trouble)) return { refused: error.message };
    throw error;
  }
}
