/**
 * Uploads a file as an image, in parts, and continues after interruptions: what the service shows as received is never sent again. Parts grow
 * while they take less than a second, so that progress is shown often and fast connections are used.
 */
import type { Image, imageOperations } from "./catalog.ts";
import type { Body } from "./operation.ts";
import { ApiError, ConnectionError, isPassing } from "./transport.ts";

/** Content of a file: a `File` or `Blob`, or a stream from its beginning. */
export type UploadSource = Blob | AsyncIterable<Uint8Array>;
/** The image to create, or the id of one whose upload continues. A stream needs `Size`, and must have exactly so many bytes. */
export type UploadTarget = Body<typeof imageOperations.createImage> | { readonly ID: number };

/** Options of `uploadImage`. */
export interface UploadOptions {
  /** Is called with the image after its creation and after each part. `Upload.Received` and `Upload.Size` show the progress. */
  readonly onProgress?: (image: Image) => void;
  /** Ends the upload. The image waits for more content until `Upload.Expires`. */
  readonly signal?: AbortSignal;
  /** Milliseconds without progress after which a lost connection is an error. Default 600,000. */
  readonly patience?: number;
}

/** The requests of an upload. */
export interface UploadCalls {
  create(body: Body<typeof imageOperations.createImage>, signal: AbortSignal | undefined): Promise<Image>;
  read(id: number, signal: AbortSignal | undefined): Promise<Image>;
  write(
    id: number,
    content: Blob | Uint8Array<ArrayBuffer>,
    range: string,
    signal: AbortSignal | undefined,
  ): Promise<Image>;
  now(): number;
  /** Waits after this number of failures. */
  pause(failures: number, signal: AbortSignal | undefined): Promise<void>;
}

/** Bytes of the first, the smallest and the largest part. */
const sizes = { first: 1 << 20, least: 1 << 18, most: 1 << 25 } as const;
/** Milliseconds that a part should take at least and at most. */
const times = { least: 500, most: 3000 } as const;
const defaultPatience = 600_000;

/** A source from which a part can be taken again until a later one was taken. */
interface Reader {
  /** Bytes of the source; null: unknown. */
  readonly size: number | null;
  /** `isLast`: the source must end after this part. Throws `TypeError` if the source has less or more bytes. */
  take(from: number, length: number, isLast: boolean): Promise<Blob | Uint8Array<ArrayBuffer>>;
  /** Ends a stream before its end. */
  close(): Promise<void>;
}

function openSource(source: UploadSource): Reader {
  if (source instanceof Blob)
    return {
      size: source.size,
      take: async (from, length) => source.slice(from, from + length),
      close: async () => {},
    };
  const parts = source[Symbol.asyncIterator]();
  let start = 0;
  let held = new Uint8Array(0);
  /** Reads on, and returns true if no byte follows. */
  async function isAtEnd(): Promise<boolean> {
    for (;;) {
      const next: IteratorResult<Uint8Array, unknown> = await parts.next();
      if (next.done === true) return true;
      if (next.value.length > 0) return false;
    }
  }
  return {
    size: null,
    async take(from, length, isLast) {
      if (from < start) throw new TypeError("the stream cannot be read again from an earlier position");
      const chunks = [held];
      let end = start + held.length;
      while (end < from + length) {
        const next: IteratorResult<Uint8Array, unknown> = await parts.next();
        if (next.done === true) throw new TypeError(`the stream ended after ${end} bytes`);
        chunks.push(next.value as Uint8Array<ArrayBuffer>);
        end += next.value.length;
        // What was received before is dropped as it arrives.
        while (chunks.length > 1 && start + (chunks[0]?.length ?? 0) <= from) start += chunks.shift()?.length ?? 0;
      }
      held = new Uint8Array(chunks.reduce((sum, { length: bytes }) => sum + bytes, 0));
      let at = 0;
      for (const chunk of chunks) {
        held.set(chunk, at);
        at += chunk.length;
      }
      held = held.subarray(from - start);
      start = from;
      if (isLast && (held.length > length || !(await isAtEnd())))
        throw new TypeError(`the stream has more than ${from + length} bytes`);
      return held.subarray(0, length);
    },
    async close() {
      await parts.return?.();
    },
  };
}

