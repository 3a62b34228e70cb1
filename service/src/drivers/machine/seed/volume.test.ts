import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import fc from "fast-check";
import { seedCapacity, writeSeed } from "./volume.ts";

let folder = "";
before(() => {
  folder = mkdtempSync(join(tmpdir(), "brume-seed-"));
});
after(() => rmSync(folder, { recursive: true }));

/** Reads a volume by the specification, independently of the writer. */
function readVolume(volume: Buffer): { label: string; files: Map<string, Buffer> } {
  const size = volume.readUInt16LE(11);
  const [reserved, tables, entries] = [volume.readUInt16LE(14), volume.readUInt8(16), volume.readUInt16LE(17)];
  const tableBytes = volume.readUInt16LE(22) * size;
  const fat = volume.subarray(reserved * size, reserved * size + tableBytes);
  assert.deepEqual(fat, volume.subarray(reserved * size + tableBytes, reserved * size + 2 * tableBytes));
  const root = reserved * size + tables * tableBytes;
  const data = root + entries * 32;
  const next = (cluster: number) => {
    const pair = fat.readUInt16LE(Math.floor(cluster * 1.5));
    return cluster % 2 === 0 ? pair & 0xfff : pair >> 4;
  };
  const read = (start: number, length: number) => {
    const parts: Buffer[] = [];
    for (let cluster = start; cluster >= 2 && cluster < 0xff8; cluster = next(cluster))
      parts.push(volume.subarray(data + (cluster - 2) * size, data + (cluster - 1) * size));
    assert.equal(parts.length, Math.ceil(length / size));
    return Buffer.concat(parts).subarray(0, length);
  };
  const files = new Map<string, Buffer>();
  let label = "";
  let name = "";
  for (let at = root; at < data && volume[at] !== 0; at += 32) {
    const entry = volume.subarray(at, at + 32);
    if (entry[11] === 0x0f) {
      const units = [...entry.subarray(1, 11), ...entry.subarray(14, 26), ...entry.subarray(28, 32)];
      name = Buffer.from(units).toString("utf16le").split("\0")[0] + name;
    } else if (entry[11] === 0x08) label = entry.toString("latin1", 0, 11).trimEnd();
    else {
      files.set(name, read(entry.readUInt16LE(26), entry.readUInt32LE(28)));
      name = "";
    }
  }
  return { label, files };
}

const anyName = fc.string({
  unit: fc.constantFrom("a", "Z", "0", "-", "_", ".", " ", "é"),
  minLength: 1,
  maxLength: 60,
});
const anyFiles = fc.dictionary(
  anyName,
  fc.oneof(
    fc.uint8Array({ maxLength: 3000 }),
    fc.constantFrom(0, 511, 512, 513, 1024).map((length) => new Uint8Array(length).fill(7)),
  ),
  { maxKeys: 12, noNullPrototype: true },
);

test("written files are read again", () => {
  fc.assert(
    fc.property(anyFiles, (files) => {
      const volume = writeSeed(Object.entries(files).map(([name, content]) => ({ name, content })));
      const found = readVolume(volume);
      assert.equal(found.label, "CIDATA");
      assert.deepEqual(
        [...found.files].map(([name, content]) => [name, [...content]]),
        Object.entries(files).map(([name, content]) => [name, [...content]]),
      );
    }),
    { numRuns: 60 },
  );
});

const path = "/usr/sbin:/sbin:/usr/bin:/bin";
const has = (program: string) => path.split(":").some((directory) => existsSync(join(directory, program)));
const skip = has("fsck.vfat") && has("mtype") ? false : "dosfstools or mtools is not installed";

test("dosfstools and mtools find nothing wrong with it", { skip }, () => {
  const files = [
    { name: "user-data", content: "#cloud-config\n{}\n" },
    { name: "empty", content: "" },
    { name: "exactly13char", content: "x" },
    { name: "a-name-of-rather-more-than-26-characters.txt", content: "y".repeat(512) },
    { name: "large", content: Buffer.alloc(600_000, "z") },
  ];
  const volume = join(folder, "volume.img");
  writeFileSync(volume, writeSeed(files));
  execFileSync("fsck.vfat", ["-n", volume], { env: { PATH: path } });
  for (const { name, content } of files)
    assert.deepEqual(execFileSync("mtype", ["-i", volume, `::${name}`]), Buffer.from(content), name);
});

test("accepts files up to the capacity and refuses larger ones", () => {
  const fits = writeSeed([{ name: "all", content: Buffer.alloc(seedCapacity, 1) }]);
  assert.equal(readVolume(fits).files.get("all")?.length, seedCapacity);
  assert.throws(() => writeSeed([{ name: "all", content: Buffer.alloc(seedCapacity + 1) }]), /larger than/);
  const many = Array.from({ length: 112 }, (_, index) => ({ name: String(index), content: "" }));
  assert.throws(() => writeSeed(many), /too many files/);
  assert.throws(() => writeSeed([{ name: "", content: "" }]), /is not a valid file name/);
});
