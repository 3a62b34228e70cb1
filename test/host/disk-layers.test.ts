/** The layers of a disk with the real qemu-img: copies share them, a merge keeps the content, and nothing else can write to them. */
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { exec } from "../../service/src/drivers/exec.ts";
import {
  allocatedOf,
  chainOf,
  checkDisk,
  createDisks,
  GIB,
  layerName,
  originOf,
  removeOtherVersions,
  sizeOf,
  topOf,
  versionsOf,
} from "../../service/src/drivers/machine/disk/disk.ts";
import { printImage } from "../../service/src/drivers/machine/image/manifest.ts";
import { guestImage } from "../support/machinelab.ts";

const root = mkdtempSync(join(tmpdir(), "brume-disk-"));
after(() => rmSync(root, { recursive: true }));

test("finds versions and layers by number and ignores other names", async () => {
  const folder = join(root, "count");
  assert.deepEqual(versionsOf(folder), []);
  for (const name of ["disk-10", "disk-9", "disk-2.part", "disk-x", "disk-0", "run"])
    mkdirSync(join(folder, name), { recursive: true });
  assert.deepEqual(versionsOf(folder), [9, 10]);
  assert.throws(() => topOf(join(folder, "disk-9")), /contains no layer/);
  for (const name of ["0.qcow2", "9.qcow2", "10.qcow2", "11.qcow2.part"])
    writeFileSync(join(folder, "disk-9", name), "");
  assert.equal(topOf(join(folder, "disk-9")), 10);
  await removeOtherVersions(folder, 9);
  assert.deepEqual(readdirSync(folder).sort(), ["disk-0", "disk-9", "disk-x", "run"]);
});

test("reads the size of a qcow2 file and refuses others", async () => {
  const path = join(root, "size");
  const header = Buffer.alloc(32);
  header.writeUInt32BE(0x514649fb);
  header.writeBigUInt64BE(BigInt(5 * GIB), 24);
  writeFileSync(path, header);
  assert.equal(await sizeOf(path), 5 * GIB);
  for (const bytes of [Buffer.alloc(0), header.subarray(0, 31), Buffer.alloc(32)]) {
    writeFileSync(path, bytes);
    await assert.rejects(sizeOf(path), /is not a qcow2 file/);
  }
});

test("reports the layer with a damaged header", async () => {
  const disk = join(root, "damaged");
  mkdirSync(disk);
  const header = Buffer.alloc(32);
  header.writeUInt32BE(0x514649fb);
  header.writeBigUInt64BE(2n ** 63n, 8);
  header.writeUInt32BE(7, 16);
  writeFileSync(join(disk, layerName(0)), header);
  for (const bytes of [header, Buffer.alloc(32, 0xff), Buffer.alloc(5)]) {
    writeFileSync(join(disk, layerName(1)), bytes);
    await assert.rejects(chainOf(disk), { name: "DiskError", message: /is damaged: layer 1\.qcow2/ });
    await assert.rejects(checkDisk(disk, 0), { name: "DiskError" });
  }
  await assert.rejects(checkDisk(join(root, "nowhere"), 0), /its disk is missing/);
});

test("reports a missing boot file", async () => {
  const disk = join(root, "bare");
  mkdirSync(disk);
  const header = Buffer.alloc(32);
  header.writeUInt32BE(0x514649fb);
  writeFileSync(join(disk, layerName(1)), header);
  const uid = statSync(join(disk, layerName(1))).uid;
  const image = guestImage({ boot: "kernel", files: { disk: "disk.qcow2", kernel: "bzImage", initrd: "initrd" } });
  const files = { "image.json": printImage(image), vmlinuz: "", "initrd.gz": "" };
  for (const [name, content] of Object.entries(files)) {
    const message = `its disk is damaged: file ${name} is missing`;
    await assert.rejects(checkDisk(disk, uid), { name: "DiskError", message });
    writeFileSync(join(disk, name), content);
  }
  await checkDisk(disk, uid);
});

const hindrance =
  process.getuid?.() !== 0
    ? "not root"
    : spawnSync("qemu-img", ["--version"]).status === 0 && spawnSync("qemu-io", ["--version"]).status === 0
      ? false
      : "no qemu-img and qemu-io";

