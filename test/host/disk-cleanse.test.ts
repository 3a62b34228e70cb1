/** The disk of a copy loses the identity of its source before the first start, with real file systems. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { constants, tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, describe, test } from "node:test";
import { exec } from "../../service/src/drivers/exec.ts";
import { cleanseDisk } from "../../service/src/drivers/machine/disk/cleanse.ts";
import { chainOf, checkDisk, createDisks, layerName, topOf } from "../../service/src/drivers/machine/disk/disk.ts";
import { printImage } from "../../service/src/drivers/machine/image/manifest.ts";
import { guestImage } from "../support/machinelab.ts";

const tools = await Promise.all(
  ["mkfs.ext4", "e2fsck", "debugfs"].map((name) => exec.run([name, "-V"])).concat(exec.run(["qemu-img", "--version"])),
).then(
  () => "",
  (error: unknown) => String(error),
);
const hindrance = process.getuid?.() === 0 ? tools : "only root may give files to other users";
if (hindrance !== "") console.log(`disks of copies: not tried, ${hindrance}`);

const uid = 688_999;
const size = 64 * 2 ** 20;

describe("the disk of a copy", { skip: hindrance !== "" && hindrance }, () => {
  const root = mkdtempSync(join(tmpdir(), "brume-cleanse-"));
  after(() => rmSync(root, { recursive: true }));
  chmodSync(root, 0o711);
  const disks = createDisks(exec, join(root, "images"), true);
  const image = guestImage({ name: "imported", title: "Imported" });
  const options = { disks, uid, signal: undefined };
  const serverOf = (id: number) => join(root, String(id));
  const diskOf = (id: number) => join(serverOf(id), "disk-1");
  let files = 0;
  /** The content of a disk as its guest sees it. */
  async function contentOf(id: number): Promise<{ path: string; bytes: Buffer }> {
    const path = join(root, `seen-${++files}.raw`);
    await exec.run(["qemu-img", "convert", "-O", "raw", join(diskOf(id), layerName(topOf(diskOf(id)))), path]);
    return { path, bytes: readFileSync(path) };
  }
  async function makeImage(fill: (raw: string) => Promise<void>): Promise<void> {
    const [raw, folder] = [join(root, "base.raw"), join(root, "images", image.name)];
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(folder, { recursive: true });
    await fill(raw);
    await exec.run(["qemu-img", "convert", "-f", "raw", "-O", "qcow2", raw, join(folder, image.files.disk)]);
    writeFileSync(join(folder, "image.json"), printImage(image));
  }
  async function makeServer(id: number): Promise<void> {
    mkdirSync(serverOf(id), { mode: 0o711 });
    await disks.fromImage(diskOf(id), image.name, size, uid);
  }
  async function copyServer(from: number, to: number): Promise<void> {
    mkdirSync(serverOf(to), { mode: 0o711 });
    const top = await disks.addLayer(diskOf(from), uid);
    await disks.seal(diskOf(from), top - 1);
    await disks.fromDisk(diskOf(to), diskOf(from), top, size, uid);
  }

  test("loses the identity of its source, which keeps it", async () => {
    const tree = join(root, "tree");
    const put = (path: string, content: string) => {
      mkdirSync(dirname(join(tree, path)), { recursive: true });
      writeFileSync(join(tree, path), content);
    };
    const secrets = ["etc/ssh/ssh_host_rsa_key", "etc/machine-id", "root/.ssh/authorized_keys", "var/log/auth.log"].map(
      (path) => {
        const word = `SECRET${randomBytes(12).toString("hex")}`;
        put(path, `${word}\n`.repeat(400));
        return word;
      },
    );
    const hash = `$6$SECRET${randomBytes(12).toString("hex")}`;
    put("etc/shadow", `root:${hash}:19000:0:99999:7:::\n`);
    put("etc/passwd", "root:x:0:0:root:/root:/bin/sh\n");
    put("home/work", "what the user made\n");
    secrets.push(hash);
    await makeImage(async (raw) => void (await exec.run(["mkfs.ext4", "-q", "-d", tree, raw, "64M"])));
    await makeServer(1);
    await copyServer(1, 2);
    const before = await contentOf(2);
    assert.ok(
      secrets.every((word) => before.bytes.includes(word)),
      "they were there",
    );

    const identity = await cleanseDisk(options, serverOf(2), diskOf(2));
    assert.deepEqual(identity, { removed: true, detail: "" });
    const { bytes, path } = await contentOf(2);
    assert.deepEqual(
      secrets.filter((word) => bytes.includes(word)),
      [],
    );
    assert.equal(await exec.run(["debugfs", "-R", "cat /home/work", path]), "what the user made\n");
    await exec.run(["e2fsck", "-f", "-n", path]);
    await checkDisk(diskOf(2), uid);
    assert.equal((await chainOf(diskOf(2))).length, 1, "it shares nothing");
    assert.deepEqual(readdirSync(serverOf(2)), ["disk-1"]);
    const source = await contentOf(1);
    assert.ok(
      secrets.every((word) => source.bytes.includes(word)),
      "its source keeps them",
    );

    const top = topOf(diskOf(2));
    assert.deepEqual(await cleanseDisk(options, serverOf(2), diskOf(2)), identity);
    assert.equal(topOf(diskOf(2)), top, "once is enough");
    // Killed before the result was stored.
    rmSync(join(diskOf(2), "identity.json"));
    assert.deepEqual(await cleanseDisk(options, serverOf(2), diskOf(2)), identity);
    assert.equal((await contentOf(2)).bytes.includes("what the user made"), true);
    await copyServer(2, 3);
    assert.equal(existsSync(join(diskOf(3), "identity.json")), false, "the result is not copied");
    assert.equal((await contentOf(3)).bytes.includes("what the user made"), true);
  });

  test("a program that is killed is an error, and the next call removes the identity", async () => {
    const path = join(root, "tree-killed");
    mkdirSync(join(path, "etc/ssh"), { recursive: true });
    writeFileSync(join(path, "etc/passwd"), "root:x:0:0:root:/root:/bin/sh\n");
    writeFileSync(join(path, "etc/ssh/ssh_host_rsa_key"), "SECRET of the source\n".repeat(100));
    await makeImage(async (raw) => void (await exec.run(["mkfs.ext4", "-q", "-d", path, raw, "64M"])));
    await makeServer(6);
    await copyServer(6, 7);
    for (const program of ["e2fsck", "debugfs"]) {
      // The kernel kills it at its first write (SIGXFSZ); the shell that waits for it adds 128 to the number of the signal.
      const run: typeof disks.tools.run = (argv, use) =>
        disks.tools.run(argv, argv[0] === program ? { ...use, bytes: 0 } : use);
      const killed = { ...options, disks: { ...disks, tools: { ...disks.tools, run } } };
      const before = readdirSync(diskOf(7));
      await assert.rejects(cleanseDisk(killed, serverOf(7), diskOf(7)), {
        name: "CommandError",
        code: 128 + constants.signals.SIGXFSZ,
      });
      assert.deepEqual([readdirSync(diskOf(7)), readdirSync(serverOf(7))], [before, ["disk-1"]]);
    }
    assert.deepEqual(await cleanseDisk(options, serverOf(7), diskOf(7)), { removed: true, detail: "" });
    assert.equal((await contentOf(7)).bytes.includes("SECRET of the source"), false);
  });

  test("a file system that cannot be repaired stays as it is, and the result gives the reason", async () => {
    await makeImage(async (raw) => {
      await exec.run(["mkfs.ext4", "-q", "-b", "4096", raw, "64M"]);
      const bytes = readFileSync(raw);
      // Nothing but the mark of the superblock.
      writeFileSync(raw, Buffer.concat([Buffer.alloc(1080), bytes.subarray(1080, 1082), Buffer.alloc(size - 1082)]));
    });
    await makeServer(8);
    await copyServer(8, 9);
    const before = await contentOf(9);
    const identity = await cleanseDisk(options, serverOf(9), diskOf(9));
    assert.deepEqual(identity, { removed: false, detail: "its file systems cannot be read" });
    assert.ok((await contentOf(9)).bytes.equals(before.bytes));
  });

  test("stays unchanged without a readable file system, and the result gives the reason", async () => {
    await makeImage(async (raw) => {
      writeFileSync(raw, "XFSB followed by any text");
      truncateSync(raw, size);
    });
    await makeServer(4);
    await copyServer(4, 5);
    const { removed, detail } = await cleanseDisk(options, serverOf(5), diskOf(5));
    assert.equal(removed, false);
    assert.match(detail, /the disk \(XFS\) cannot be opened/);
    assert.equal((await contentOf(5)).bytes.toString("latin1", 0, 25), "XFSB followed by any text");
  });
});
