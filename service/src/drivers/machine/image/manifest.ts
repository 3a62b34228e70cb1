/**
 * What a guest image is on disk: one folder `<images>/<name>/` that holds `image.json` and the files that it names. The folder may
 * have been carried here by hand, so everything in it is hostile until parsed. Files are named by version and never written again,
 * since the disks of servers lie over them: a new version is a new file, and `image.json` is what changes over.
 */
import { lstat, open, readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Family, Identity } from "../interface.ts";
import { pick, textAt } from "../qemu/qmp.ts";
import { type Disk, headerBytes, judgeHeader } from "./header.ts";

/** `kernel`: started from `files.kernel` and `files.initrd`; `disk`: by BIOS from its own boot sector; `uefi`: by UEFI from its own. */
export type Boot = "kernel" | "disk" | "uefi";

/** Our small Linux, or cloud-init. */
export type Renewal = "tiny" | "cloud-init";

export interface GuestImage {
  /** The folder's name. */
  readonly name: string;
  /** For people. */
  readonly title: string;
  readonly family: Family;
  /** `Linux`, `Debian`, `Ubuntu`, … */
  readonly os: string;
  /** MB that a server needs at least. */
  readonly minRam: number;
  /** GB that a server's disk needs at least. */
  readonly hdd: number;
  readonly boot: Boot;
  /** Of `files.disk`. */
  readonly format: "qcow2";
  /** Names in the folder; kernel and initrd exactly when `boot` is `kernel`. */
  readonly files: { readonly disk: string; readonly kernel?: string; readonly initrd?: string };
  readonly version: string;
  /** Where it came from, for people: an address, a file's name, a recipe. */
  readonly source: string;
  /** Milliseconds since 1970. */
  readonly made: number;
  /** Of one that was made of a server. */
  readonly identity?: Identity;
  /** What carries out user data and makes a guest anew for an instance id, also in images made of it; null: not known. */
  readonly guest: Renewal | null;
}

/**
 * `unsafe`: the image could make QEMU read or write files of this machine; `unusable`: no disk image that we take; `checksum`: other
 * bytes than promised; `address`: not one that we fetch from; `unreachable`: the other side did not give it; `missing`: no such image
 * or file; `full`: no room for it.
 */
export type ImageDefect = "unsafe" | "unusable" | "checksum" | "address" | "unreachable" | "missing" | "full";

/** The message is one sentence that may be shown to whoever asked for the image. */
export class ImageError extends Error {
  readonly trouble: ImageDefect;
  constructor(trouble: ImageDefect, message: string, cause?: unknown) {
    super(message, { cause });
    this.name = "ImageError";
    this.trouble = trouble;
  }
}

export const manifestName = "image.json";

const namePattern = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;
const filePattern = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;

/** A name that may become a folder: letters, digits, dot, underscore, hyphen, 64 at most, no `.part` at its end. */
export const isImageName = (name: string): boolean => namePattern.test(name) && !name.endsWith(".part");

/** Reads the text of an `image.json`. Throws an `ImageError` that says which value is wrong. */
export function parseImage(text: string, name: string): GuestImage {
  const refuse = (what: string, cause?: unknown): never => {
    throw new ImageError("unusable", `${manifestName} of image "${name}": ${what}.`, cause);
  };
  let given: unknown;
  try {
    given = JSON.parse(text);
  } catch (error) {
    refuse("it is no JSON", error);
  }
  if (typeof given !== "object" || given === null || Array.isArray(given)) refuse("it is no object");
  const fields = given as Readonly<Record<string, unknown>>;
  const readText = (key: string, pattern: RegExp): string => {
    const value = fields[key];
    return typeof value === "string" && pattern.test(value) ? value : refuse(`"${key}" is not what it must be`);
  };
  const readNumber = (key: string, least: number, most: number): number => {
    const value = fields[key];
    return typeof value === "number" && Number.isInteger(value) && value >= least && value <= most
      ? value
      : refuse(`"${key}" must be an integer from ${least} to ${most}`);
  };
  const line = /^[^\p{Cc}]{1,200}$/u;
  if (readText("name", namePattern) !== name) refuse('"name" is not that of its folder');
  const boot = readText("boot", /^(kernel|disk|uefi)$/) as Boot;
  const files = fields["files"];
  if (typeof files !== "object" || files === null) refuse('"files" must be an object');
  const readFileName = (key: string): string => {
    const value = (files as Readonly<Record<string, unknown>>)[key];
    return typeof value === "string" && filePattern.test(value) && value !== manifestName
      ? value
      : refuse(`"files.${key}" must be a file name without folder`);
  };
  return {
    name,
    title: readText("title", line),
    family: readText("family", /^(Linux|Windows|Bsd)$/) as Family,
    os: readText("os", line),
    minRam: readNumber("minRam", 1, 1_048_576),
    hdd: readNumber("hdd", 1, 4096),
    boot,
    format: readText("format", /^qcow2$/) as "qcow2",
    files: {
      disk: readFileName("disk"),
      ...(boot === "kernel" && { kernel: readFileName("kernel"), initrd: readFileName("initrd") }),
    },
    version: readText("version", filePattern),
    source: readText("source", /^[^\p{Cc}]{0,2048}$/u),
    made: readNumber("made", 0, Number.MAX_SAFE_INTEGER),
    ...readIdentity(fields["identity"]),
    guest: readGuest(fields),
  };
}

