/**
 * Receives the content of images from clients (docs/images.md#uploads). Content is passed on to the host as it arrives. What the row of the
 * image shows as received is on the disk of the host: it is synced there first, and stored after each part of 32 MB and at the end of each
 * request, also of one that was interrupted. So a client continues after a crash of either process.
 */

import type { Duplex } from "node:stream";
import { ApiError } from "../base/error.ts";
import type { Log } from "../base/log.ts";
import { reasonOf } from "../base/reason.ts";
import { type ImageRow, lockImage, noteReceived } from "../catalog/table.ts";
import type { Uploads } from "../drivers/content/interface.ts";
import type { Content } from "../http/handler.ts";
import type { Tx } from "../store/db.ts";
import { findRefusal, type ImportContext, importFolder } from "./flow/import.ts";

/** Driver and setting of uploads. */
export interface UploadOptions {
  readonly uploads: Uploads;
  /** Hours that an image waits for more content. Default 24. */
  readonly uploadHours?: number;
}

/** Dependencies of the receiver. */
export interface UploadContext extends ImportContext, UploadOptions {
  readonly log: Log;
}

/** Content that is on the host. The transaction stores it with `store`; `release` must be called after it. */
export interface ReceivedPart {
  /** Stores what was received. Throws `image_not_found` if the image was deleted meanwhile. */
  store(tx: Tx): Promise<ImageRow>;
  release(): void;
}

/** Receives content, one request per image at a time. */
export interface Receiver {
  /**
   * Receives content that continues the upload, and ends a running request for the same image. `find` reads the image and throws if it does
   * not exist or waits for no content. On failure stores what arrived.
   */
  receive(find: () => Promise<Uploading>, content: Content): Promise<ReceivedPart>;
  /** Ends the running request for an image that was deleted. */
  end(id: number): void;
}

/** An image that waits for content. */
export type Uploading = ImageRow & { readonly upload_size: number };

/** Bytes after which what has arrived is synced and stored, and milliseconds after which it is for a slow client. */
const partBytes = 32 << 20;
const partTime = 30_000;

const conflict = (detail: string): ApiError => new ApiError("upload_conflict", detail);

/** Throws `upload_conflict` or `content_range_invalid` unless the content continues the upload. */
export function requireContinuation(
  { id, upload_size: size, upload_received: received }: Uploading,
  { from, to, whole }: Content["position"],
): void {
  if (from !== received)
    throw conflict(`Image ${id} has received ${received} of ${size} bytes, so content begins there, not at ${from}.`);
  const wrong = whole !== null && whole !== size ? whole : to !== null && to > size ? to : null;
  if (wrong !== null)
    throw new ApiError("content_range_invalid", `The file of image ${id} has ${size} bytes, not ${wrong}.`);
}

/** Returns when an image that gets content now is deleted unless more arrives, in milliseconds since 1970. */
export const uploadDue = ({ clock, uploadHours = 24 }: Pick<UploadContext, "clock" | "uploadHours">): number =>
  clock.now() + uploadHours * 3_600_000;

