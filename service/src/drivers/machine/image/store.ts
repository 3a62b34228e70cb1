/**
 * The images of this installation as one thing: what is there, what can be fetched, what comes in from outside. Whoever wants an image
 * that somebody is bringing in already waits for the same work, which is given up when nobody waits any more.
 */
import { copyFile, link, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Exec } from "../../exec.ts";
import type { ImageOrigin, TransferOptions } from "../interface.ts";
import { type CatalogueEntry, catalogue } from "./catalogue.ts";
import { parseSource } from "./download.ts";
import { fetchImage } from "./fetch.ts";
import { openDraft, placeImage, removeImage, sweepImages } from "./folder.ts";
import { findFile, type ImportSource, importFile, importUrl, type MakeOptions } from "./import.ts";
import { fileNames, type GuestImage, ImageError, type ImageList, listImages, readImage } from "./manifest.ts";

/** What fails throws an `ImageError`, or whatever the signal says, and leaves nothing. */
export interface ImageStore {
  list(): Promise<ImageList>;
  /** What can be fetched, whether it is here or not. */
  readonly catalogue: readonly CatalogueEntry[];
  /** Brings the image of that name in the catalogue, in its present version. */
  fetch(name: string, options?: TransferOptions): Promise<GuestImage>;
  import(spec: ImportSource, origin: ImageOrigin, options?: TransferOptions): Promise<GuestImage>;
  /** Throws what an import would, as far as can be told before anything is fetched. */
  judge(origin: ImageOrigin): Promise<void>;
  /** Takes over what another folder of images holds in other versions, by links where both are on one file system. */
  adopt(from: string): Promise<readonly GuestImage[]>;
  remove(name: string): Promise<void>;
  /** For the start: what killed processes left goes. Resolves to the paths. */
  sweep(): Promise<readonly string[]>;
}

export interface StoreOptions {
  readonly exec: Exec;
  readonly images: string;
  readonly imports: string;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** Addresses to fetch and import from: by default those of the public internet. */
  readonly allows?: (address: string) => boolean;
  readonly catalogue?: readonly CatalogueEntry[];
}

interface Work {
  readonly promise: Promise<GuestImage>;
  readonly controller: AbortController;
  readonly listeners: Set<TransferOptions>;
}

export function createImageStore(options: StoreOptions): ImageStore {
  const { exec, images, imports, now } = options;
  const entries = options.catalogue ?? catalogue;
  const running = new Map<string, Work>();

  function begin(name: string, make: (options: MakeOptions) => Promise<GuestImage>): Work {
    const controller = new AbortController();
    const listeners = new Set<TransferOptions>();
    const promise = make({
      now: now(),
      ...(options.allows && { allows: options.allows }),
      signal: controller.signal,
      progress: (done, total) => {
        for (const { progress } of listeners) progress?.(done, total);
      },
    }).finally(() => running.delete(name));
    const work = { promise, controller, listeners };
    running.set(name, work);
    return work;
  }

  async function share(
    name: string,
    spec: TransferOptions,
    make: (options: MakeOptions) => Promise<GuestImage>,
  ): Promise<GuestImage> {
    spec.signal?.throwIfAborted();
    let work = running.get(name);
    // One that was given up is still tidying.
    while (work?.controller.signal.aborted) {
      await work.promise.catch(() => {});
      work = running.get(name);
    }
    const { promise, controller, listeners } = work ?? begin(name, make);
    const listener = { ...spec };
    listeners.add(listener);
    const { promise: leaving, reject } = Promise.withResolvers<never>();
    const leave = () => {
      listeners.delete(listener);
      if (listeners.size > 0) return reject(spec.signal?.reason);
      controller.abort(spec.signal?.reason);
      void promise.then(
        () => reject(spec.signal?.reason),
        () => reject(spec.signal?.reason),
      );
    };
    spec.signal?.addEventListener("abort", leave, { once: true });
    try {
      return await Promise.race([promise, leaving]);
    } finally {
      listeners.delete(listener);
      spec.signal?.removeEventListener("abort", leave);
    }
  }

  async function take(from: string, image: GuestImage): Promise<void> {
    const draft = await openDraft(exec, images, image.name);
    try {
      for (const file of fileNames(image)) {
        const [source, target] = [join(from, image.name, file), join(draft, file)];
        await link(source, target).catch(() => copyFile(source, target));
      }
      await placeImage(images, draft, image);
    } finally {
      await rm(draft, { recursive: true, force: true });
    }
  }

  return {
    catalogue: entries,
    list: () => listImages(images),
    fetch: async (name, spec = {}) => {
      const entry = entries.find((entry) => entry.name === name);
      if (!entry) throw new ImageError("missing", `The catalogue has no image "${name}".`);
      return share(name, spec, (make) => fetchImage(exec, images, entry, make));
    },
    import: (about, origin, spec = {}) =>
      share(about.name, spec, (make) =>
        "url" in origin
          ? importUrl(exec, images, about, origin, make)
          : importFile(exec, images, about, { ...origin, folder: imports }, make),
      ),
    async judge(origin) {
      if ("url" in origin) parseSource(origin.url, options);
      else await findFile(imports, origin.file);
    },
    async adopt(from) {
      const taken: GuestImage[] = [];
      for (const image of (await listImages(from)).images) {
        const present = await readImage(images, image.name).catch(() => null);
        if (present?.version === image.version) continue;
        await take(from, image);
        taken.push(image);
      }
      return taken;
    },
    remove: (name) => removeImage(images, name),
    sweep: () => sweepImages(exec, images, now()),
  };
}
