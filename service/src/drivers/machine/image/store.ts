/**
 * The image store of this installation: lists, fetches, imports and removes images. Concurrent requests for one image share one transfer,
 * which is cancelled when the last of them is.
 */
import { copyFile, link } from "node:fs/promises";
import { join } from "node:path";
import type { Exec } from "../../exec.ts";
import { createDiskTools, type DiskTools } from "../disk/tool.ts";
import type { ImageOrigin, TransferOptions } from "../interface.ts";
import { type CatalogueEntry, catalogue } from "./catalogue.ts";
import { parseSource } from "./download.ts";
import { fetchImage } from "./fetch.ts";
import { inDraft, placeImage, removeImage, sweepImages } from "./folder.ts";
import {
  findFile,
  freeSpace,
  type ImportSource,
  importFile,
  importUpload,
  importUrl,
  type MakeOptions,
} from "./import.ts";
import {
  fileNames,
  type GuestImage,
  ImageError,
  type ImageList,
  listImages,
  notEnoughSpace,
  readImage,
} from "./manifest.ts";

/** Operations on the image folder. On failure they throw an `ImageError` or the reason of the signal, and leave no files. */
export interface ImageStore {
  /** Lists the images in the folder, or reads only those whose names are wanted. */
  list(isWanted?: (name: string) => boolean): Promise<ImageList>;
  /** Images that can be fetched, also those that already exist. */
  readonly catalogue: readonly CatalogueEntry[];
  /** Fetches the current version of an image of the catalogue. */
  fetch(name: string, options?: TransferOptions): Promise<GuestImage>;
  /** Imports a foreign disk. */
  import(spec: ImportSource, origin: ImageOrigin, options?: TransferOptions): Promise<GuestImage>;
  /** Checks an origin without fetching it. Throws the error that an import would throw. */
  checkOrigin(origin: ImageOrigin): Promise<void>;
  /** Adopts the images of another folder whose versions differ, by hard links if both are on one file system. Resolves to these images. */
  adopt(from: string): Promise<readonly GuestImage[]>;
  /** Removes an image. */
  remove(name: string): Promise<void>;
  /** Removes files that killed processes left; resolves to their paths. Call it at the start. */
  sweep(): Promise<readonly string[]>;
}

/** Dependencies of `createImageStore`. */
export interface StoreOptions {
  readonly exec: Exec;
  /** By default those of `exec`. They find at their first use what they need. */
  readonly tools?: DiskTools;
  readonly images: string;
  readonly imports: string;
  /** Folder of uploaded files. */
  readonly uploads: string;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** Whether an IP address may be connected to; by default only those of the public internet that are not of the host. */
  readonly allows?: (address: string) => boolean;
  readonly catalogue?: readonly CatalogueEntry[];
}

interface Transfer {
  readonly promise: Promise<GuestImage>;
  readonly controller: AbortController;
  readonly listeners: Set<TransferOptions>;
}

/** Throws an `ImageError` if the disk of the folder has no space for so many bytes. */
async function requireSpace(folder: string, bytes: number): Promise<void> {
  const free = await freeSpace(folder);
  if (bytes > free) throw notEnoughSpace({ needed: bytes, free });
}

export function createImageStore(options: StoreOptions): ImageStore {
  const { exec, images, imports, uploads, now } = options;
  const tools = options.tools ?? createDiskTools(exec);
  const entries = options.catalogue ?? catalogue;
  const running = new Map<string, Transfer>();

  function begin(name: string, make: (options: MakeOptions) => Promise<GuestImage>): Transfer {
    const controller = new AbortController();
    const listeners = new Set<TransferOptions>();
    const promise = make({
      tools,
      now: now(),
      ...(options.allows && { allows: options.allows }),
      signal: controller.signal,
      progress: (done, total) => {
        for (const { progress } of listeners) progress?.(done, total);
      },
    }).finally(() => running.delete(name));
    const transfer = { promise, controller, listeners };
    running.set(name, transfer);
    return transfer;
  }

  async function share(
    name: string,
    spec: TransferOptions,
    make: (options: MakeOptions) => Promise<GuestImage>,
  ): Promise<GuestImage> {
    spec.signal?.throwIfAborted();
    let transfer = running.get(name);
    // A cancelled transfer is still removing its files.
    while (transfer?.controller.signal.aborted) {
      await transfer.promise.catch(() => {});
      transfer = running.get(name);
    }
    const { promise, controller, listeners } = transfer ?? begin(name, make);
    const listener = { ...spec };
    listeners.add(listener);
    const { promise: cancelled, reject } = Promise.withResolvers<never>();
    const cancel = () => {
      listeners.delete(listener);
      if (listeners.size > 0) return reject(spec.signal?.reason);
      controller.abort(spec.signal?.reason);
      void promise.then(
        () => reject(spec.signal?.reason),
        () => reject(spec.signal?.reason),
      );
    };
    spec.signal?.addEventListener("abort", cancel, { once: true });
    try {
      return await Promise.race([promise, cancelled]);
    } finally {
      listeners.delete(listener);
      spec.signal?.removeEventListener("abort", cancel);
    }
  }

  async function adoptImage(from: string, image: GuestImage): Promise<void> {
    await inDraft(exec, images, image.name, async (draft) => {
      for (const file of fileNames(image)) {
        const [source, target] = [join(from, image.name, file), join(draft, file)];
        await link(source, target).catch(() => copyFile(source, target));
      }
      await placeImage(images, draft, image);
    });
  }

  return {
    catalogue: entries,
    list: (isWanted) => listImages(images, isWanted),
    fetch: async (name, spec = {}) => {
      const entry = entries.find((entry) => entry.name === name);
      if (!entry) throw new ImageError("missing", `The catalogue has no image "${name}".`);
      return share(name, spec, (make) => fetchImage(exec, images, entry, make));
    },
    import: (about, origin, spec = {}) =>
      share(about.name, spec, (make) =>
        "url" in origin
          ? importUrl(exec, images, about, origin, make)
          : "file" in origin
            ? importFile(exec, images, about, { ...origin, folder: imports }, make)
            : importUpload(exec, images, about, { ...origin, bytes: origin.upload, folder: uploads }, make),
      ),
    async checkOrigin(origin) {
      if ("url" in origin) parseSource(origin.url, options);
      else if ("file" in origin) await findFile(imports, origin.file);
      else await requireSpace(images, origin.upload);
    },
    async adopt(from) {
      const adopted: GuestImage[] = [];
      for (const image of (await listImages(from)).images) {
        const present = await readImage(images, image.name).catch(() => null);
        if (present?.version === image.version) continue;
        await adoptImage(from, image);
        adopted.push(image);
      }
      return adopted;
    },
    remove: (name) => removeImage(images, name),
    sweep: () => sweepImages(exec, images, now()),
  };
}