/** True if the upload can continue after this error. */
const isInterruption = (error: unknown): boolean =>
  error instanceof ConnectionError ||
  (error instanceof ApiError &&
    error.code !== "no_capacity" &&
    (isPassing(error) || error.status === 408 || error.code === "upload_conflict"));

/** Uploads the file, and closes a stream. Resolves to the image when all content was received; it is then checked and converted. */
export async function uploadFile(
  calls: UploadCalls,
  target: UploadTarget,
  source: UploadSource,
  options: UploadOptions = {},
): Promise<Image> {
  const reader = openSource(source);
  try {
    return await send(calls, target, reader, options);
  } finally {
    // An error of the upload is not replaced by one of the end of its source. A canceled one does not wait for a chunk that may never come.
    const closed = reader.close().catch(() => undefined);
    if (options.signal?.aborted !== true) await closed;
  }
}

/** Settles as `work` does, or rejects with the reason of the signal at once. */
function orAborted<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return work;
  return new Promise((resolve, reject) => {
    const stop = (): void => reject(signal.reason as Error);
    signal.addEventListener("abort", stop, { once: true });
    void work.then(resolve, reject).finally(() => signal.removeEventListener("abort", stop));
  });
}

async function send(
  calls: UploadCalls,
  target: UploadTarget,
  reader: Reader,
  { onProgress, signal, patience = defaultPatience }: UploadOptions,
): Promise<Image> {
  let image = await begin(calls, target, reader, signal);
  let size: number = sizes.first;
  let failures = 0;
  let progressAt = calls.now();
  for (;;) {
    onProgress?.(image);
    const { Upload: upload, ID: id } = image;
    if (upload === null) return image;
    const { Received: from, Size: whole } = upload;
    signal?.throwIfAborted();
    try {
      const length = Math.min(size, whole - from);
      const part = await orAborted(reader.take(from, length, from + length === whole), signal);
      const begun = calls.now();
      image = await calls.write(id, part, `bytes ${from}-${from + length - 1}/${whole}`, signal);
      const took = calls.now() - begun;
      if (took < times.least) size = Math.min(size * 2, sizes.most);
      else if (took > times.most) size = Math.max(size / 2, sizes.least);
    } catch (error) {
      signal?.throwIfAborted();
      if (!isInterruption(error) || calls.now() - progressAt > patience) throw error;
      await calls.pause(failures++, signal);
      image = await readAgain(calls, image, signal);
    }
    if ((image.Upload?.Received ?? whole) <= from) continue;
    progressAt = calls.now();
    failures = 0;
  }
}

async function begin(
  calls: UploadCalls,
  target: UploadTarget,
  { size }: Reader,
  signal: AbortSignal | undefined,
): Promise<Image> {
  if (!("ID" in target)) return calls.create({ ...target, ...(size !== null && { Size: size }) }, signal);
  const image = await calls.read(target.ID, signal);
  const { Upload: upload, State, Name } = image;
  if (upload === null) throw new TypeError(`image ${target.ID} (${Name}) is ${State}, so it waits for no content`);
  if (size !== null && size !== upload.Size)
    throw new TypeError(`the file has ${size} bytes, and image ${target.ID} (${Name}) waits for ${upload.Size}`);
  return image;
}

/** Reads the image, or returns it as before while the service does not respond. */
const readAgain = (calls: UploadCalls, image: Image, signal: AbortSignal | undefined): Promise<Image> =>
  calls.read(image.ID, signal).catch((error: unknown) => {
    signal?.throwIfAborted();
    if (isInterruption(error)) return image;
    throw error;
  });
