/**
 * Reads and checks guest images. An image is a folder `<images>/<name>/` with `image.json` and the files that it names. An operator may
 * have copied the folder, so its content is untrusted. File names contain the version, and files never change, since disks of servers use
 * them: a new version adds files and then replaces `image.json`.
 */
import { lstat, open, readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Family, Identity } from "../interface.ts";
import { pick, textAt } from "../qemu/qmp.ts";
import { type Disk, headerBytes, inspectHeader } from "./header.ts";

/** How a VM boots. `kernel`: from `files.kernel` and `files.initrd`; `disk`: by BIOS from the boot sector; `uefi`: by UEFI. */
export type Boot = "kernel" | "disk" | "uefi";

/** What initializes a guest for an instance id: Tiny Linux itself, or cloud-init. */
export type Renewal = "tiny" | "cloud-init";

/** The content of `image.json`. */
export interface GuestImage {
  /** Name of the folder. */
  readonly name: string;
  /** Title that users see. */
  readonly title: string;
  readonly family: Family;
  /** `Linux`, `Debian`, `Ubuntu`, … */
  readonly os: string;
  /** Minimum memory of a server in MB. */
  readonly minRam: number;
  /** Minimum disk of a server in GB. */
  readonly hdd: number;
  readonly boot: Boot;
  /** Format of `files.disk`. */
  readonly format: "qcow2";
  /** File names in the folder; kernel and initrd exist exactly if `boot` is `kernel`. */
  readonly files: { readonly disk: string; readonly kernel?: string; readonly initrd?: string };
  readonly version: string;
  /** Origin, for operators: an address, a file name or a recipe. */
  readonly source: string;
  /** Milliseconds since 1970. */
  readonly made: number;
  /** Only of an image that was made from a server. */
  readonly identity?: Identity;
  /** What applies user data and initializes a guest for a new instance id, also in images made from it; null if unknown. */
  readonly guest: Renewal | null;
}

/**
 * Why an image cannot be used. `unsafe`: it could make QEMU access files of the host; `unusable`: not a supported disk image; `checksum`:
 * wrong checksum; `address`: an address that is not permitted; `unreachable`: the download failed; `missing`: no such image or file;
 * `full`: not enough disk space.
 */
export type ImageDefect = "unsafe" | "unusable" | "checksum" | "address" | "unreachable" | "missing" | "full";

/** An image cannot be used. The message is one sentence for the client that requested the image. */
export class ImageError extends Error {
  readonly defect: ImageDefect;
  constructor(defect: ImageDefect, message: string, cause?: unknown) {
    super(message, { cause });
    this.name = "ImageError";
    this.defect = defect;
  }
}

/** Returns the error that the host has no space for an image. `bytes`: those that are needed and free, if they are known. */
export function notEnoughSpace(bytes: { readonly needed: number; readonly free: number } | null, cause?: unknown) {
  const reason =
    bytes === null
      ? "There is not enough space on the host for the image."
      : `The host has ${bytes.free} bytes of disk space for the ${bytes.needed} bytes of the image.`;
  return new ImageError("full", `${reason} Delete images or backups, then repeat the request.`, cause);
}

/** File name of the manifest. */
export const manifestName = "image.json";

const namePattern = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;
const filePattern = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;

/**
 * Returns whether a name is valid as a folder: letters, digits, dot, underscore, hyphen, at most 64 characters, not ending with `.part`.
 */
export const isImageName = (name: string): boolean => namePattern.test(name) && !name.endsWith(".part");

/** Parses an `image.json`. Throws an `ImageError` that names the invalid value. */
export function parseImage(text: string, name: string): GuestImage {
  const refuse = (what: string, cause?: unknown): never => {
    throw new ImageError("unusable", `${manifestName} of image "${name}": ${what}.`, cause);
  };
  let given: unknown;
  try {
    given = JSON.parse(text);
  } catch (error) {
    refuse("it is not JSON", error);
  }
  if (typeof given !== "object" || given === null || Array.isArray(given)) refuse("it is not an object");
  const fields = given as Readonly<Record<string, unknown>>;
  const readText = (key: string, pattern: RegExp): string => {
    const value = fields[key];
    return typeof value === "string" && pattern.test(value) ? value : refuse(`"${key}" is missing or invalid`);
  };
  const readNumber = (key: string, least: number, most: number): number => {
    const value = fields[key];
    return typeof value === "number" && Number.isInteger(value) && value >= least && value <= most
      ? value
      : refuse(`"${key}" must be an integer from ${least} to ${most}`);
  };
  const line = /^[^\p{Cc}]{1,200}$/u;
  if (readText("name", namePattern) !== name) refuse('"name" must be the name of its folder');
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

/** In older manifests of Tiny Linux the field is missing. */
const readGuest = ({ guest, name }: Readonly<Record<string, unknown>>): Renewal | null =>
  guest === "tiny" || guest === "cloud-init" ? guest : guest === undefined && name === "brume-tiny" ? "tiny" : null;

/** Returns the text of a manifest. */
export const printImage = (image: GuestImage): string => `${JSON.stringify(image, null, 2)}\n`;

/** Returns the names of all files of an image. */
export const fileNames = (image: GuestImage): string[] =>
  [image.files.disk, image.files.kernel, image.files.initrd].filter((file) => file !== undefined);

/** Inspects the header of a file that no other process may write to. Throws an `ImageError`. */
export async function inspectDisk(path: string): Promise<Disk> {
  const file = await open(path, "r");
  try {
    const head = Buffer.alloc(headerBytes);
    const { bytesRead } = await file.read(head, 0, head.length, 0);
    const found = inspectHeader(head.subarray(0, bytesRead), (await file.stat()).size);
    if ("defect" in found) throw new ImageError(found.defect, found.reason);
    return found;
  } finally {
    await file.close();
  }
}

/** Reads the image of that name; null if it does not exist. Throws an `ImageError` if it cannot be used. */
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
  if ((await inspectDisk(join(images, name, image.files.disk))).format !== "qcow2")
    throw new ImageError("unusable", `Image "${name}": the file ${image.files.disk} is not a qcow2.`);
  return image;
}

/** All images of a folder. */
export interface ImageList {
  readonly images: readonly GuestImage[];
  /** Folders without a usable image, with the reason. */
  readonly broken: readonly { readonly name: string; readonly reason: string }[];
}

/** Reads the images of the folder, or only those whose names are wanted, sorted by name. */
export async function listImages(images: string, isWanted: (name: string) => boolean = () => true): Promise<ImageList> {
  const found: GuestImage[] = [];
  const broken: { name: string; reason: string }[] = [];
  for (const name of (await listImageNames(images)).filter(isWanted)) {
    try {
      const image = await readImage(images, name);
      if (image !== null) found.push(image);
    } catch (error) {
      broken.push({ name, reason: (error as Error).message });
    }
  }
  return { images: found, broken };
}

/** Returns the first usable image, by name, that fits; null if there is none. Reads no image behind it. */
export async function findImage(images: string, fits: (image: GuestImage) => boolean): Promise<GuestImage | null> {
  for (const name of await listImageNames(images)) {
    const image = await readImage(images, name).catch(() => null);
    if (image !== null && fits(image)) return image;
  }
  return null;
}

/** Returns the names of all folders that can contain an image, sorted. Reads only the directory. */
export async function listImageNames(images: string): Promise<string[]> {
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

/** Returns whether the error means that a file does not exist. */
export const isMissing = (error: unknown): boolean =>
  ["ENOENT", "ENOTDIR"].includes((error as NodeJS.ErrnoException).code ?? "");
