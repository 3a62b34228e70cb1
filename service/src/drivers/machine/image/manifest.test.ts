import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import fc from "fast-check";
import { listFileCalls } from "../../../../../test/support/filecalls.ts";
import { findImage, type GuestImage, isImageName, listImages, parseImage, printImage, readImage } from "./manifest.ts";

let images = "";
before(() => {
  images = mkdtempSync(join(tmpdir(), "brume-images-"));
});
after(() => rmSync(images, { recursive: true }));

const image: GuestImage = {
  name: "tiny",
  title: "Tiny",
  family: "Linux",
  os: "Linux",
  minRam: 128,
  hdd: 1,
  boot: "kernel",
  format: "qcow2",
  files: { disk: "disk-1.qcow2", kernel: "vmlinuz-1", initrd: "initrd-1.gz" },
  version: "1",
  source: "a test",
  made: 1_795_000_000_000,
  guest: "cloud-init",
};
/** The first bytes of an empty qcow2 of a gigabyte. */
const qcow2 = Buffer.alloc(104);
qcow2.write("QFI\u00fb", "latin1");
qcow2.writeUInt32BE(3, 4);
qcow2.writeBigUInt64BE(2n ** 30n, 24);

function place(name: string, manifest: string, files: Readonly<Record<string, Buffer | string>>): void {
  mkdirSync(join(images, name));
  writeFileSync(join(images, name, "image.json"), manifest);
  for (const [file, content] of Object.entries(files)) writeFileSync(join(images, name, file), content);
}

test("a printed manifest is parsed again", () => {
  assert.deepEqual(parseImage(printImage(image), "tiny"), image);
  const { kernel: _kernel, initrd: _initrd, ...files } = image.files;
  const other: GuestImage = { ...image, boot: "uefi", files };
  assert.deepEqual(parseImage(printImage(other), "tiny"), other);
});

test("the error names the invalid value", () => {
  const wrong: readonly (readonly [string, unknown])[] = [
    ["name", "other"],
    ["title", ""],
    ["title", "two\nlines"],
    ["family", "Amiga"],
    ["minRam", 0],
    ["minRam", "128"],
    ["hdd", 1.5],
    ["hdd", 4097],
    ["boot", "pxe"],
    ["format", "raw"],
    ["files", null],
    ["files", { disk: "../../etc/shadow", kernel: "a", initrd: "b" }],
    ["files", { disk: "image.json", kernel: "a", initrd: "b" }],
    ["files", { disk: "a" }],
    ["version", "../1"],
    ["made", -1],
  ];
  for (const [key, value] of wrong)
    assert.throws(() => parseImage(JSON.stringify({ ...image, [key]: value }), "tiny"), new RegExp(`"${key}`), key);
});

test("random text throws only ImageError", () => {
  const anyText = fc.oneof(
    fc.string(),
    fc.json(),
    fc.object().map((value) => JSON.stringify({ ...image, ...value })),
  );
  fc.assert(
    fc.property(anyText, (text) => {
      try {
        parseImage(text, "tiny");
      } catch (error) {
        assert.equal((error as Error).name, "ImageError");
      }
    }),
  );
});

test("lists usable images, and others with the reason", async () => {
  const { disk, kernel = "", initrd = "" } = image.files;
  const complete = { [disk]: qcow2, [kernel]: "k", [initrd]: "i" };
  const named = (name: string) => printImage({ ...image, name });
  place("good", named("good"), complete);
  place("no-kernel", named("no-kernel"), { [disk]: qcow2, [initrd]: "i" });
  place("no-json", "{", complete);
  const overlay = Buffer.from(qcow2);
  overlay.writeBigUInt64BE(512n, 8);
  place("overlay", named("overlay"), { ...complete, [disk]: overlay });
  place("raw", named("raw"), { ...complete, [disk]: Buffer.alloc(1024) });
  place("linked", named("linked"), { [kernel]: "k", [initrd]: "i" });
  symlinkSync("/etc/passwd", join(images, "linked", disk));
  place("half.1-2.part", named("half"), complete);
  mkdirSync(join(images, "empty"));
  writeFileSync(join(images, "a-file"), "");
  const found = await listImages(images);
  assert.deepEqual(
    found.images.map(({ name }) => name),
    ["good"],
  );
  assert.deepEqual(
    Object.fromEntries(found.broken.map(({ name, reason }) => [name, reason.split(":").at(-1)?.trim()])),
    {
      linked: "the file disk-1.qcow2 is missing.",
      "no-json": "it is not JSON.",
      "no-kernel": "the file vmlinuz-1 is missing.",
      overlay: "it names a backing file.",
      raw: "the file disk-1.qcow2 is not a qcow2.",
    },
  );
  assert.equal(await readImage(images, "empty"), null);
  assert.equal(await readImage(images, "../images/good"), null);
  assert.deepEqual(await listImages(join(images, "nowhere")), { images: [], broken: [] });
});

test("images that are not wanted, and those behind the first that fits, are not opened", async () => {
  const folder = mkdtempSync(join(tmpdir(), "brume-images-"));
  try {
    const { disk } = image.files;
    for (const name of ["brume-tiny", "own-1", "own-2"]) {
      mkdirSync(join(folder, name));
      const boot = name === "brume-tiny" ? "uefi" : "disk";
      writeFileSync(join(folder, name, "image.json"), printImage({ ...image, name, boot, files: { disk } }));
      writeFileSync(join(folder, name, disk), qcow2);
    }
    let found: unknown;
    const opened = async (act: () => Promise<unknown>): Promise<string[]> => {
      const calls = await listFileCalls(async () => {
        found = await act();
      });
      return calls.filter((call) => call.startsWith("open ")).map((call) => call.slice(`open ${folder}/`.length));
    };
    const wanted = () => listImages(folder, (name) => !name.startsWith("own-"));
    assert.deepEqual(await opened(wanted), [`brume-tiny/${disk}`]);
    assert.deepEqual(
      (found as Awaited<ReturnType<typeof listImages>>).images.map(({ name }) => name),
      ["brume-tiny"],
    );
    assert.deepEqual(await opened(() => findImage(folder, ({ boot }) => boot === "disk")), [
      `brume-tiny/${disk}`,
      `own-1/${disk}`,
    ]);
    assert.equal((found as GuestImage).name, "own-1");
    assert.equal(await findImage(folder, ({ boot }) => boot === "kernel"), null);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test("valid names of images", () => {
  for (const name of ["brume-tiny", "a", "Ubuntu_24.04", "x".repeat(64)]) assert.ok(isImageName(name), name);
  for (const name of ["", ".", "..", ".hidden", "a/b", "a b", "x".repeat(65), "a.part", "é"])
    assert.ok(!isImageName(name), name);
});
