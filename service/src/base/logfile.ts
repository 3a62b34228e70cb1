/**
 * Files to which a process appends its output for as long as it runs. Guests and peers cause some of it, so the file of a very long log is
 * cut to its beginning and end; otherwise they could fill a disk of the host.
 */
import {
  closeSync,
  constants,
  existsSync,
  fstatSync,
  ftruncateSync,
  lstatSync,
  openSync,
  readSync,
  writeSync,
} from "node:fs";

/** Bytes of a log before it is trimmed, and what remains of its two ends. */
const maxLogBytes = 8 * 2 ** 20;
const trimmedBytes = { first: 256 * 1024, last: 2 ** 20 };

/** Reads at most `length` bytes from the position `from` of an open file. */
export function readAt(file: number, from: number, length: number): Buffer {
  const buffer = Buffer.alloc(length);
  return buffer.subarray(0, readSync(file, buffer, 0, length, from));
}

/** Trims a log that is too long. Its process writes in append mode, so it continues at the new end; output during the trim may be lost. */
export function trimLog(path: string): void {
  if ((lstatSync(path, { throwIfNoEntry: false })?.size ?? 0) <= maxLogBytes) return;
  const file = openSync(path, constants.O_RDWR | constants.O_NOFOLLOW);
  try {
    const { size } = fstatSync(file);
    const first = readAt(file, 0, trimmedBytes.first);
    const last = readAt(file, size - trimmedBytes.last, trimmedBytes.last);
    const gap = Buffer.from(`\n[${size - trimmedBytes.first - trimmedBytes.last} bytes are left out here]\n`);
    ftruncateSync(file, 0);
    writeSync(file, Buffer.concat([first, gap, last]), 0, null, 0);
  } finally {
    closeSync(file);
  }
}

/** Returns the last characters of a log, at most `length`, without white space around them; "" if it does not exist. */
export function endOfLog(path: string, length: number): string {
  if (!existsSync(path)) return "";
  const file = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW);
  try {
    // A character has at most 4 bytes.
    const bytes = 4 * length;
    return readAt(file, Math.max(0, fstatSync(file).size - bytes), bytes)
      .toString()
      .trim()
      .slice(-length);
  } finally {
    closeSync(file);
  }
}
