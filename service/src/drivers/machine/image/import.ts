/**
 * Makes an image of a foreign disk, which comes from an address or lies in the folder for imports. Whatever it is, it goes the same
 * way: into a draft, checksum, header, a fresh qcow2, and only then does the image appear, whole. On any failure nothing is left.
 */
import { createHash } from "node:crypto";
import { createReadStream, type Stats } from "node:fs";
import { chmod, lstat, rename, rm, stat, statfs } from "node:fs/promises";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import type { Exec } from "../../exec.ts";
import type { Family } from "../interface.ts";
import { convertDisk, findBoot } from "./convert.ts";
import { type DownloadOptions, downloadFile, parseSource } from "./download.ts";
import { downloadPrefix, openDraft, placeImage } from "./folder.ts";
import { gigabyte } from "./header.ts";
import { type GuestImage, ImageError, isMissing, judgeDisk, type Renewal } from "./manifest.ts";

/** What is said about the image that a disk becomes. */
export interface ImportSource {
  readonly name: string;
  readonly title: string;
  readonly family: Family;
  readonly os: string;
  /** MB. */
  readonly minRam: number;
  /** GB; more when the disk is larger. */
  readonly hdd: number;
  /** Absent: not known. */
  readonly guest?: Renewal | null;
}

export interface MakeOptions extends DownloadOptions {
  /** Milliseconds since 1970: when the image is said to be made. */
  readonly now: number;
}

/** Lower-case hexadecimal digits. */
interface Promised {
  readonly sum: string;
  readonly hash: "sha256" | "sha512";
}

async function digestFile(path: string, hash: string, signal?: AbortSignal): Promise<string> {
  const digest = createHash(hash);
  await pipeline(createReadStream(path, { highWaterMark: 1 << 20 }), digest, { ...(signal && { signal }) });
  return digest.digest("hex");
}

async function checkSum(path: string, promised: Promised, what: string, options: MakeOptions): Promise<void> {
  const sum = await digestFile(path, promised.hash, options.signal);
  if (sum !== promised.sum)
    throw new ImageError("checksum", `The ${promised.hash} of ${what} is ${sum}, not ${promised.sum} as promised.`);
}

/** Runs `work` in a draft, which is gone afterwards unless the image was placed. */
async function inDraft<Result>(
  exec: Exec,
  images: string,
  name: string,
  work: (draft: string) => Promise<Result>,
): Promise<Result> {
  const draft = await openDraft(exec, images, name);
  try {
    return await work(draft);
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
}

const room = async (folder: string): Promise<number> => {
  const { bavail, bsize } = await statfs(folder);
  return Math.max(0, bavail * bsize - gigabyte);
};

/** Judges and unpacks the file `foreign` of the draft, and makes the image appear. */
async function finish(
  exec: Exec,
  images: string,
  draft: string,
  spec: ImportSource,
  [version, source]: readonly [string, string],
  options: MakeOptions,
): Promise<GuestImage> {
  const foreign = join(draft, "foreign");
  const disk = await judgeDisk(foreign);
  await chmod(foreign, 0o644);
  const file = `disk-${version}.qcow2`;
  await convertDisk(exec, draft, "foreign", disk, file, options.signal);
  await rm(foreign);
  const image: GuestImage = {
    name: spec.name,
    title: spec.title,
    family: spec.family,
    os: spec.os,
    minRam: spec.minRam,
    hdd: Math.max(spec.hdd, Math.ceil(disk.size / gigabyte)),
    boot: await findBoot(exec, draft, file),
    format: "qcow2",
    files: { disk: file },
    version,
    source,
    made: options.now,
    guest: spec.guest ?? null,
  };
  options.signal?.throwIfAborted();
  await placeImage(images, draft, image);
  return image;
}

/**
 * From an address, as `parseSource` gives it, with the checksum that it must have. What a killed process had fetched of the file with
 * that checksum is not fetched again. Throws an `ImageError`, or whatever `signal` says.
 */
export async function obtainUrl(
  exec: Exec,
  images: string,
  spec: ImportSource,
  { url, ...promised }: { readonly url: URL } & Promised,
  options: MakeOptions,
): Promise<GuestImage> {
  return inDraft(exec, images, spec.name, async (draft) => {
    const path = join(draft, `${downloadPrefix}${promised.sum.slice(0, 32)}`);
    await downloadFile(url, path, await room(draft), options);
    await checkSum(path, promised, `"${url.href}"`, options);
    await rename(path, join(draft, "foreign"));
    return finish(exec, images, draft, spec, [promised.sum.slice(0, 16), url.href], options);
  });
}

/** From an address that a user names. `sha256`: hexadecimal digits, upper or lower case. */
export async function importUrl(
  exec: Exec,
  images: string,
  spec: ImportSource,
  { url, sha256 }: { readonly url: string; readonly sha256: string },
  options: MakeOptions,
): Promise<GuestImage> {
  if (!/^[0-9a-f]{64}$/i.test(sha256)) throw new ImageError("checksum", "A SHA-256 has 64 hexadecimal digits.");
  const sum = sha256.toLowerCase();
  return obtainUrl(exec, images, spec, { url: parseSource(url, options), sum, hash: "sha256" }, options);
}

/** Whether that can be imported from the folder for imports. Throws an `ImageError` when not. */
export async function findFile(
  folder: string,
  file: string,
): Promise<{ readonly path: string; readonly stats: Stats }> {
  if (!/^[^/\p{Cc}]{1,255}$/u.test(file) || file === "." || file === "..")
    throw new ImageError("missing", "The name of a file to import has no folder in it.");
  const path = join(folder, file);
  const stats = await lstat(path).catch((error: unknown) => {
    if (isMissing(error))
      throw new ImageError("missing", `There is no file "${file}" in the folder for imports.`, error);
    throw error;
  });
  // A link could lead to anything that we may read.
  if (!stats.isFile()) throw new ImageError("unsafe", `"${file}" in the folder for imports is no ordinary file.`);
  return { path, stats };
}

/** From the file of that name in the folder for imports, which stays there. `sha256` null: it is not checked. */
export async function importFile(
  exec: Exec,
  images: string,
  spec: ImportSource,
  { folder, file, sha256 }: { readonly folder: string; readonly file: string; readonly sha256: string | null },
  options: MakeOptions,
): Promise<GuestImage> {
  const { path, stats } = await findFile(folder, file);
  return inDraft(exec, images, spec.name, async (draft) => {
    if (stats.blocks * 512 > (await room(draft)))
      throw new ImageError("full", "There is not enough room on this machine for the image.");
    const copy = join(draft, "foreign");
    // Ours alone from here on; shared blocks and holes stay what they are.
    await exec.run(["cp", "--reflink=auto", "--sparse=auto", "--", path, copy], {
      timeout: 3_600_000,
      ...(options.signal && { signal: options.signal }),
    });
    options.progress?.((await stat(copy)).size, stats.size);
    const sum = await digestFile(copy, "sha256", options.signal);
    if (sha256 !== null && sum !== sha256.toLowerCase())
      throw new ImageError("checksum", `The sha256 of "${file}" is ${sum}, not ${sha256.toLowerCase()} as promised.`);
    return finish(exec, images, draft, spec, [sum.slice(0, 16), file], options);
  });
}
