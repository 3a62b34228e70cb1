/**
 * A disk that was created or changed survives a loss of power. The file system below it is in a file, and a copy of that file contains
 * only what was synced.
 */
import assert from "node:assert/strict";
import { chmodSync, cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, describe, test } from "node:test";
import { exec } from "../../service/src/drivers/exec.ts";
import { cleanseDisk } from "../../service/src/drivers/machine/disk/cleanse.ts";
import {
  checkDisk,
  createDisks,
  kernelName,
  layerName,
  originOf,
  topOf,
} from "../../service/src/drivers/machine/disk/disk.ts";
import { printImage } from "../../service/src/drivers/machine/image/manifest.ts";
import { makeFolder } from "../../service/src/drivers/machine/qemu/folder.ts";
import { guestImage } from "../support/machinelab.ts";

const programs = [
  ["mkfs.ext4", "-V"],
  ["e2fsck", "-V"],
  ["debugfs", "-V"],
  ["qemu-img", "--version"],
  ["qemu-io", "--version"],
  ["losetup", "-f"],
];
const tools = await Promise.all(programs.map((argv) => exec.run(argv))).then(
  () => "",
  (error: unknown) => String(error),
);
const hindrance = process.getuid?.() === 0 ? tools : "only root may mount file systems";
if (hindrance !== "") console.log(`disks after a loss of power: not tried, ${hindrance}`);

const uid = 688_777;
const size = 16 * 2 ** 20;

describe("after a loss of power", { skip: hindrance !== "" && hindrance }, () => {
  const root = mkdtempSync(join(tmpdir(), "brume-power-"));
  const [system, host] = [join(root, "host.ext4"), join(root, "host")];
  // On another file system than the servers, so disks are full copies.
  const images = join(root, "images");
  const disks = createDisks(exec, images, true);
  const mounted: string[] = [];
  const mount = async (file: string, at: string): Promise<void> => {
    mkdirSync(at, { mode: 0o711 });
    // The file system commits nothing by itself during a test.
    await exec.run(["mount", "-o", "loop,commit=3600", file, at]);
    mounted.push(at);
  };
  /** Returns the path in the file system as it is after a loss of power now. */
  let losses = 0;
  async function lose(path: string): Promise<string> {
    const at = join(root, `after-${++losses}`);
    cpSync(system, `${at}.ext4`);
    await mount(`${at}.ext4`, at);
    return path.replace(host, at);
  }
  const image = guestImage({
    name: "base",
    boot: "kernel",
    files: { disk: "disk-1.qcow2", kernel: "bzImage", initrd: "initrd" },
  });
  const folder = join(images, image.name);

  before(async () => {
    chmodSync(root, 0o711);
    await exec.run(["mkfs.ext4", "-q", system, "128M"]);
    await mount(system, host);
    const [tree, raw] = [join(root, "tree"), join(root, "base.raw")];
    for (const [path, content] of [
      ["etc/passwd", "root:x:0:0:root:/root:/bin/sh\n"],
      ["home/work", "what the user made\n"],
    ] as const) {
      mkdirSync(join(tree, dirname(path)), { recursive: true });
      writeFileSync(join(tree, path), content);
    }
    await exec.run(["mkfs.ext4", "-q", "-d", tree, raw, "16M"]);
    mkdirSync(folder, { recursive: true });
    await exec.run(["qemu-img", "convert", "-f", "raw", "-O", "qcow2", raw, join(folder, image.files.disk)]);
    writeFileSync(join(folder, "bzImage"), "the kernel");
    writeFileSync(join(folder, "initrd"), "its first files");
    writeFileSync(join(folder, "image.json"), printImage(image));
  });
  after(async () => {
    for (const at of mounted) await exec.run(["umount", at]);
    rmSync(root, { recursive: true });
  });

  const serverOf = (id: number) => join(host, "servers", String(id));
  const diskOf = (id: number) => join(serverOf(id), "disk-1");
  async function makeServer(id: number): Promise<void> {
    makeFolder(serverOf(id));
    await disks.fromImage(diskOf(id), image.name, size, uid);
  }
  /** Throws unless the guest's file of this disk can be read. */
  async function readWork(disk: string): Promise<void> {
    const raw = join(root, "seen.raw");
    await checkDisk(disk, uid);
    await exec.run(["qemu-img", "check", "-q", join(disk, layerName(topOf(disk)))]);
    await exec.run(["qemu-img", "convert", "-O", "raw", join(disk, layerName(topOf(disk))), raw]);
    assert.equal(await exec.run(["debugfs", "-R", "cat /home/work", raw]), "what the user made\n");
  }

  test("a new disk is complete", async () => {
    await makeServer(1);
    const disk = await lose(diskOf(1));
    assert.deepEqual(await originOf(disk), image);
    assert.equal(readFileSync(join(disk, kernelName), "utf8"), "the kernel");
    await readWork(disk);
  });

  test("a disk with a new layer is complete", async () => {
    await makeServer(2);
    assert.equal(await disks.addLayer(diskOf(2), uid), 2);
    const disk = await lose(diskOf(2));
    assert.equal(topOf(disk), 2);
    await readWork(disk);
  });

  test("a disk with merged layers is complete", async () => {
    await makeServer(4);
    await disks.addLayer(diskOf(4), uid);
    await disks.seal(diskOf(4), 1);
    await exec.run(["qemu-io", "-f", "qcow2", "-c", "write -P 1 15M 64k", join(diskOf(4), layerName(2))]);
    await disks.shorten(diskOf(4), 1, uid);
    const disk = await lose(diskOf(4));
    assert.equal(topOf(disk), 1);
    await readWork(disk);
    const seen = await exec.run(["qemu-io", "-f", "qcow2", "-c", "read -P 1 15M 64k", join(disk, layerName(1))]);
    assert.doesNotMatch(seen, /verification failed/);
  });

  test("a disk without the identity of its source is complete", async () => {
    await makeServer(3);
    const options = { disks, uid, signal: undefined };
    const identity = await cleanseDisk(options, serverOf(3), diskOf(3));
    assert.deepEqual(identity, { removed: true, detail: "" });
    const disk = await lose(diskOf(3));
    await readWork(disk);
    assert.deepEqual(
      readdirSync(disk).filter((name) => name.endsWith(".qcow2")),
      ["2.qcow2"],
    );
    assert.deepEqual(await cleanseDisk(options, dirname(disk), disk), identity);
  });
});
