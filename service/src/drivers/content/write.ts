/** Writes the files of contents that arrive from elsewhere: never beyond their size, and never into the reserve of the disk. */
import { type FileHandle, statfs } from "node:fs/promises";
import { Writable } from "node:stream";
import { callbackify } from "node:util";

/** Bytes of the disk that stay free. */
const reserve = 1 << 30;

/** Returns the free bytes of the disk of a folder. */
export async function freeBytes(folder: string): Promise<number> {
  const { bavail, bsize } = await statfs(folder);
  return bavail * bsize;
}

/** Rejects if the disk of the folder has no space for so many bytes. */
export async function requireFree(folder: string, bytes: number, freeOf = freeBytes): Promise<void> {
  if (bytes > (await freeOf(folder)) - reserve)
    throw new Error(`the disk of this host has no space for ${bytes} bytes, besides 1 GiB that stays free`);
}

/** Bytes after which the free space is checked again: others write to the disk at the same time. */
const checkedBytes = 16 << 20;

/** Space check and end of a stream. */
export interface WriteOptions {
  /** Rejects if the disk has no space for so many bytes. */
  readonly requireSpace: (bytes: number) => Promise<void>;
  readonly closed: () => void;
  /** Called with the position after each write. */
  readonly wrote?: (at: number) => void;
}

/**
 * Returns a stream that writes from a position to at most `most` bytes. Its end is on disk when it finishes. `closed` is called when the file
 * is closed, also after an error.
 */
export function writeTo(
  handle: FileHandle,
  from: number,
  most: number,
  { requireSpace, closed, wrote }: WriteOptions,
): Writable {
  let at = from;
  let checked = from;
  async function write(bytes: Buffer): Promise<void> {
    if (at + bytes.length > checked) {
      checked = Math.min(most, at + Math.max(bytes.length, checkedBytes));
      await requireSpace(checked - at);
    }
    if (at + bytes.length > most) throw new Error(`the file has more than ${most} bytes`);
    for (let rest = bytes; rest.length > 0; ) {
      const { bytesWritten } = await handle.write(rest, 0, rest.length, at);
      at += bytesWritten;
      rest = rest.subarray(bytesWritten);
    }
    wrote?.(at);
  }
  async function close(error: Error | null): Promise<void> {
    try {
      await handle.close();
    } finally {
      closed();
    }
    if (error !== null) throw error;
  }
  return new Writable({
    highWaterMark: 1 << 18,
    write: callbackify((bytes: Buffer, _encoding: string) => write(bytes)),
    final: callbackify(() => handle.sync()),
    destroy: callbackify(close),
  });
}
