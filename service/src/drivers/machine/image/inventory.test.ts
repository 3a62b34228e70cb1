import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { listFileCalls } from "../../../../../test/support/filecalls.ts";
import { listHeldNames, readHeldImages } from "./inventory.ts";
import { type GuestImage, manifestName, printImage } from "./manifest.ts";

const root = mkdtempSync(join(tmpdir(), "brume-inventory-"));
after(() => rmSync(root, { recursive: true }));
const [servers, images, backups] = ["servers", "images", "backups"].map((name) => join(root, name)) as [
  string,
  string,
  string,
];

/** The header of a qcow2 file of 3 GB. */
function header(): Buffer {
  const head = Buffer.alloc(4096);
  head.writeUInt32BE(0x514649fb, 0);
  head.writeUInt32BE(3, 4);
  head.writeUInt32BE(16, 20);
  head.writeBigUInt64BE(3n << 30n, 24);
  head.writeUInt32BE(4, 96);
  head.writeUInt32BE(104, 100);
  return head;
}

const image = (name: string): GuestImage => ({
  name,
  title: `Title of ${name}`,
  family: "Linux",
  os: "Linux",
  minRam: 256,
  hdd: 3,
  boot: "disk",
  format: "qcow2",
  files: { disk: "disk.qcow2" },
  version: "1",
  source: "",
  made: 1,
  guest: null,
});

function add(folder: string, name: string, manifest = printImage(image(name))): void {
  mkdirSync(join(folder, name), { recursive: true });
  writeFileSync(join(folder, name, manifestName), manifest);
  writeFileSync(join(folder, name, "disk.qcow2"), header());
}

for (let id = 1; id <= 20; id++) add(images, `own-${id}`);
add(images, "own-21", "nonsense");
add(backups, "backup-22");
mkdirSync(join(images, "own-23.1-2.part"));
mkdirSync(join(images, "own-24"));
const snapshot = join(servers, "own-25.image", "disk");
mkdirSync(snapshot, { recursive: true });
writeFileSync(join(snapshot, manifestName), printImage(image("brume-tiny")));
writeFileSync(join(snapshot, "0.qcow2"), header());
mkdirSync(join(servers, "7"));

test("names are listed by one read of each directory", async () => {
  const calls = await listFileCalls(async () => {
    const found = await listHeldNames(servers, [images, backups]);
    const own = Array.from({ length: 21 }, (_, at) => `own-${at + 1}`);
    assert.deepEqual(found.map(({ kind, name }) => `${kind} ${name}`).sort(), [
      ...[...own, "own-24", "backup-22"].map((name) => `image ${name}`).sort(),
      "snapshot own-25",
    ]);
  });
  assert.deepEqual(calls.sort(), [backups, images, servers].map((folder) => `readdir ${folder}`).sort());
});

test("details are read of the named images and snapshots only", async () => {
  let found: Awaited<ReturnType<typeof readHeldImages>> = [];
  const names = ["own-2", "own-21", "backup-22", "own-24", "own-25", "own-99", "../images/own-3"];
  const calls = await listFileCalls(async () => {
    found = await readHeldImages(servers, [images, backups], names);
  });
  assert.deepEqual(
    found.map(({ kind, name, title, minRam, gb }) => [kind, name, title, minRam, gb]),
    [
      ["image", "own-2", "Title of own-2", 256, 3],
      ["image", "own-21", 'image.json of image "own-21": it is not JSON.', 0, 0],
      ["image", "backup-22", "Title of backup-22", 256, 3],
      ["snapshot", "own-25", "Title of brume-tiny", 256, 3],
    ],
  );
  assert.ok(found.every(({ bytes }) => bytes >= 4096));
  assert.deepEqual(
    calls.filter((call) => /own-(1|3)\b/.test(call)),
    [],
  );
});