function readIdentity(value: unknown): Pick<GuestImage, "identity"> {
  const removed = pick(value, "removed");
  return typeof removed === "boolean" ? { identity: { removed, detail: textAt(value, "detail") } } : {};
}

/** Tiny Linux that was built before images had this is known by its name. */
const readGuest = ({ guest, name }: Readonly<Record<string, unknown>>): Renewal | null =>
  guest === "tiny" || guest === "cloud-init" ? guest : guest === undefined && name === "brume-tiny" ? "tiny" : null;

export const printImage = (image: GuestImage): string => `${JSON.stringify(image, null, 2)}\n`;

export const fileNames = (image: GuestImage): string[] =>
  [image.files.disk, image.files.kernel, image.files.initrd].filter((file) => file !== undefined);

/** Judges a file by its first bytes; nobody else may be able to write to it. Throws an `ImageError`. */
export async function judgeDisk(path: string): Promise<Disk> {
  const file = await open(path, "r");
  try {
    const head = Buffer.alloc(headerBytes);
    const { bytesRead } = await file.read(head, 0, head.length, 0);
    const found = judgeHeader(head.subarray(0, bytesRead), (await file.stat()).size);
    if ("trouble" in found) throw new ImageError(found.trouble, found.reason);
    return found;
  } finally {
    await file.close();
  }
}

/** The image of that name, or null when there is none. Throws an `ImageError` when there is one that cannot be used. */
export async function readImage(images: string, name: string): Promise<GuestImage | null> {
  if (!isImageName(name)) return null;
  const path = join(images, name, manifestName);
  let text: string;
  try {
    if ((await lstat(path)).size > 65_536)
      throw new ImageError("unusable", `${manifestName} of image "${name}" is too long.`);
    text = await readFile(path, "utf8");
  } catch (error) {
    if (isMissing(error)) return null;
    throw error;
  }
  const image = parseImage(text, name);
  for (const file of fileNames(image)) {
    const found = await lstat(join(images, name, file)).catch((error: unknown) => {
      if (isMissing(error)) return null;
      throw error;
    });
    if (!found?.isFile()) throw new ImageError("unusable", `Image "${name}": the file ${file} is missing.`);
  }
  if ((await judgeDisk(join(images, name, image.files.disk))).format !== "qcow2")
    throw new ImageError("unusable", `Image "${name}": the file ${image.files.disk} is no qcow2.`);
  return image;
}

export interface ImageList {
  readonly images: readonly GuestImage[];
  /** Folders that hold no usable image, with the reason. */
  readonly broken: readonly { readonly name: string; readonly reason: string }[];
}

/** All images of the folder, by name. */
export async function listImages(images: string): Promise<ImageList> {
  const found: GuestImage[] = [];
  const broken: { name: string; reason: string }[] = [];
  for (const name of await listNames(images)) {
    try {
      const image = await readImage(images, name);
      if (image !== null) found.push(image);
    } catch (error) {
      broken.push({ name, reason: (error as Error).message });
    }
  }
  return { images: found, broken };
}

async function listNames(images: string): Promise<string[]> {
  try {
    const entries = await readdir(images, { withFileTypes: true });
    return entries
      .filter((entry) => entry.isDirectory() && isImageName(entry.name))
      .map((entry) => entry.name)
      .sort();
  } catch (error) {
    if (isMissing(error)) return [];
    throw error;
  }
}

export const isMissing = (error: unknown): boolean =>
  ["ENOENT", "ENOTDIR"].includes((error as NodeJS.ErrnoException).code ?? "");
