/**
 * Writes the seed volume: a FAT12 file system of floppy size with the label CIDATA, which cloud-init's NoCloud looks for. The format is
 * simple enough to write here, without another program and without a mount. Source: Microsoft's FAT specification 1.03; long names as in
 * its section 7; integers are little-endian.
 */
import type { SeedFile } from "../interface.ts";

const sectorBytes = 512;
const sectors = 2880;
const fatSectors = 9;
const rootEntries = 224;
const entryBytes = 32;
const fatAt = sectorBytes;
const rootAt = fatAt + 2 * fatSectors * sectorBytes;
const dataAt = rootAt + rootEntries * entryBytes;
/** Number of data clusters, one sector each; the first is cluster 2. With fewer than 4085 the file system is a FAT12. */
const clusters = (sectors * sectorBytes - dataAt) / sectorBytes;
const lastInChain = 0xfff;

/** Offsets of the 13 UTF-16 units in a long-name entry. */
const unitOffsets = [1, 3, 5, 7, 9, 14, 16, 18, 20, 22, 24, 28, 30] as const;

/** Capacity in bytes; each file is rounded up to sectors. */
export const seedCapacity = clusters * sectorBytes;

/** What the tables of a volume contain, and the first cluster of each file. */
interface Layout {
  readonly directory: readonly Buffer[];
  readonly chains: readonly number[];
  readonly starts: readonly number[];
}

/** Plans the volume. Throws if the files do not fit. */
export function planSeed(files: readonly SeedFile[]): Layout {
  const directory: Buffer[] = [];
  const chains = [0xff0, lastInChain];
  const starts: number[] = [];
  files.forEach(({ name, content }, index) => {
    const length = Buffer.byteLength(content);
    const count = Math.ceil(length / sectorBytes);
    const start = chains.length;
    if (start - 2 + count > clusters) throw new Error(`seed: the files are larger than ${seedCapacity} bytes`);
    starts.push(start);
    for (let step = 1; step <= count; step++) chains.push(step === count ? lastInChain : start + step);
    directory.push(...nameEntries(name, index, count === 0 ? 0 : start, length));
  });
  // The label has an entry too.
  if (directory.length >= rootEntries) throw new Error("seed: too many files");
  return { directory, chains, starts };
}

/** Returns the bytes of the volume. Throws if the files do not fit. */
export function writeSeed(files: readonly SeedFile[], label = "CIDATA"): Buffer {
  const { directory, chains, starts } = planSeed(files);
  const volume = Buffer.alloc(sectors * sectorBytes);
  const labelField = label.padEnd(11).slice(0, 11);
  writeBootSector(volume, labelField);

  const labelEntry = Buffer.alloc(entryBytes);
  labelEntry.write(labelField, 0, "latin1");
  labelEntry[11] = 0x08;
  files.forEach(({ content }, index) => {
    volume.set(Buffer.from(content as Uint8Array), dataAt + ((starts[index] as number) - 2) * sectorBytes);
  });
  Buffer.concat([labelEntry, ...directory]).copy(volume, rootAt);

  chains.forEach((next, cluster) => {
    const at = fatAt + Math.floor((cluster * 3) / 2);
    // Two entries of 12 bits share three bytes.
    if (cluster % 2 === 0) volume.writeUInt16LE(next, at);
    else volume.writeUInt16LE((volume.readUInt16LE(at) & 0x000f) | (next << 4), at);
  });
  volume.copyWithin(fatAt + fatSectors * sectorBytes, fatAt, fatAt + fatSectors * sectorBytes);
  return volume;
}

function writeBootSector(volume: Buffer, label: string): void {
  volume.set([0xeb, 0x3c, 0x90]);
  volume.write("MSDOS5.0", 3, "latin1");
  volume.writeUInt16LE(sectorBytes, 11);
  volume[13] = 1; // sectors per cluster
  volume.writeUInt16LE(1, 14); // sectors before the first table
  volume[16] = 2; // tables
  volume.writeUInt16LE(rootEntries, 17);
  volume.writeUInt16LE(sectors, 19);
  volume[21] = 0xf0; // a floppy of 3.5 inches
  volume.writeUInt16LE(fatSectors, 22);
  volume.writeUInt16LE(18, 24); // sectors per track
  volume.writeUInt16LE(2, 26); // heads
  volume[38] = 0x29; // serial number, label and type follow
  volume.writeUInt32LE(0x5eed5eed, 39);
  volume.write(label, 43, "latin1");
  volume.write("FAT12   ", 54, "latin1");
  volume.writeUInt16BE(0x55aa, 510);
}

/** Returns the directory entries of a file: the parts of its long name, last one first, then the short entry with an internal name. */
function nameEntries(name: string, index: number, cluster: number, length: number): Buffer[] {
  const short = Buffer.from(`SEED${index}`.padEnd(11), "latin1");
  const checksum = short.reduce((sum, byte) => (((sum & 1) << 7) + (sum >> 1) + byte) & 0xff, 0);
  if (name.length === 0 || name.length > 255) throw new Error(`seed: "${name}" is not a valid file name`);
  const units = Array.from({ length: name.length }, (_, at) => name.charCodeAt(at));
  if (units.length % 13 !== 0) units.push(0);
  while (units.length % 13 !== 0) units.push(0xffff);
  const parts = units.length / 13;
  const long = Array.from({ length: parts }, (_, at) => {
    const part = parts - at;
    const entry = Buffer.alloc(entryBytes);
    entry[0] = at === 0 ? part | 0x40 : part;
    entry[11] = 0x0f;
    entry[13] = checksum;
    unitOffsets.forEach((offset, unit) => entry.writeUInt16LE(units[(part - 1) * 13 + unit] ?? 0xffff, offset));
    return entry;
  });
  const entry = Buffer.alloc(entryBytes);
  short.copy(entry);
  entry[11] = 0x20;
  entry.writeUInt16LE(0x5821, 24); // 2024-01-01: some readers refuse the date 0
  entry.writeUInt16LE(cluster, 26);
  entry.writeUInt32LE(length, 28);
  return [...long, entry];
}
