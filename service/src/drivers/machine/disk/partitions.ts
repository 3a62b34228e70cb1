/**
 * Finds the file systems of a raw disk and their types. The disk is untrusted: only fixed offsets are read, and nothing is mounted.
 * Sources: UEFI 2.10, chapter 5 (GPT; MBR in 5.2); the superblocks of the file systems.
 */
import type { FileHandle } from "node:fs/promises";

/** A file system on a disk. */
export interface FileSystem {
  /** Number of the partition; 0 if the file system occupies the whole disk. */
  readonly partition: number;
  /** Bytes from the start of the disk. */
  readonly offset: number;
  /** `ext`: ext2, ext3 or ext4; `none`: contains no data that identifies the guest. */
  readonly kind: "ext" | "none" | "XFS" | "Btrfs" | "LVM" | "LUKS" | "swap" | "unknown";
}

const sector = 512;
const maxPartitions = 128;

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
  // The EFI system partition.
  ["none", 54, "FAT1"],
  ["none", 82, "FAT32"],
];

async function kindAt(disk: FileHandle, offset: number, bytes: number): Promise<FileSystem["kind"]> {
  const head = await bytesAt(disk, offset, Math.min(bytes, 65_700));
  if (head.length >= 1082 && head.readUInt16LE(1080) === 0xef53) return "ext";
  const found = marks.find(([, at, mark]) => head.toString("latin1", at, at + mark.length) === mark);
  if (found !== undefined) return found[0];
  // Small or empty, such as a boot loader partition.
  return bytes <= 4 * 2 ** 20 || head.every((byte) => byte === 0) ? "none" : "unknown";
}

type Range = readonly [number: number, offset: number, bytes: number];

async function readGpt(disk: FileHandle): Promise<Range[]> {
  const header = await bytesAt(disk, sector, 92);
  if (header.length < 92 || header.toString("latin1", 0, 8) !== "EFI PART") return [];
  const [size, count] = [header.readUInt32LE(84), Math.min(header.readUInt32LE(80), maxPartitions)];
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

/** Reads the primary partitions. Logical partitions are not read; their container is `unknown`. */
function readMbr(head: Buffer): Range[] {
  const entries = [446, 462, 478, 494].map((at, index): readonly [number, Range] => [
    head[at + 4] ?? 0,
    [index + 1, head.readUInt32LE(at + 8) * sector, head.readUInt32LE(at + 12) * sector],
  ]);
  return entries.filter(([type, [, , bytes]]) => type !== 0 && bytes > 0).map(([, range]) => range);
}

/** Returns the file systems of all partitions, or the one that occupies the whole disk. */
export async function findFileSystems(disk: FileHandle): Promise<FileSystem[]> {
  const { size } = await disk.stat();
  const diskKind = await kindAt(disk, 0, size);
  if (diskKind !== "unknown" && diskKind !== "none") return [{ partition: 0, offset: 0, kind: diskKind }];
  const head = await bytesAt(disk, 0, sector);
  if (head.length < sector || head.readUInt16BE(510) !== 0x55aa) return [{ partition: 0, offset: 0, kind: diskKind }];
  const gpt = await readGpt(disk);
  const ranges = (gpt.length > 0 ? gpt : readMbr(head)).filter(
    ([, offset, bytes]) => Number.isSafeInteger(offset + bytes) && offset > 0 && bytes > 0 && offset + bytes <= size,
  );
  return Promise.all(
    ranges.map(async ([partition, offset, bytes]) => ({ partition, offset, kind: await kindAt(disk, offset, bytes) })),
  );
}
