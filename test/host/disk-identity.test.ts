/** The identity of a guest is removed from real file systems, on the partitions of a disk. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import {
  chmodSync,
  chownSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, describe, test } from "node:test";
import { exec } from "../../service/src/drivers/exec.ts";
import { removeIdentity } from "../../service/src/drivers/machine/disk/identity.ts";
import { createDiskTools } from "../../service/src/drivers/machine/disk/tool.ts";

const tools = await Promise.all(["mkfs.ext4", "e2fsck", "debugfs"].map((name) => exec.run([name, "-V"]))).then(
  () => "",
  (error: unknown) => String(error),
);
const hindrance = process.getuid?.() === 0 ? tools : "only root may give files to other users";
if (hindrance !== "") console.log(`identities of guests: not tried, ${hindrance}`);

const uid = 688_888;
const diskTools = createDiskTools(exec, true);
const root = mkdtempSync(join(tmpdir(), "brume-identity-"));
after(() => rmSync(root, { recursive: true }));
/** Texts that occur nowhere else on a disk. */
const secret = (): string => `SECRET${randomBytes(12).toString("hex")}`;

/** Writes a guest's files to a partition of a disk; returns the secrets in them. */
async function makeDisk(name: string, type: number): Promise<{ disk: string; secrets: string[] }> {
  const [tree, disk, system] = [join(root, `${name}.tree`), join(root, `${name}.raw`), join(root, `${name}.ext4`)];
  const secrets: string[] = [];
  const put = (path: string, content: string) => {
    mkdirSync(join(tree, dirname(path)), { recursive: true });
    writeFileSync(join(tree, path), content);
  };
  const hide = (path: string) => {
    const word = secret();
    secrets.push(word);
    put(path, `${word}\n`.repeat(400));
  };
  for (const path of [
    "etc/ssh/ssh_host_ed25519_key",
    "etc/dropbear/host_key",
    "etc/shadow-",
    "etc/machine-id",
    "root/.ssh/authorized_keys",
    "root/.ash_history",
    "home/user/.ssh/authorized_keys",
    "srv/git/.ssh/authorized_keys",
    "var/log/syslog",
    "var/log/journal/0123/system.journal",
    'var/log/journal/a name "with" everything\nrm /etc/hostname',
    "var/lib/cloud/instances/i-1/user-data.txt",
    "var/lib/dhcp/dhclient.eth0.leases",
    "var/lib/brume/instance",
  ])
    hide(path);
  const hash = `$6$${secret()}`;
  secrets.push(hash);
  put("etc/shadow", `root:${hash}:19000:0:99999:7:::\ndaemon:*:19000:0:99999:7:::\n`);
  chmodSync(join(tree, "etc/shadow"), 0o640);
  put("etc/passwd", "root:x:0:0:root:/root:/bin/sh\ngit:x:1001:1001::/srv/git:/bin/sh\n");
  put("etc/hostname", "guest\n");
  put("etc/ssh/sshd_config", "Port 22\n");
  put("home/user/work", "what the user made\n");
  await exec.run(["mkfs.ext4", "-q", "-d", tree, system, "32M"]);
  // A deleted file whose blocks are still on the disk.
  const old = secret();
  secrets.push(old);
  writeFileSync(join(root, "old"), old.repeat(100));
  await exec.run(["debugfs", "-w", system], { stdin: `write ${join(root, "old")} old\nrm old\n` });
  const table = Buffer.alloc(2 ** 20);
  table[450] = type;
  table.writeUInt32LE(2048, 454);
  table.writeUInt32LE((32 * 2 ** 20) / 512, 458);
  table.writeUInt16BE(0x55aa, 510);
  writeFileSync(disk, Buffer.concat([table, readFileSync(system)]));
  truncateSync(disk, 40 * 2 ** 20);
  chownSync(disk, uid, uid);
  return { disk, secrets };
}

const debug = (disk: string, command: string) => exec.run(["debugfs", "-R", command, `${disk}?offset=1048576`]);