/** Creates the receiver of one service: two services on one host do not know of each other. */
export function createReceiver(context: UploadContext): Receiver {
  const { store, images, uploads, log } = context;
  /** Running requests by image; each promise resolves when its request has ended. */
  const running = new Map<number, { readonly controller: AbortController; readonly ended: Promise<void> }>();

  /** Stores what is on the host. Removes the file and throws if the image was deleted meanwhile. */
  async function note(tx: Tx, row: Uploading, received: number): Promise<ImageRow> {
    await lockImage(tx, row.id);
    const now = await noteReceived(tx, row, received, uploadDue(context));
    if (now === undefined) throw new ApiError("image_not_found", `Image ${row.id} was deleted during the upload.`);
    return now;
  }

  /** Ends the request before it, and returns the function that ends this one. */
  async function enter(id: number): Promise<{ readonly signal: AbortSignal; release(): void }> {
    for (let other = running.get(id); other !== undefined; other = running.get(id)) {
      other.controller.abort(conflict(`Another request continues the upload of image ${id}.`));
      await other.ended;
    }
    const controller = new AbortController();
    const { promise: ended, resolve } = Promise.withResolvers<void>();
    running.set(id, { controller, ended });
    const release = (): void => {
      if (running.get(id)?.controller === controller) running.delete(id);
      resolve();
    };
    return { signal: controller.signal, release };
  }

  async function requireSpace({ upload_size, upload_received }: Uploading): Promise<void> {
    const refusal = await findRefusal(images, log, { upload: upload_size - upload_received, sha256: null });
    if (refusal !== null) throw new ApiError("no_capacity", refusal);
  }

  /** Passes the content on. Resolves to the bytes that are on the host. */
  async function transfer(row: Uploading, content: Content, signal: AbortSignal): Promise<number> {
    const { upload_size: size } = row;
    const name = importFolder(row);
    let at = row.upload_received;
    let stored = at;
    let storedAt = performance.now();
    const sink = sinkOf(await uploads.openUpload(name, at, size));
    /** Stores progress. The last byte is stored only by the request that completes the upload. */
    const keepProgress = async (bytes: number): Promise<void> => {
      const safe = Math.min(bytes, size - 1);
      if (safe <= stored) return;
      await store.write((tx) => note(tx, row, safe));
      [stored, storedAt] = [safe, performance.now()];
    };
    try {
      await content.read(async (part) => {
        if (at + part.length > size)
          throw new ApiError("content_range_invalid", `The content goes beyond the ${size} bytes of the file.`);
        at += part.length;
        await sink.write(part);
        if (at - stored >= partBytes || performance.now() - storedAt >= partTime)
          await keepProgress(await uploads.syncUpload(name, 0));
      }, signal);
      await sink.end();
      const synced = await uploads.syncUpload(name, at);
      if (synced < at) throw new Error(`the host has stored ${synced} of ${at} bytes`);
      return at;
    } catch (error) {
      await keep(row, sink, at, keepProgress).catch((failure: unknown) =>
        log("warn", "The progress of an interrupted upload could not be stored.", { image: row.id, error: failure }),
      );
      throw error;
    }
  }

  /** Stores what an interrupted request has sent, or removes it if the image was deleted. */
  async function keep(
    row: Uploading,
    sink: Sink,
    sent: number,
    keepProgress: (bytes: number) => Promise<void>,
  ): Promise<void> {
    await sink.end().catch(() => {});
    try {
      await keepProgress(await uploads.syncUpload(importFolder(row), sent));
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      remove(row);
    }
  }

  /** Removes the file of an image that was deleted. */
  function remove(row: Uploading): void {
    uploads.removeUpload(importFolder(row)).catch((error: unknown) =>
      log("warn", "The upload of a deleted image could not be removed; the host removes it after 8 days.", {
        image: row.id,
        error,
      }),
    );
  }

  return {
    async receive(find, content) {
      const first = await find();
      requireContinuation(first, content.position);
      await requireSpace(first);
      const { signal, release } = await enter(first.id);
      try {
        // The request before it may have stored more, and the image may have been deleted.
        const row = await find();
        requireContinuation(row, content.position);
        const received = await transfer(row, content, signal).catch(async (error: unknown) => {
          if (!isBroken(error)) throw error;
          await requireSpace(row);
          log("warn", "The host did not take the content of an image.", { image: row.id, error });
          throw new ApiError(
            "engine_unavailable",
            `The host did not take the content: ${reasonOf(error)}. Read the image, and continue where it ends.`,
          );
        });
        let isGone = false;
        return {
          store: (tx) =>
            note(tx, row, received).catch((error: unknown) => {
              isGone = error instanceof ApiError;
              throw error;
            }),
          release() {
            release();
            if (isGone) remove(row);
          },
        };
      } catch (error) {
        release();
        throw error;
      }
    },
    end(id) {
      running.get(id)?.controller.abort(new ApiError("image_not_found", `Image ${id} was deleted.`));
    },
  };
}

/** Whether the host failed, and not the request. */
const isBroken = (error: unknown): boolean =>
  !(error instanceof ApiError) && !(error instanceof Error && ["Gone", "StorageError"].includes(error.name));

/** A stream to the host. */
export interface Sink {
  /** Resolves when the host takes more. */
  write(part: Uint8Array): Promise<void>;
  /** Resolves when the stream is closed: what was written is on disk then. Rejects if it was closed before. */
  end(): Promise<void>;
}

/** Returns the sink that writes to the stream. */
export function sinkOf(stream: NodeJS.WritableStream & { destroy(): void }): Sink {
  let failure: Error | null = null;
  let isEnding = false;
  const { promise: closed, resolve } = Promise.withResolvers<void>();
  /** Ends the wait of `write`. Promise.race with `closed` would keep a promise in memory for each part. */
  let proceed = (): void => {};
  stream.on("drain", () => proceed());
  stream.on("error", (error: Error) => {
    failure = error;
    proceed();
  });
  stream.once("close", () => {
    if (!isEnding) failure ??= new Error("the stream to the host was closed");
    proceed();
    resolve();
  });
  // The agent closes the connection at the end; this side must read to notice it.
  if ("resume" in stream) (stream as Duplex).resume();
  return {
    async write(part) {
      if (failure === null && !stream.write(part)) await new Promise<void>((resume) => void (proceed = resume));
      if (failure !== null) throw failure;
    },
    async end() {
      isEnding = true;
      if (failure === null) stream.end();
      await closed;
      if (failure !== null) throw failure;
    },
  };
}
