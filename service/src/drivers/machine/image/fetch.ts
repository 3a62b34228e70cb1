/**
 * Fetches an official cloud image of the catalogue: first its checksum, then the image, which is checked and converted like any foreign
 * one.
 */
import { basename } from "node:path";
import type { Exec } from "../../exec.ts";
import type { CatalogueEntry } from "./catalogue.ts";
import { downloadText, parseSource } from "./download.ts";
import { downloadImage, type MakeOptions } from "./import.ts";
import { type GuestImage, ImageError, readImage } from "./manifest.ts";

/**
 * Returns the checksum of `file` from the checksum file of a distribution, in one of three formats: `HASH  NAME`, `HASH (NAME) = HASH`
 * (BSD), or a single hash. In lower case; null if there is none.
 */
export function findSum(text: string, file: string, hash: CatalogueEntry["hash"]): string | null {
  const digits = hash === "sha256" ? 64 : 128;
  const gnu = new RegExp(`^([0-9a-f]{${digits}}) [ *](?:\\./)?(\\S+)$`, "i");
  const bsd = new RegExp(`^${hash} \\((\\S+)\\) = ([0-9a-f]{${digits}})$`, "i");
  for (const line of text.split(/\r?\n/)) {
    const [, sum, name] = gnu.exec(line.trim()) ?? [];
    if (sum !== undefined && name === file) return sum.toLowerCase();
    const [, named, value] = bsd.exec(line.trim()) ?? [];
    if (value !== undefined && named === file) return value.toLowerCase();
  }
  const alone = text.trim();
  return new RegExp(`^[0-9a-f]{${digits}}$`, "i").test(alone) ? alone.toLowerCase() : null;
}

/**
 * Fetches the currently published image unless this version exists already. Throws an `ImageError` or the reason of `signal`, and then
 * leaves no files.
 */
export async function fetchImage(
  exec: Exec,
  images: string,
  entry: CatalogueEntry,
  options: MakeOptions,
): Promise<GuestImage> {
  const url = parseSource(entry.url, options);
  const file = basename(url.pathname);
  const sum = findSum(
    await downloadText(parseSource(new URL(entry.sums, url).href, options), options),
    file,
    entry.hash,
  );
  if (sum === null) throw new ImageError("checksum", `"${url.host}" publishes no checksum of ${file}.`);
  const present = await readImage(images, entry.name).catch(() => null);
  // Compared by checksum, since the address always leads to the latest version.
  if (present?.version === sum.slice(0, 16)) return present;
  return downloadImage(exec, images, entry, { url, sum, hash: entry.hash }, options);
}
