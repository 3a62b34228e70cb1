/** The programs that read a guest's disk have no rights, no network and no file but the disk. */
import assert from "node:assert/strict";
import {
  chmodSync,
  chownSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { createExec } from "../../service/src/drivers/exec.ts";
import { createDiskTools, fileLimit } from "../../service/src/drivers/machine/disk/tool.ts";
import { waitUntil } from "../support/waituntil.ts";

/** Of no other test, and of no daemon of a network: a test below kills a process of this user. */
const uid = 698_777;
const exec = createExec();
const isRoot = process.getuid?.() === 0;
const reason = isRoot
  ? await createDiskTools(exec)
      .tryRoot()
      .then(() => "", String)
  : "only root may create a root";
if (reason !== "") console.log(`roots of disk tools: not tried, ${reason}`);

/** Returns the processes of the user. */
const processes = (): string[] =>
  readdirSync("/proc").filter((entry) => {
    try {
      return (
        /^[0-9]+$/.test(entry) &&
        new RegExp(`^Uid:\\t${uid}\\t`, "m").test(readFileSync(`/proc/${entry}/status`, "utf8"))
      );
    } catch {
      return false;
    }
  });

async function untilProcesses(count: number): Promise<string[]> {
  for (let waited = 0; waited < 120_000; waited += 10) {
    const found = processes();
    if (found.length === count) return found;
    await sleep(10);
  }
  throw new Error(`the user has ${processes().length} processes instead of ${count}`);
}

describe("a program that reads a disk", { skip: reason !== "" && reason }, () => {
  const folder = mkdtempSync(join(tmpdir(), "brume-tool-"));
  after(() => rmSync(folder, { recursive: true }));
  chmodSync(folder, 0o755);
  const secret = join(folder, "secret");
  const tools = createDiskTools(exec, true);
  const use = { folder, readable: ["."], writable: ["disk"], bytes: 2 ** 20, uid, timeout: 60_000 };
  writeFileSync(join(folder, "disk"), "");
  chownSync(join(folder, "disk"), uid, uid);
  writeFileSync(join(folder, "other"), "");
  chownSync(join(folder, "other"), uid, uid);
  mkdirSync(secret);
  writeFileSync(join(secret, "word"), "all users may read this");
  /** Runs debugfs, which waits for commands, until `work` ends. */
  async function during(work: (pid: string) => void): Promise<void> {
    const { promise: stdin, resolve } = Promise.withResolvers<string>();
    const run = tools.run(["debugfs"], { ...use, stdin });
    try {
      const [pid = ""] = await untilProcesses(1);
      // Before, it is a program that takes its rights away.
      const program = () => readFileSync(`/proc/${pid}/comm`, "utf8").trim();
      await waitUntil("debugfs", program, (name) => name === "debugfs");
      work(pid);
    } finally {
      resolve("quit\n");
    }
    await run;
  }

  test("has no rights, no network, and a root with its disk only", () =>
    during((pid) => {
      const status = readFileSync(`/proc/${pid}/status`, "utf8");
      const field = (name: string) => new RegExp(`^${name}:[ \\t]*(.*)$`, "m").exec(status)?.[1]?.trim();
      for (const name of ["Uid", "Gid"]) assert.deepEqual(field(name)?.split("\t"), Array(4).fill(String(uid)), name);
      for (const name of ["CapBnd", "CapEff", "CapPrm", "CapInh", "CapAmb"])
        assert.match(field(name) ?? "", /^0+$/, name);
      assert.deepEqual([field("Groups"), field("NoNewPrivs"), field("Seccomp")], ["", "1", "2"]);
      assert.equal(field("NSpid")?.split("\t").length, 2, "it has a pid namespace");
      const limits = readFileSync(`/proc/${pid}/limits`, "utf8");
      for (const line of ["file size +1048576", "address space +2147483648", "processes +512", "core file size +0"])
        assert.match(limits, new RegExp(`^Max ${line} `, "m"));

      const root = `/proc/${pid}/root`;
      assert.deepEqual(
        readdirSync(root)
          .filter((name) => !/^(lib|usr)/.test(name))
          .sort(),
        ["dev", "disk", "old", "proc"],
      );
      assert.deepEqual([readdirSync(`${root}/old`), readdirSync(`${root}/dev`)], [[], ["null"]]);
      assert.deepEqual(readdirSync(`${root}/disk`).sort(), ["disk", "other", "secret"]);
      const mounts = readFileSync(`/proc/${pid}/mounts`, "utf8")
        .trim()
        .split("\n")
        .map((line) => line.split(" "));
      const writable = mounts.filter(([, , , options]) => !options?.startsWith("ro,")).map(([, path]) => path);
      assert.deepEqual(writable, ["/disk/disk"]);
      const devices = readFileSync(`/proc/${pid}/net/dev`, "utf8").trim().split("\n").slice(2);
      assert.deepEqual(
        devices.map((line) => line.trim().split(":")[0]),
        ["lo"],
      );
    }));

  test("cannot open a file outside, and writes only its disk", async () => {
    const dd = (from: string, to: string, readable: readonly string[]) =>
      tools.run(["qemu-img", "dd", "-f", "raw", "-O", "raw", `if=${from}`, `of=${to}`], { ...use, readable });
    writeFileSync(join(folder, "disk"), "");
    await dd("secret/word", "disk", ["."]);
    assert.match(readFileSync(join(folder, "disk"), "utf8"), /^all users may read this/);
    await assert.rejects(dd("/etc/passwd", "disk", ["."]), /\/etc\/passwd.*No such file/);
    await assert.rejects(dd("secret/word", "disk", []), /secret\/word.*No such file/);
    await assert.rejects(dd("secret/word", "other", ["."]), /other.*Read-only file system/);
    await assert.rejects(dd("secret/word", "/tmp/other", ["."]), /\/tmp\/other.*(Read-only|No such file)/);
  });

  test("ends when its time is over", async () => {
    const { promise: never } = Promise.withResolvers<string>();
    // On a slow host it may take longer to start.
    for (let timeout = 1500, wasSeen = false; !wasSeen; timeout *= 2) {
      assert.ok(timeout < 200_000, "the program was never seen");
      let hasEnded = false;
      const failed = assert
        .rejects(tools.run(["debugfs"], { ...use, stdin: never, timeout }), {
          name: "CommandError",
          message: `debugfs: took longer than ${timeout} ms`,
        })
        .finally(() => (hasEnded = true));
      while (!hasEnded && !wasSeen) {
        wasSeen = processes().length === 1;
        await sleep(10);
      }
      await failed;
    }
    await untilProcesses(0);
  });

  test("ends with the shell that waits for it, so it cannot stay by leaving its process group", async () => {
    const { promise: never } = Promise.withResolvers<string>();
    const failed = assert.rejects(tools.run(["debugfs"], { ...use, stdin: never }), { name: "CommandError" });
    const [pid = ""] = await untilProcesses(1);
    const [, parent = ""] = /^PPid:\t([0-9]+)$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
    process.kill(Number(parent), "SIGKILL");
    await failed;
    await untilProcesses(0);
  });

  test("an error shows the program and its output only", async () => {
    const argv = ["qemu-img", "info", "nothing"];
    await assert.rejects(tools.run(argv, use), {
      message: /^qemu-img info nothing: qemu-img: Could not open 'nothing'/,
    });
  });
});

test("a disk file has space for the tables of qcow2", () => {
  assert.equal(fileLimit(0), 16 * 2 ** 20);
  assert.ok(fileLimit(2 ** 40) > 2 ** 40 + (2 ** 40 / 65_536) * 10);
});
