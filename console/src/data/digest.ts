/** The SHA-256 of a file of any size. The library is loaded when the first file is read. */

/** Bytes that are read at once: short enough that the page stays responsive. */
const partBytes = 1 << 20;

/** Resolves to 64 hexadecimal digits. `onProgress` gets the part that was read, from 0 to 1. */
export async function digestFile(file: Blob, onProgress: (part: number) => void, signal: AbortSignal): Promise<string> {
  const { sha256 } = await import("@noble/hashes/sha2.js");
  const hash = sha256.create();
  for (let at = 0; at < file.size; at += partBytes) {
    hash.update(new Uint8Array(await file.slice(at, at + partBytes).arrayBuffer()));
    signal.throwIfAborted();
    onProgress(Math.min(1, (at + partBytes) / file.size));
  }
  return Array.from(hash.digest(), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
