/** An official cloud image of the catalogue: its checksum first, then the image itself, judged and unpacked like any foreign one. */
import { basename } from "node:path";
import type { Exec } from "../../exec.ts";
import type { CatalogueEntry } from "./catalogue.ts";
import { downloadText, parseSource } from "./download.ts";
import { type MakeOptions, obtainUrl } from "./import.ts";
import { type GuestImage, ImageError, readImage } from "./manifest.ts";

/**
 * The checksum of `file` in the text that a distribution publishes, in any of the three ways that are in use: `HASH  NAME`,
 * `HASH (NAME) = HASH` as BSD writes it, or a hash alone. Lower case; null when there is none.
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
 * The image as its maker publishes it now; nothing is fetched when that is here already. Throws an `ImageError`, or whatever `signal`
 * says; then nothing is left of it.
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
  // Compared by checksum, since the address is that of whatever is the latest.
  if (present?.version === sum.slice(0, 16)) return present;
  return obtainUrl(exec, images, entry, { url, sum, hash: entry.hash }, options);
}
