/**
 * A disk image as users have it: Tiny Linux with its own kernel and boot loader, which a server starts by BIOS. The file system begins at
 * the first sector, as in the image of the set-up; GRUB's first sector lies before its superblock, and the rest of GRUB is a file in it.
 */
import { execFileSync } from "node:child_process";
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync, writeSync } from "node:fs";
import { join, resolve } from "node:path";
import { type GuestImage, readImage } from "../../service/src/drivers/machine/image/manifest.ts";
import { imageName } from "../support/machinelab.ts";

const images = resolve(import.meta.dirname, "../../.engines/images");
const sector = 512;
/** In the command line of the kernel of this disk, and of no other. */
export const bootMark = "brume.from=own-disk";

function run(program: string, ...args: readonly string[]): string {
  return execFileSync(program, args, { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
}

/** Returns the first sector of a file whose blocks are one after the other. Throws if they are not. */
function firstSector(disk: string, path: string): number {
  const blocks = run("debugfs", "-R", `blocks ${path}`, disk).trim().split(/\s+/).map(Number);
  const [first = 0] = blocks;
  // Beyond twelve blocks, a file has blocks that list others; only extents have none.
  if (blocks.some((block, index) => block !== first + index)) throw new Error(`${path} is in several places`);
  const [, size] = /^Block size:\s+(\d+)$/m.exec(run("dumpe2fs", "-h", disk)) ?? [];
  return (first * Number(size)) / sector;
}

/** Writes the disk to `target`, a qcow2. Resolves to its content. */
export async function makeBootDisk(target: string): Promise<Buffer> {
  const image: GuestImage | null = await readImage(images, imageName);
  if (image === null) throw new Error(`there is no image ${imageName}`);
  const file = (name = ""): string => join(images, imageName, name);
  const folder = mkdtempSync(`${target}.`);
  const [raw, core, config] = ["disk.raw", "core.img", "grub.cfg"].map((name) => join(folder, name)) as [
    string,
    string,
    string,
  ];
  try {
    run("qemu-img", "convert", "-O", "raw", file(image.files.disk), raw);
    const line = `console=ttyS0 quiet no_timer_check cryptomgr.notests panic=10 net.ifnames=0 ${bootMark}`;
    writeFileSync(config, `linux (hd0)/kernel ${line}\ninitrd (hd0)/initrd\nboot\n`);
    run("grub-mkimage", "-O", "i386-pc", "-o", core, "-p", "/", "-c", config, "biosdisk", "ext2", "linux", "boot");
    for (const [name, source] of [
      ["core", core],
      ["kernel", file(image.files.kernel)],
      ["initrd", file(image.files.initrd)],
    ])
      run("debugfs", "-w", "-R", `write ${source} ${name}`, raw);
    const at = firstSector(raw, "core");
    const boot = readFileSync("/usr/lib/grub/i386-pc/boot.img");
    boot.writeBigUInt64LE(BigInt(at), 0x5c); // where the core begins
    boot.set([0x90, 0x90], 0x66); // trust the drive number that the BIOS gives
    const next = Buffer.alloc(8);
    next.writeBigUInt64LE(BigInt(at + 1)); // where its second sector is
    const disk = openSync(raw, "r+");
    writeSync(disk, boot, 0, sector, 0);
    writeSync(disk, next, 0, 8, at * sector + 0x1f4);
    closeSync(disk);
    run("qemu-img", "convert", "-O", "qcow2", raw, target);
    return readFileSync(target);
  } finally {
    rmSync(folder, { recursive: true });
  }
}
