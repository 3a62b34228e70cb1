/**
 * Images as the service wants them: what an operator offers to everybody, and how more come in. What the set-up built is taken over at
 * the start, and what killed processes left goes.
 */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Log } from "../../base/log.ts";
import type { Exec } from "../exec.ts";
import { type Family, ImageError, type ImageTrouble, type Renewal } from "./image.ts";
import { sweepImages } from "./imagefolder.ts";
import { createImageStore, type ImageOrigin, type WorkOptions } from "./imagestore.ts";

/** `folder: null`: not here yet, to be fetched by its name. */
export interface Offer {
  readonly name: string;
  readonly title: string;
  readonly family: Family;
  readonly os: string;
  readonly minRam: number;
  readonly hdd: number;
  readonly folder: string | null;
  readonly guest: Renewal | null;
}

export interface StockOptions {
  readonly exec: Exec;
  readonly dataFolder: string;
  /** Folder of images that the set-up built for all installations of this checkout. */
  readonly built: string;
  /** Where backups are, if not with the other images. */
  readonly backups?: { readonly folder: string } | null;
  /** No guest is to run, on purpose: then no image is needed either. */
  readonly simulate: boolean;
  /** Whether a folder is of an image that a customer made. */
  readonly isOwn: (folder: string) => boolean;
  readonly log: Log;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

/** Image 1 of every fresh installation. Simulated guests need nothing of it but its name. */
const first: Offer = {
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
const final: ReadonlySet<ImageTrouble> = new Set(["unsafe", "unusable", "checksum", "address", "missing"]);

export async function openStock({ exec, dataFolder, backups = null, built, simulate, isOwn, log, now }: StockOptions) {
  const images = join(dataFolder, "images");
  const imports = join(dataFolder, "import");
  for (const folder of [images, imports]) mkdirSync(folder, { recursive: true, mode: 0o755 });
  const store = createImageStore({ exec, images, imports, now });
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

  const { images: present, broken } = await store.list();
  for (const { name, reason } of broken) log("warn", "An image cannot be used.", { name, reason });
  const here = present.filter(({ name }) => !isOwn(name));
  const names = new Set(here.map(({ name }) => name));
  const offers: Offer[] = [
    ...here.map((image) => ({ ...image, folder: image.name })),
    ...store.catalogue.filter(({ name }) => !names.has(name)).map((entry) => ({ ...entry, folder: null })),
  ].map(({ name, title, family, os, minRam, hdd, folder, guest }) => ({
    name,
    title,
    family,
    os,
    minRam,
    hdd,
    folder,
    guest,
  }));

  return {
    /** The default first. `kind: "sim"`: guests are simulated, and so is their image. */
    stockFor(kind: "host" | "sim"): Offer[] {
      const isFirst = ({ name }: Offer) => name === first.name;
      const found = offers.find(isFirst) ?? (kind === "sim" ? first : null);
      return [...(found === null ? [] : [found]), ...offers.filter((offer) => !isFirst(offer))];
    },
    async fetch(name: string, signal: AbortSignal): Promise<string> {
      return (await store.fetch(name, { signal })).name;
    },
    /** Resolves to GB of the disk, or to why it is not taken, whoever tries. */
    import: (
      {
        folder,
        ...wish
      }: { readonly folder: string; readonly title: string; readonly family: Family; readonly minRam: number },
      origin: ImageOrigin,
      options: WorkOptions,
    ): Promise<{ readonly hdd: number } | Refused> =>
      orRefused(async () => {
        const { hdd } = await store.import({ ...wish, name: folder, os: wish.family, hdd: 1 }, origin, options);
        return { hdd };
      }),
    /** The same as far as can be told at once; null: nothing is wrong so far. */
    judge: (origin: ImageOrigin): Promise<null | Refused> =>
      orRefused(async () => {
        await store.judge(origin);
        return null;
      }),
  };
}

interface Refused {
  readonly refused: string;
}

async function orRefused<Result>(work: () => Promise<Result>): Promise<Result | Refused> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof ImageError && final.has(error.trouble)) return { refused: error.message };
    throw error;
  }
}
