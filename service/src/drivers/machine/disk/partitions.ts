/**
 * Where the file systems of a raw disk begin, and of what kind they are. The disk is a guest's: only fixed places of it are read, and
 * nothing is mounted. Sources: UEFI 2.10, chapter 5 (GPT, and MBR in 5.2); the superblocks of the file systems.
 */
import type { FileHandle } from "node:fs/promises";

export interface FileSystem {
  /** 0: the whole disk is one. */
  readonly partition: number;
  /** Bytes from the start of the disk. */
  readonly offset: number;
  /** `ext`: ext2, ext3 or ext4; `none`: holds no files of the guest, or none that tell who it is. */
  readonly kind: "ext" | "none" | "XFS" | "Btrfs" | "LVM" | "LUKS" | "swap" | "unknown";
}

const sector = 512;
const mostPartitions = 128;

async function bytesAt(disk: FileHandle, offset: number, length: number): Promise<Buffer> {
  const { buffer, bytesRead } = await disk.read(Buffer.alloc(length), 0, length, offset);
  return buffer.subarray(0, bytesRead);
}

const marks: readonly (readonly [FileSystem["kind"], number, string])[] = [
  ["XFS", 0, "XFSB"],
  ["Btrfs", 65_600, "_BHRfS_M"],
  ["LUKS", 0, "LUKS\xba\xbe"],
  ["LVM", 512, "LABELONE"],
  ["swap", 4086, "SWAPSPACE2"],
  // EFI's own partition.
  ["none", 54, "FAT1"],
  ["none", 82, "FAT32"],
];

async function kindAt(disk: FileHandle, offset: number, bytes: number): Promise<FileSystem["kind"]> {
  const head = await bytesAt(disk, offset, Math.min(bytes, 65_700));
  if (head.length >= 1082 && head.readUInt16LE(1080) === 0xef53) return "ext";
  const found = marks.find(([, at, mark]) => head.toString("latin1", at, at + mark.length) === mark);
  if (found !== undefined) return found[0];
  // Such as the place of a boot loader.
  return bytes <= 4 * 2 ** 20 || head.every((byte) => byte === 0) ? "none" : "unknown";
}

type Range = readonly [number: number, offset: number, bytes: number];

async function readGpt(disk: FileHandle): Promise<Range[]> {
  const header = await bytesAt(disk, sector, 92);
  if (header.length < 92 || header.toString("latin1", 0, 8) !== "EFI PART") return [];
  const [size, count] = [header.readUInt32LE(84), Math.min(header.readUInt32LE(80), mostPartitions)];
  if (size < 128 || size > 4096) return [];
  const entries = await bytesAt(disk, Number(header.readBigUInt64LE(72)) * sector, size * count);
  const ranges: Range[] = [];
  for (let at = 0; at + 128 <= entries.length; at += size) {
    if (entries.subarray(at, at + 16).every((byte) => byte === 0)) continue;
    const [first, last] = [Number(entries.readBigUInt64LE(at + 32)), Number(entries.readBigUInt64LE(at + 40))];
    ranges.push([at / size + 1, first * sector, (last - first + 1) * sector]);
  }
  return ranges;
}

/** Of a partition in a partition, which old systems have, only the outer one is seen: it is `unknown`. */
function readMbr(head: Buffer): Range[] {
  const entries = [446, 462, 478, 494].map((at, index): readonly [number, Range] => [
    head[at + 4] ?? 0,
    [index + 1, head.readUInt32LE(at + 8) * sector, head.readUInt32LE(at + 12) * sector],
  ]);
  return entries.filter(([type, [, , bytes]]) => type !== 0 && bytes > 0).map(([, range]) => range);
}

export async function findFileSystems(disk: FileHandle): Promise<FileSystem[]> {
  const { size } = await disk.stat();
  const whole = await kindAt(disk, 0, size);
  if (whole !== "unknown" && whole !== "none") return [{ partition: 0, offset: 0, kind: whole }];
  const head = await bytesAt(disk, 0, sector);
  if (head.length < sector || head.readUInt16BE(510) !== 0x55aa) return [{ partition: 0, offset: 0, kind: whole }];
  const gpt = await readGpt(disk);
  const ranges = (gpt.length > 0 ? gpt : readMbr(head)).filter(
    ([, offset, bytes]) => Number.isSafeInteger(offset + bytes) && offset > 0 && bytes > 0 && offset + bytes <= size,
  );
  return Promise.all(
    ranges.map(async ([partition, offset, bytes]) => ({ partition, offset, kind: await kindAt(disk, offset, bytes) })),
  );
}
