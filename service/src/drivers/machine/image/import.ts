/**
 * Creates an image from a foreign disk, from an address or from the import folder. Both go through the same steps: draft, checksum, header
 * check, conversion to a new qcow2, and publishing of the complete image. On failure nothing is left.
 */
import { createHash } from "node:crypto";
import { createReadStream, type Stats } from "node:fs";
import { chmod, copyFile, link, lstat, rename, rm, stat, statfs } from "node:fs/promises";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import type { Exec } from "../../exec.ts";
import { keepRights } from "../../privateroot.ts";
import type { DiskTools } from "../disk/tool.ts";
import type { Family } from "../interface.ts";
import { convertDisk, findBoot, longest } from "./convert.ts";
import { type DownloadOptions, downloadFile, parseSource } from "./download.ts";
import { downloadPrefix, inDraft, placeImage } from "./folder.ts";
import { gigabyte } from "./header.ts";
import {
  type GuestImage,
  ImageError,
  inspectDisk,
  isMissing,
  notEnoughSpace,
  type Renewal,
  readImage,
} from "./manifest.ts";

/** Description of the image to create. */
export interface ImportSource {
  readonly name: string;
  readonly title: string;
  readonly family: Family;
  readonly os: string;
  /** MB. */
  readonly minRam: number;
  /** GB; more when the disk is larger. */
  readonly hdd: number;
  /** Absent or null: unknown. */
  readonly guest?: Renewal | null;
}

/** Options of a download, the programs that read disks, and the time of creation. */
export interface MakeOptions extends DownloadOptions {
  readonly tools: DiskTools;
  /** Creation time of the image in milliseconds since 1970. */
  readonly now: number;
}

/** The expected checksum, in lower-case hexadecimal digits. */
interface ExpectedSum {
  readonly sum: string;
  readonly hash: "sha256" | "sha512";
}

async function digestFile(path: string, hash: string, signal?: AbortSignal): Promise<string> {
  const digest = createHash(hash);
  await pipeline(createReadStream(path, { highWaterMark: 1 << 20 }), digest, { ...(signal && { signal }) });
  return digest.digest("hex");
}

async function checkSum(path: string, expected: ExpectedSum, what: string, options: MakeOptions): Promise<void> {
  const sum = await digestFile(path, expected.hash, options.signal);
  if (sum !== expected.sum)
    throw new ImageError("checksum", `The ${expected.hash} of ${what} is ${sum}; expected ${expected.sum}.`);
}

/** Returns the usable bytes of the file system; 1 GB stays reserved. */
export const freeSpace = async (folder: string): Promise<number> => {
  const { bavail, bsize } = await statfs(folder);
  return Math.max(0, bavail * bsize - gigabyte);
};