describe("chains of layers", { skip: hindrance }, () => {
  const uid = 699_123;
  const images = join(root, "images");
  const disks = createDisks(exec, images, true);
  const image = guestImage();
  const io = (disk: string, ...commands: string[]) =>
    exec.run(["qemu-io", "-f", "qcow2", ...commands.flatMap((command) => ["-c", command]), layerName(topOf(disk))], {
      cwd: disk,
      uid,
      gid: uid,
    });
  const contains = async (disk: string, pattern: number, at: string) =>
    !/verification failed/.test(await io(disk, `read -P ${pattern} ${at} 512`));
  const disk = join(root, "7", "disk-1");
  const copy = join(root, "8", "disk-1");

  test("a disk keeps its image's data after the image is removed", async () => {
    mkdirSync(join(images, "base"), { recursive: true });
    writeFileSync(join(images, "base", "image.json"), printImage(image));
    const base = join(images, "base", "disk-1.qcow2");
    await exec.run(["qemu-img", "create", "-q", "-f", "qcow2", base, String(GIB)]);
    await exec.run(["qemu-io", "-f", "qcow2", "-c", "write -P 1 0 512", base]);
    mkdirSync(join(root, "7"));
    await disks.fromImage(disk, "base", 2 * GIB, uid);
    rmSync(images, { recursive: true });
    assert.deepEqual([topOf(disk), await sizeOf(join(disk, layerName(1)))], [1, 2 * GIB]);
    assert.equal(await contains(disk, 1, "0"), true);
    assert.deepEqual([statSync(join(disk, layerName(0))).uid, statSync(join(disk, layerName(1))).uid], [0, uid]);
    assert.equal((await originOf(disk)).boot, "disk");
  });

  test("a copy shares read-only layers, and later writes are separate", async () => {
    await io(disk, "write -P 2 512 512");
    const top = await disks.addLayer(disk, uid);
    await disks.seal(disk, top - 1);
    mkdirSync(join(root, "8"));
    await disks.fromDisk(copy, disk, top, 3 * GIB, uid);
    await io(disk, "write -P 3 512 512");
    assert.deepEqual(
      [await contains(disk, 3, "512"), await contains(copy, 2, "512"), await contains(copy, 1, "0")],
      [true, true, true],
    );
    assert.equal(statSync(join(disk, layerName(1))).ino, statSync(join(copy, layerName(1))).ino);
    assert.ok(allocatedOf(copy) < 1e6);
  });

  test("merges unshared layers only", async () => {
    for (const pattern of [4, 5]) {
      const top = await disks.addLayer(disk, uid);
      await disks.seal(disk, top - 1);
      await io(disk, `write -P ${pattern} ${pattern * 512} 512`);
    }
    assert.equal(topOf(disk), 4);
    await disks.grow(disk, 4 * GIB, uid);
    await disks.shorten(disk, 1, uid);
    assert.equal(topOf(disk), 2);
    for (const [pattern, at] of [
      [1, "0"],
      [3, "512"],
      [4, "2048"],
      [5, "2560"],
    ] as const)
      assert.equal(await contains(disk, pattern, at), true, at);
    assert.equal(await sizeOf(join(disk, layerName(2))), 4 * GIB);
    assert.equal(await contains(copy, 2, "512"), true);
    rmSync(join(root, "8"), { recursive: true });
    await disks.shorten(disk, 1, uid);
    assert.deepEqual([topOf(disk), await contains(disk, 3, "512"), await contains(disk, 5, "2560")], [1, true, true]);
    assert.equal(existsSync(join(disk, layerName(2))), false);
  });

  test("a disk grows, and never shrinks", async () => {
    assert.equal(await disks.grow(disk, 5 * GIB, uid), true);
    assert.equal(await disks.grow(disk, 4 * GIB, uid), false);
    assert.equal(await sizeOf(join(disk, layerName(1))), 5 * GIB);
    assert.equal(await contains(disk, 5, "2560"), true);
  });

  test("waits for the disk lock of a killed process", async (t) => {
    const path = join(disk, layerName(1));
    const left = spawn("qemu-io", ["-f", "qcow2", path], { stdio: ["pipe", "pipe", "inherit"] });
    t.after(() => left.kill("SIGKILL"));
    left.stdin.write("length\n");
    await once(left.stdout, "data");
    const grown = disks.grow(disk, 6 * GIB, uid);
    await sleep(300);
    assert.equal(await sizeOf(path), 5 * GIB);
    left.kill("SIGKILL");
    assert.equal(await grown, true);
    assert.equal(await sizeOf(path), 6 * GIB);
  });

  test("an exported disk is independent", async () => {
    const target = join(root, "7", "whole.qcow2");
    const top = await disks.addLayer(disk, uid);
    await disks.seal(disk, top - 1);
    await disks.createTarget(target, 6 * GIB, uid);
    await disks.flatten(disk, top - 1, { path: "whole.qcow2", format: "qcow2" }, uid);
    const info = JSON.parse(await exec.run(["qemu-img", "info", "--output=json", target])) as Record<string, unknown>;
    assert.deepEqual([info["backing-filename"], info["virtual-size"]], [undefined, 6 * GIB]);
    assert.match(await exec.run(["qemu-io", "-c", "read -P 3 512 512", target]), /^read 512/);
  });
});
