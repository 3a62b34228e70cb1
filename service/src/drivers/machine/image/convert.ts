/**
 * Copies a disk image that has been judged into a fresh qcow2, which names nothing but itself, and finds out how a machine starts
 * from it. QEMU reads the foreign file as nobody and within limits, since a small one may unfold to any size.
 */
import { chown, open, rm, statfs } from "node:fs/promises";
import { join } from "node:path";
import type { Exec, RunOptions } from "../../exec.ts";
import { type Disk, gigabyte } from "./header.ts";
import { ImageError } from "./manifest.ts";

/** Room on the host that no image may take. */
const reserve = gigabyte;
const nobody = 65_534;

/** Only root can be somebody else. */
const unprivileged = (): RunOptions => (process.getuid?.() === 0 ? { uid: nobody, gid: nobody } : {});

/**
 * Writes what the disk `from` holds into `to`, both names in `folder`. Throws an `ImageError` when the image is damaged or there is no
 * room for it, and whatever `signal` says.
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
  const room = Math.max(0, bavail * bsize - reserve);
  // What a qcow2 adds: a table entry of 8 bytes and a count of 2 bytes for each 64 KiB.
  const most = Math.min(room, Math.ceil(disk.size * 1.001) + 16 * 2 ** 20);
  const limits = ["prlimit", `--fsize=${most}`, `--as=${2 * gigabyte}`, "--cpu=3600", "--core=0"];
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
    // Else what is missing at the end of a file would be read as zeros. 3: it only holds more than it needs.
    if (disk.format === "qcow2") await run([0, 3], "check", "-q", "--image-opts", source);
    await run([0], "convert", "-q", "-O", "qcow2", "--image-opts", source, to);
  } catch (error) {
    signal?.throwIfAborted();
    if (/too large|no space/i.test((error as Error).message))
      throw new ImageError("full", "There is not enough room on this machine for the image.", error);
    throw new ImageError("unusable", "The image is damaged: it could not be read to its end.", error);
  }
  if (as.uid !== undefined) await chown(join(folder, to), 0, 0);
}

/**
 * How a machine starts from the qcow2 `disk` in `folder`: by UEFI when its first sector holds no code for a BIOS but points to a table
 * of the newer kind (GPT, UEFI specification 5.2.3), else by BIOS.
 */
export async function findBoot(exec: Exec, folder: string, disk: string): Promise<"disk" | "uefi"> {
  const path = join(folder, "sector");
  await exec.run(["qemu-img", "dd", "-f", "qcow2", "-O", "raw", "bs=512", "count=1", `if=${disk}`, "of=sector"], {
    cwd: folder,
  });
  const file = await open(path, "r");
  try {
    const { buffer } = await file.read(Buffer.alloc(512), 0, 512, 0);
    return judgeSector(buffer);
  } finally {
    await file.close();
    await rm(path);
  }
}

/** `sector` is the first one of the disk. */
export function judgeSector(sector: Buffer): "disk" | "uefi" {
  const hasCode = sector.subarray(0, 440).some((byte) => byte !== 0);
  const isProtective = sector[510] === 0x55 && sector[511] === 0xaa && sector[450] === 0xee;
  return !hasCode && isProtective ? "uefi" : "disk";
}