/** Checks and converts the file `foreign` in the draft, and publishes the image. */
async function finish(
  images: string,
  draft: string,
  spec: ImportSource,
  [version, source]: readonly [string, string],
  options: MakeOptions,
): Promise<GuestImage> {
  const foreign = join(draft, "foreign");
  const disk = await inspectDisk(foreign);
  await chmod(foreign, 0o644);
  const file = `disk-${version}.qcow2`;
  await convertDisk(options.tools, draft, "foreign", disk, file, options.signal);
  await rm(foreign);
  const image: GuestImage = {
    name: spec.name,
    title: spec.title,
    family: spec.family,
    os: spec.os,
    minRam: spec.minRam,
    hdd: Math.max(spec.hdd, Math.ceil(disk.size / gigabyte)),
    boot: await findBoot(options.tools, draft, file),
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
 * Downloads and imports a disk with the expected checksum; `url` is from `parseSource`. Resumes a download that a killed process began.
 * Throws an `ImageError`, or the reason of `signal`.
 */
export async function downloadImage(
  exec: Exec,
  images: string,
  spec: ImportSource,
  { url, ...expected }: { readonly url: URL } & ExpectedSum,
  options: MakeOptions,
): Promise<GuestImage> {
  return inDraft(exec, images, spec.name, async (draft) => {
    const path = join(draft, `${downloadPrefix}${expected.sum.slice(0, 32)}`);
    await downloadFile(url, path, await freeSpace(draft), options);
    await checkSum(path, expected, `"${url.href}"`, options);
    await rename(path, join(draft, "foreign"));
    return finish(images, draft, spec, [expected.sum.slice(0, 16), url.href], options);
  });
}

/** Imports from an address that a user entered. `sha256`: hexadecimal digits, upper or lower case. */
export async function importUrl(
  exec: Exec,
  images: string,
  spec: ImportSource,
  { url, sha256 }: { readonly url: string; readonly sha256: string },
  options: MakeOptions,
): Promise<GuestImage> {
  if (!/^[0-9a-f]{64}$/i.test(sha256)) throw new ImageError("checksum", "A SHA-256 has 64 hexadecimal digits.");
  const sum = sha256.toLowerCase();
  return downloadImage(exec, images, spec, { url: parseSource(url, options), sum, hash: "sha256" }, options);
}

/** Whether that can be imported from the import folder. Throws an `ImageError` when not. */
export async function findFile(
  folder: string,
  file: string,
): Promise<{ readonly path: string; readonly stats: Stats }> {
  if (!/^[^/\p{Cc}]{1,255}$/u.test(file) || file === "." || file === "..")
    throw new ImageError("missing", "The name of a file to import has no folder in it.");
  const path = join(folder, file);
  const stats = await lstat(path).catch((error: unknown) => {
    if (isMissing(error)) throw new ImageError("missing", `There is no file "${file}" in the import folder.`, error);
    throw error;
  });
  // A symbolic link could lead to any file that root can read.
  if (!stats.isFile()) throw new ImageError("unsafe", `"${file}" in the import folder is not a regular file.`);
  return { path, stats };
}

/** Imports a file of the import folder, which stays there. `sha256` null: the checksum is not verified. */
export async function importFile(
  exec: Exec,
  images: string,
  spec: ImportSource,
  { folder, file, sha256 }: { readonly folder: string; readonly file: string; readonly sha256: string | null },
  options: MakeOptions,
): Promise<GuestImage> {
  const { path, stats } = await findFile(folder, file);
  return inDraft(exec, images, spec.name, async (draft) => {
    const [needed, free] = [stats.blocks * 512, await freeSpace(draft)];
    if (needed > free) throw notEnoughSpace({ needed, free });
    const copy = join(draft, "foreign");
    // Other processes cannot change the copy; it shares blocks and keeps holes. The file may belong to any user.
    const rights = process.getuid?.() === 0 ? keepRights(["dac_read_search"]) : [];
    await exec.run([...rights, "cp", "--reflink=auto", "--sparse=auto", "--", path, copy], {
      timeout: longest,
      ...(options.signal && { signal: options.signal }),
    });
    options.progress?.((await stat(copy)).size, stats.size);
    const sum = await digestFile(copy, "sha256", options.signal);
    if (sha256 !== null && sum !== sha256.toLowerCase())
      throw new ImageError("checksum", `The sha256 of "${file}" is ${sum}; expected ${sha256.toLowerCase()}.`);
    return finish(images, draft, spec, [sum.slice(0, 16), file], options);
  });
}

/**
 * Imports a complete upload, which stays there for a repeated call. `bytes`: its size. `sha256` null: the checksum is not verified. Returns the
 * image if an earlier call has made it.
 */
export async function importUpload(
  exec: Exec,
  images: string,
  spec: ImportSource,
  { folder, bytes, sha256 }: { readonly folder: string; readonly bytes: number; readonly sha256: string | null },
  options: MakeOptions,
): Promise<GuestImage> {
  const present = await readImage(images, spec.name).catch(() => null);
  if (present !== null) return present;
  return inDraft(exec, images, spec.name, async (draft) => {
    const foreign = join(draft, "foreign");
    const path = join(folder, spec.name);
    await link(path, foreign)
      // The folder of images may be on another disk.
      .catch(() => copyFile(path, foreign))
      .catch((error: unknown) => {
        if (isMissing(error)) throw new ImageError("missing", "The uploaded file is not on the host any more.", error);
        throw error;
      });
    const { size } = await lstat(foreign);
    if (size !== bytes) throw new ImageError("unusable", `The uploaded file has ${size} bytes; expected ${bytes}.`);
    const sum = await digestFile(foreign, "sha256", options.signal);
    if (sha256 !== null && sum !== sha256.toLowerCase())
      throw new ImageError("checksum", `The sha256 of the uploaded file is ${sum}; expected ${sha256.toLowerCase()}.`);
    return finish(images, draft, spec, [sum.slice(0, 16), "upload"], options);
  });
}
