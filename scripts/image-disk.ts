/**
 * Builds a disk that boots with BIOS and UEFI from a folder with a Debian, without mount or loop device. It has a GPT with a partition
 * for GRUB's core, one for UEFI, and the root file system last, so that it can grow. The boot code, which `grub-install` would write to
 * a mounted disk, is written here at the offsets of GRUB's `boot.S` and `diskboot.S`.
 */
import { execFileSync } from "node:child_process";
import { closeSync, mkdirSync, openSync, readdirSync, readFileSync, writeFileSync, writeSync } from "node:fs";
import { join } from "node:path";

const sector = 512;
const megabyte = 2048;
const biosAt = megabyte;
const efiAt = 2 * megabyte;
const efiSectors = 16 * megabyte;
const rootAt = efiAt + efiSectors;
/** Sectors of the disk. */
const sectors = 2048 * megabyte;
/** Sectors for the copy of the partition table at the end. */
const tail = megabyte;

const [root, target, work] = process.argv.slice(2);
if (root === undefined || target === undefined || work === undefined)
  throw new Error("usage: image-disk.ts ROOT QCOW2 WORK");
const run = (program: string, args: readonly string[], input = ""): void => {
  execFileSync(program, args, { input, stdio: ["pipe", "ignore", "inherit"] });
};

const boot = readdirSync(join(root, "boot")).sort();
const kernel = boot.findLast((file) => file.startsWith("vmlinuz"));
const initrd = boot.findLast((file) => file.startsWith("initrd"));
if (kernel === undefined || initrd === undefined) throw new Error(`${root} has no kernel`);
mkdirSync(join(root, "boot/grub"), { recursive: true });
// Symbolic links, so that a kernel that the guest installs is booted without GRUB's tools, which the image does not contain.
writeFileSync(
  join(root, "boot/grub/grub.cfg"),
  `set timeout=0
menuentry Debian {
  search --no-floppy --label root --set=root
  linux /vmlinuz root=LABEL=root ro console=tty0 console=ttyS0,115200 quiet no_timer_check
  initrd /initrd.img
}
`,
);

const raw = join(work, "disk.raw");
run("truncate", ["-s", String(sectors * sector), raw]);
run(
  "sfdisk",
  ["-q", raw],
  `label: gpt
start=${biosAt},size=${megabyte},type=21686148-6449-6E6F-744E-656564454649,name=bios
start=${efiAt},size=${efiSectors},type=C12A7328-F81F-11D2-BA4B-00A0C93EC93B,name=efi
start=${rootAt},type=4F68BCE3-E8CD-4DB1-96E7-FBCAF984B709,name=root
`,
);
const extended = `offset=${rootAt * sector},lazy_itable_init=1,lazy_journal_init=1,root_owner=0:0`;
run("mkfs.ext4", ["-q", "-F", "-L", "root", "-E", extended, "-d", root, raw, `${(sectors - rootAt - tail) / 2}k`]);

const modules =
  "part_gpt part_msdos ext2 fat search search_label search_fs_uuid normal configfile linux serial echo test";
const [early, core, efi, efiDisk] = ["early.cfg", "core.img", "bootx64.efi", "efi.img"].map((file) => join(work, file));
writeFileSync(
  early ?? "",
  "search --no-floppy --label root --set=root\nset prefix=($root)/boot/grub\nconfigfile ($root)/boot/grub/grub.cfg\n",
);
const image = (format: string, output: string, extra: readonly string[]) =>
  run("grub-mkimage", [
    "-O",
    format,
    "-o",
    output,
    "-p",
    "/boot/grub",
    "-c",
    early ?? "",
    ...extra,
    ...modules.split(" "),
  ]);
image("i386-pc", core ?? "", ["biosdisk"]);
image("x86_64-efi", efi ?? "", ["all_video", "gfxterm"]);

const coreBytes = readFileSync(core ?? "");
if (coreBytes.length > megabyte * sector) throw new Error("GRUB's core does not fit");
const first = readFileSync("/usr/lib/grub/i386-pc/boot.img");
first.writeBigUInt64LE(BigInt(biosAt), 0x5c); // where the core begins
first.set([0x90, 0x90], 0x66); // trust the drive number that the BIOS gives
coreBytes.writeBigUInt64LE(BigInt(biosAt + 1), 0x1f4); // where its own second sector is
const disk = openSync(raw, "r+");
writeSync(disk, first, 0, 440, 0);
writeSync(disk, coreBytes, 0, coreBytes.length, biosAt * sector);
run("truncate", ["-s", String(efiSectors * sector), efiDisk ?? ""]);
run("mkfs.vfat", ["-n", "EFI", efiDisk ?? ""]);
run("mmd", ["-i", efiDisk ?? "", "::EFI", "::EFI/BOOT"]);
run("mcopy", ["-i", efiDisk ?? "", efi ?? "", "::EFI/BOOT/BOOTX64.EFI"]);
writeSync(disk, readFileSync(efiDisk ?? ""), 0, efiSectors * sector, efiAt * sector);
closeSync(disk);
run("qemu-img", ["convert", "-q", "-O", "qcow2", "-c", "-o", "compression_type=zstd", raw, target]);
