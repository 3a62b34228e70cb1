/** Uploads of this page: they continue while the user visits other pages, and can be paused. After a reload the user chooses the file again. */
import type { Image } from "@brume/api/catalog.ts";
import type { Client } from "@brume/api/client.ts";
import { type Cell, createCell } from "./cell.ts";
import { digestFile } from "./digest.ts";

/** One upload of this page. */
export interface Upload {
  readonly file: File;
  readonly state: "checking" | "sending" | "paused" | "failed";
  /** Part of the file that was checked or received, from 0 to 1. */
  readonly part: number;
  /** Why it failed; null: it did not. */
  readonly error: unknown;
}

/** Another file was chosen than the one whose upload continues. */
export class OtherFile extends Error {}

export interface Uploads {
  /** By the id of the image. */
  readonly all: Cell<ReadonlyMap<number, Upload>>;
  /** Sends the file, or continues. `isSame`: it is known to be the file whose upload was begun. */
  start(image: Pick<Image, "ID" | "Upload">, file: File, isSame: boolean): void;
  pause(id: number): void;
  /** Ends all, for example after the session has ended. */
  stop(): void;
}

export function createUploads(client: Client): Uploads {
  const all = createCell<ReadonlyMap<number, Upload>>(new Map());
  const controllers = new Map<number, AbortController>();

  function put(id: number, upload: Upload | null): void {
    const next = new Map(all.get());
    if (upload === null) next.delete(id);
    else next.set(id, upload);
    all.set(next);
  }

  async function send(
    { ID, Upload: begun }: Pick<Image, "ID" | "Upload">,
    file: File,
    isSame: boolean,
    signal: AbortSignal,
  ): Promise<void> {
    if (!isSame) {
      if (file.size !== begun?.Size) throw new OtherFile();
      const show = (part: number): void => put(ID, { file, state: "checking", part, error: null });
      if (begun.Sha256 !== null && (await digestFile(file, show, signal)) !== begun.Sha256) throw new OtherFile();
    }
    await client.uploadImage({ ID }, file, {
      signal,
      onProgress({ Upload: upload }) {
        if (upload !== null) put(ID, { file, state: "sending", part: upload.Received / upload.Size, error: null });
      },
    });
  }

  const pause = (id: number): void => controllers.get(id)?.abort();

  return {
    all,
    pause,
    start(image, file, isSame) {
      const { ID } = image;
      pause(ID);
      const controller = new AbortController();
      controllers.set(ID, controller);
      const before = all.get().get(ID);
      put(ID, { file, state: "sending", part: before?.part ?? 0, error: null });
      const end = (upload: Upload | null): void => {
        if (controllers.get(ID) !== controller) return;
        controllers.delete(ID);
        put(ID, upload);
      };
      send(image, file, isSame, controller.signal).then(
        () => end(null),
        (error: unknown) => {
          const { part = 0 } = all.get().get(ID) ?? {};
          if (controller.signal.aborted) end({ file, state: "paused", part, error: null });
          else end({ file, state: "failed", part, error });
        },
      );
    },
    stop() {
      for (const id of controllers.keys()) pause(id);
      all.set(new Map());
    },
  };
}
