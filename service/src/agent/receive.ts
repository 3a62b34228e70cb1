/**
 * Receives a file of an image or disk copy from an agent. It continues where an interrupted transfer ended, also one of an earlier process,
 * and the file gets its name only after its SHA-256 was checked.
 */
import { createHash } from "node:crypto";
import { createReadStream, createWriteStream } from "node:fs";
import { rename, rm, stat } from "node:fs/promises";
import { pipeline } from "node:stream/promises";
import { syncPath } from "../base/fsync.ts";
import type { ContentFile, ContentOf, Contents } from "../drivers/content/interface.ts";

/** Interruptions without any progress after which the transfer fails. */
const mostFailures = 5;

const sizeOf = (path: string): Promise<number> =>
  stat(path).then(
    ({ size }) => size,
    () => 0,
  );

/** Writes the file to `path`; resolves when it is complete and on disk. Rejects if its checksum is wrong, and removes it then. */
export async function receiveFile(contents: Contents, of: ContentOf, file: ContentFile, path: string): Promise<void> {
  const part = `${path}.part`;
  let failures = 0;
  for (let size = await sizeOf(part); size < file.bytes || size === 0; ) {
    const before = size;
    try {
      await pipeline(
        await contents.openFile(of, file.number, size),
        createWriteStream(part, { flags: "a", mode: 0o600 }),
      );
    } catch (error) {
      if (failures >= mostFailures) throw error;
    }
    size = await sizeOf(part);
    if (size === file.bytes) break;
    failures = size > before ? 0 : failures + 1;
    if (failures > mostFailures) throw new Error(`${file.name} ended after ${size} of ${file.bytes} bytes`);
  }
  const hash = createHash("sha256");
  await pipeline(createReadStream(part, { highWaterMark: 1 << 20 }), hash);
  const sum = hash.digest("hex");
  if (sum !== file.sha256) {
    await rm(part, { force: true });
    throw new Error(`the SHA-256 of ${file.name} is ${sum}; expected ${file.sha256}`);
  }
  await syncPath(part);
  await rename(part, path);
}
