/**
 * Converts a checked disk image into a new qcow2 without references to other files, and determines its boot method. QEMU reads the foreign
 * file as an unprivileged user and within limits, since a small file may expand to any size.
 */
import { chown, open, rm, statfs } from "node:fs/promises";
import { join } from "node:path";
import type { Exec, RunOptions } from "../../exec.ts";
import { type Disk, gigabyte } from "./header.ts";
import { ImageError } from "./manifest.ts";

/** Bytes of disk space that stay free. */
const reserve = gigabyte;
const nobody = 65_534;

/** Only root can switch the user. */
const unprivileged = (): RunOptions => (process.getuid?.() === 0 ? { uid: nobody, gid: nobody } : {});

/**
 * Converts the disk `from` into `to`, both names in `folder`. Throws an `ImageError` if the image is damaged or the disk space is
 * insufficient, and the reason of `signal`.
 */
export async function convertDisk(
  exec: Exec,
  folder: string,
  from: string,
  disk: Disk,
  to: string,
  signal?: AbortSignal,
): Promise<void> {
  const { bavail, bsize } = await statfs(folder);
  const available = Math.max(0, bavail * bsize - reserve);
  // Overhead of qcow2: a table entry of 8 bytes and a reference count of 2 bytes per cluster of 64 KiB.
  const maxBytes = Math.min(available, Math.ceil(disk.size * 1.001) + 16 * 2 ** 20);
  const limits = ["prlimit", `--fsize=${maxBytes}`, `--as=${2 * gigabyte}`, "--cpu=3600", "--core=0"];
  const source = `driver=${disk.format},file.driver=file,file.filename=${from.replaceAll(",", ",,")}`;
  const target = await open(join(folder, to), "wx", 0o644);
  await target.close();
  const as = unprivileged();
  if (as.uid !== undefined) await chown(join(folder, to), as.uid, nobody);
  const run = (codes: readonly number[], ...argv: string[]) =>
    exec.run([...limits, "qemu-img", ...argv], {
      ...as,
      cwd: folder,
      timeout: 3_600_000,
      codes,
      ...(signal && { signal }),
    });
  try {
    // A truncated file would otherwise be read as zeros. Code 3: only leaked clusters, which are harmless.
    if (disk.format === "qcow2") await run([0, 3], "check", "-q", "--image-opts", source);
    await run([0], "convert", "-q", "-O", "qcow2", "--image-opts", source, to);
  } catch (error) {
    signal?.throwIfAborted();
    if (/too large|no space/i.test((error as Error).message))
      throw new ImageError("full", "There is not enough space on the host for the image.", error);
    throw new ImageError("unusable", "The image is damaged: it could not be read completely.", error);
  }
  if (as.uid !== undefined) await chown(join(folder, to), 0, 0);
}

/**
 * Returns how a VM boots from the qcow2 `disk` in `folder`: by UEFI if its first sector contains no BIOS code but a protective MBR (GPT,
 * UEFI specification 5.2.3), otherwise by BIOS.
 */
export async function findBoot(exec: Exec, folder: string, disk: string): Promise<"disk" | "uefi"> {
  const path = join(folder, "sector");
  await exec.run(["qemu-img", "dd", "-f", "qcow2", "-O", "raw", "bs=512", "count=1", `if=${disk}`, "of=sector"], {
    cwd: folder,
  });
  const file = await open(path, "r");
  try {
    const { buffer } = await file.read(Buffer.alloc(512), 0, 512, 0);
    return bootFromSector(buffer);
  } finally {
    await file.close();
    await rm(path);
  }
}

/** Returns the boot method from the first sector of a disk. */
export function bootFromSector(sector: Buffer): "disk" | "uefi" {
  const hasCode = sector.subarray(0, 440).some((byte) => byte !== 0);
  const isProtective = sector[510] === 0x55 && sector[511] === 0xaa && sector[450] === 0xee;
  return !hasCode && isProtective ? "uefi" : "disk";
}