describe("the identity of a guest", { skip: hindrance !== "" && hindrance }, () => {
  test("is removed from the disk, and other data stays", async () => {
    chmodSync(root, 0o755);
    const { disk, secrets } = await makeDisk("linux", 0x83);
    assert.ok(
      secrets.every((word) => readFileSync(disk).includes(word)),
      "they were there",
    );
    assert.deepEqual(await removeIdentity({ tools: diskTools, uid }, disk), { removed: true, detail: "" });
    const bytes = readFileSync(disk);
    assert.deepEqual(
      secrets.filter((word) => bytes.includes(word)),
      [],
    );
    assert.match(await debug(disk, "cat /etc/shadow"), /^root:\*{20,}:19000:0:99999:7:::\ndaemon:\*:19000/);
    assert.match(await debug(disk, "stat /etc/shadow"), /Mode: +0640/);
    assert.equal(await debug(disk, "cat /etc/machine-id"), "");
    assert.match(await debug(disk, "stat /etc/machine-id"), /Type: regular .*[^]*Size: 0\n/);
    assert.equal(await debug(disk, "cat /etc/ssh/sshd_config"), "Port 22\n");
    assert.equal(await debug(disk, "cat /etc/hostname"), "guest\n");
    assert.equal(await debug(disk, "cat /home/user/work"), "what the user made\n");
    for (const path of ["/var/log", "/var/log/journal/0123", "/root/.ssh"])
      assert.doesNotMatch(await debug(disk, `ls -p ${path}`), /^\/[0-9]+\/10/m, path);
    await exec.run(["e2fsck", "-f", "-n", `${disk}?offset=1048576`]);
  });

  for (const [system, size, options] of [
    ["ext2", "8M", ["-b", "1024"]],
    ["ext3", "600M", ["-b", "1024"]],
    // The journal has more extents than its inode can list.
    ["ext4", "1G", ["-b", "1024", "-J", "size=192", "-E", "lazy_journal_init=1"]],
  ] as const)
    test(`is removed from ${system} with a long file of passwords, and the file system stays valid`, async () => {
      const [tree, disk] = [join(root, `${system}.tree`), join(root, `${system}.raw`)];
      const lines = Array.from({ length: 1000 }, (_, index) => `user${index}:$6$${secret()}:19000:0:99999:7:::\n`);
      mkdirSync(join(tree, "etc"), { recursive: true });
      writeFileSync(join(tree, "etc/shadow"), lines.join(""));
      writeFileSync(join(tree, "etc/passwd"), "root:x:0:0:root:/root:/bin/sh\n");
      await exec.run([`mkfs.${system}`, "-q", ...options, "-d", tree, disk, size]);
      chownSync(disk, uid, uid);
      assert.deepEqual(await removeIdentity({ tools: diskTools, uid }, disk), { removed: true, detail: "" });
      await exec.run(["e2fsck", "-f", "-n", disk]);
      const locked = lines.map((line) => line.replace(/\$[^:]*/, (hash) => "*".repeat(hash.length)));
      assert.ok((await exec.run(["debugfs", "-R", "cat /etc/shadow", disk])) === locked.join(""), "all are locked");
      const features = await exec.run(["debugfs", "-R", "features", disk]);
      assert.equal(features.includes("has_journal"), system !== "ext2");
      rmSync(disk);
    });

  for (const [place, paths, kept] of [
    ["/home", ["ann/.ssh/authorized_keys", "ann/.bash_history"], "ann/notes"],
    ["/var", ["log/syslog", "lib/cloud/instances/i-1/user-data.txt", "lib/dbus/machine-id"], "lib/app/data"],
    ["/var/log", ["syslog", "journal/0123/system.journal"], null],
    ["/data", ["base/.ssh/authorized_keys"], "log/app"],
  ] as const)
    test(`is removed from a partition that is ${place} of the guest`, async () => {
      const [tree, disk] = [join(root, `part${place.replaceAll("/", "-")}`), join(root, "part.raw")];
      const word = secret();
      for (const path of kept === null ? paths : [...paths, kept]) {
        mkdirSync(join(tree, dirname(path)), { recursive: true });
        writeFileSync(join(tree, path), path === kept ? "kept\n" : `${word}\n`.repeat(100));
      }
      rmSync(disk, { force: true });
      await exec.run(["mkfs.ext4", "-q", "-d", tree, disk, "16M"]);
      chownSync(disk, uid, uid);
      const { removed } = await removeIdentity({ tools: diskTools, uid }, disk);
      assert.equal(removed, false, "there is no root file system");
      assert.equal(readFileSync(disk).includes(word), false);
      if (kept !== null) assert.equal(await exec.run(["debugfs", "-R", `cat /${kept}`, disk]), "kept\n");
    });

  test("stays on a disk whose file of accounts has no end", async () => {
    const disk = join(root, "endless.raw");
    const tree = join(root, "endless.tree");
    mkdirSync(join(tree, "etc"), { recursive: true });
    writeFileSync(join(tree, "etc/passwd"), "");
    // A file of 10 GB without a block takes no space on the disk.
    truncateSync(join(tree, "etc/passwd"), 10 * 2 ** 30);
    await exec.run(["mkfs.ext4", "-q", "-d", tree, disk, "16M"]);
    chownSync(disk, uid, uid);
    await assert.rejects(removeIdentity({ tools: diskTools, uid }, disk), {
      name: "FileSystemError",
      message: /printed more than 67108864 bytes/,
    });
  });

  test("stays on an unreadable disk, and the result gives the reason", async () => {
    const disk = join(root, "xfs.raw");
    const bytes = Buffer.alloc(2 ** 20);
    bytes.write("XFSB");
    writeFileSync(disk, bytes);
    const { removed, detail } = await removeIdentity({ tools: diskTools, uid }, disk);
    assert.equal(removed, false);
    assert.match(detail, /the disk \(XFS\) cannot be opened/);
    assert.deepEqual(readFileSync(disk), bytes);
  });
});
