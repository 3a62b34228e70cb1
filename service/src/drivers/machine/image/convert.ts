/**
 * Converts a checked disk image into a new qcow2 without references to other files, and determines its boot method. QEMU reads the foreign
 * file as an unprivileged user and within limits, since a small file may expand to any size.
 */
import { chown, open, rm, statfs } from "node:fs/promises";
import { join } from "node:path";
import { hasPrintedTooMuch } from "../../exec.ts";
import { type DiskTools, fileLimit, ownCode, type ToolUse } from "../disk/tool.ts";
import { type Disk, gigabyte } from "./header.ts";
import { ImageError, notEnoughSpace } from "./manifest.ts";

/** Bytes of disk space that stay free. */
const reserve = gigabyte;
/** Milliseconds for one program: 4096 GB take six hours at 200 MB/s. The caller's signal may end it earlier. */
export const longest = 24 * 3_600_000;
/** User id that reads foreign images; below those of servers. */
const uid = 699_998;

/** Creates an empty file that the reading user may write to. */
async function createOutput(path: string): Promise<void> {
  await (await open(path, "wx", 0o644)).close();
  if (process.getuid?.() === 0) await chown(path, uid, uid);
}

/** What each error message of `qemu-img` begins with. */
const messages = /^(qemu-img: |ERROR )/m;

/**
 * Converts the disk `from` into `to`, both names in `folder`. Throws an `ImageError` if the image is damaged or the disk space is
 * insufficient, the reason of `signal`, and any other error if a retry may succeed.
 */
export async function convertDisk(
  tools: DiskTools,
  folder: string,
  from: string,
  disk: Disk,
  to: string,
  signal?: AbortSignal,
): Promise<void> {
  const { bavail, bsize } = await statfs(folder);
  const available = Math.max(0, bavail * bsize - reserve);
  const source = `driver=${disk.format},file.driver=file,file.filename=${from.replaceAll(",", ",,")}`;
  await createOutput(join(folder, to));
  const use: ToolUse = {
    folder,
    readable: [from],
    writable: [to],
    bytes: Math.min(available, fileLimit(disk.size)),
    uid,
    timeout: longest,
    ...(signal && { signal }),
  };
  try {
    // A truncated file would otherwise be read as zeros. Code 3: only leaked clusters, which are harmless.
    if (disk.format === "qcow2")
      await tools.run(["qemu-img", "check", "-q", "--image-opts", source], { ...use, codes: [0, 3] });
    await tools.run(["qemu-img", "convert", "-q", "-O", "qcow2", "--image-opts", source, to], use);
  } catch (error) {
    signal?.throwIfAborted();
    if (/too large|no space/i.test((error as Error).message)) throw notEnoughSpace(null, error);
    if (ownCode(error, messages) === null && !hasPrintedTooMuch(error)) throw error;
    throw new ImageError("unusable", "The image is damaged: it could not be read completely.", error);
  }
  if (process.getuid?.() === 0) await chown(join(folder, to), 0, 0);
}

/**
 * Returns how a VM boots from the qcow2 `disk` in `folder`: by UEFI if its first sector contains no BIOS code but a protective MBR (GPT,
 * UEFI specification 5.2.3), otherwise by BIOS.
 */
export async function findBoot(tools: DiskTools, folder: string, disk: string): Promise<"disk" | "uefi"> {
  const path = join(folder, "sector");
  await createOutput(path);
  const argv = ["dd", "-f", "qcow2", "-O", "raw", "bs=512", "count=1", `if=${disk}`, "of=sector"];
  const use = { folder, readable: [disk], writable: ["sector"], bytes: 2 ** 20, uid, timeout: 10_000 };
  await tools.run(["qemu-img", ...argv], use);
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
function bootFromSector(sector: Buffer): "disk" | "uefi" {
  const hasCode = sector.subarray(0, 440).some((byte) => byte !== 0);
  const isProtective = sector[510] === 0x55 && sector[511] === 0xaa && sector[450] === 0xee;
  return !hasCode && isProtective ? "uefi" : "disk";
}
