/**
 * Checks from the first bytes of a foreign disk image whether QEMU may open it. A qcow2 can name other files (a backing file, a data file),
 * which QEMU opens with the rights of the service as soon as it opens the image. So the header is checked before any program of QEMU opens
 * the file. Source: docs/interop/qcow2.txt of QEMU.
 */

/** A disk image that QEMU may open. */
export interface Disk {
  readonly format: "qcow2" | "raw";
  /** Bytes that the guest sees. */
  readonly size: number;
}

/** Why an image is refused. `unsafe`: QEMU must not open it; `unusable`: it cannot become a disk. The reason is a sentence. */
export interface HeaderDefect {
  readonly defect: "unsafe" | "unusable";
  readonly reason: string;
}

/** Number of bytes that `inspectHeader` needs. */
export const headerBytes = 104;

export const gigabyte = 2 ** 30;
/** Maximum disk of a server. */
const largestDisk = 4096 * gigabyte;

/** First bytes of other formats that users mistake for disk images; as raw images they would be garbage. */
const foreign: readonly (readonly [string, Buffer])[] = [
  ["a VMDK image", Buffer.from("KDMV")],
  ["a VMDK description", Buffer.from("# Disk DescriptorFile")],
  ["a VHD image", Buffer.from("conectix")],
  ["a VHDX image", Buffer.from("vhdxfile")],
  ["a VDI image", Buffer.from("<<< ")],
  ["a QED image", Buffer.from("QED\0")],
  ["compressed by gzip", Buffer.from([0x1f, 0x8b])],
  ["compressed by xz", Buffer.from([0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00])],
  ["compressed by bzip2", Buffer.from("BZh")],
  ["compressed by zstd", Buffer.from([0x28, 0xb5, 0x2f, 0xfd])],
  ["a zip archive", Buffer.from("PK\u0003\u0004")],
  ["a web page", Buffer.from("<!DOCTYPE")],
  ["a web page", Buffer.from("<!doctype")],
  ["a web page", Buffer.from("<html")],
];

const unsafe = (reason: string): HeaderDefect => ({ defect: "unsafe", reason: `The image is refused: ${reason}.` });
const unusable = (reason: string): HeaderDefect => ({ defect: "unusable", reason });

const incompatible = { dirty: 1n, corrupt: 2n, dataFile: 4n, compression: 8n, extendedL2: 16n };

/** Inspects the first bytes of a file of `length` bytes. Returns the disk or the defect. */
export function inspectHeader(head: Buffer, length: number): Disk | HeaderDefect {
  const disk = head.toString("latin1", 0, 4) === "QFI\u00fb" ? inspectQcow2(head) : inspectRaw(head, length);
  if ("defect" in disk) return disk;
  if (disk.size === 0) return unusable("The image is empty.");
  return disk.size > largestDisk ? unusable("The image is larger than 4096 GB.") : disk;
}

function inspectRaw(head: Buffer, length: number): Disk | HeaderDefect {
  const found = foreign.find(([, magic]) => head.subarray(0, magic.length).equals(magic));
  if (found) return unusable(`The image must be qcow2 or raw; this file is ${found[0]}.`);
  return { format: "raw", size: length };
}

function inspectQcow2(head: Buffer): Disk | HeaderDefect {
  if (head.length < 72) return unusable("The image is a qcow2 that ends within its header.");
  const version = head.readUInt32BE(4);
  if (version !== 2 && version !== 3) return unusable(`The image is a qcow2 of version ${version}.`);
  if (head.readBigUInt64BE(8) !== 0n || head.readUInt32BE(16) !== 0) return unsafe("it names a backing file");
  if (head.readUInt32BE(32) !== 0) return unsafe("it is encrypted");
  if (version === 3) {
    if (head.length < 104) return unusable("The image is a qcow2 that ends within its header.");
    const features = head.readBigUInt64BE(72);
    if (features & incompatible.dataFile) return unsafe("its data is in another file");
    if (features & incompatible.corrupt) return unusable("The image is marked as damaged.");
    const known = incompatible.dirty | incompatible.compression | incompatible.extendedL2;
    if (features & ~known) return unsafe("it has unknown features");
  }
  const size = head.readBigUInt64BE(24);
  return { format: "qcow2", size: Number(size) };
}
