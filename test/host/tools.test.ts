/**
 * What the programs of the agent that read no foreign input may do, read from /proc while they run. Those that configure networks have two
 * capabilities, of which the filter of system calls leaves one only to enter namespaces, a read-only root, and no process of the host.
 */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { type Exec, exec } from "../../service/src/drivers/exec.ts";
import { createDisks } from "../../service/src/drivers/machine/disk/disk.ts";
import { createDiskTools } from "../../service/src/drivers/machine/disk/tool.ts";
import { importFile } from "../../service/src/drivers/machine/image/import.ts";
import { confineTools } from "../../service/src/drivers/router/linux/toolroot.ts";
import { guard } from "../support/guard.ts";
import { whyNot } from "../support/hindrance.ts";
import { until } from "../support/waituntil.ts";

const skip = whyNot("ip", "nft", "tc", "sysctl", "perl");

describe("programs that configure networks", { skip, concurrency: false }, () => {
  const space = `lab-${randomBytes(3).toString("hex")}-t`;
  let tools: Exec;
  before(async () => {
    guard({ spaces: `${space}2?`, tag: "-", folder: "/nonexistent" });
    await exec.run(["ip", "netns", "add", space]);
    const { exec: confined, rights } = await confineTools(exec);
    assert.equal(rights, "root");
    tools = confined;
  });
  after(() => exec.run(["ip", "netns", "del", space]));

  const inSpace = ["nsenter", `--net=/run/netns/${space}`];
  /** Returns the processes of this program that run in the namespace. */
  async function pidsOf(program: string): Promise<readonly string[]> {
    const pids = await exec.run(["ip", "netns", "pids", space]);
    return pids.split("\n").filter((pid) => {
      try {
        return pid !== "" && readFileSync(`/proc/${pid}/comm`, "utf8").trim() === program;
      } catch {
        return false;
      }
    });
  }

  for (const argv of [
    [...inSpace, "nft", "-f", "-"],
    ["ip", "-n", space, "-batch", "-"],
    ["ip", "netns", "exec", space, "tc", "-batch", "-"],
  ])
    test(`${argv.join(" ").replace(space, "NAME")} has few rights and changes no file`, async () => {
      const { promise: stdin, resolve } = Promise.withResolvers<string>();
      const running = tools.run(argv, { stdin, timeout: 60_000 });
      const program = argv.find((name) => ["nft", "tc"].includes(name)) ?? "ip";
      let pid = "";
      await until(`${program} runs`, async () => (pid = (await pidsOf(program))[0] ?? "") !== "");
      const status = readFileSync(`/proc/${pid}/status`, "utf8");
      for (const line of ["CapInh:\t0000000000000000", "CapEff:\t0000000000201000", "CapBnd:\t0000000000201000"])
        assert.ok(status.includes(line), line);
      for (const line of ["NoNewPrivs:\t1", "Seccomp:\t2"]) assert.ok(status.includes(line), line);
      assert.match(readFileSync(`/proc/${pid}/limits`, "utf8"), /^Max core file size +0 +0 /m);
      assert.notEqual(readlinkSync(`/proc/${pid}/ns/pid`), readlinkSync("/proc/self/ns/pid"));
      const writable = readFileSync(`/proc/${pid}/mounts`, "utf8")
        .trim()
        .split("\n")
        .map((line) => line.split(" "))
        .filter(([kind, , , options]) => kind !== "nsfs" && !options?.startsWith("ro,"));
      assert.deepEqual(
        writable.map(([, path]) => path),
        ["/proc", "/proc/sys/net"],
      );
      assert.deepEqual(
        ["home", "root", "var", "boot", "tmp"].filter((name) => readdirSync(`/proc/${pid}/root`).includes(name)),
        [],
      );
      assert.deepEqual(readdirSync(`/proc/${pid}/root/dev`), ["null"]);
      resolve("");
      await running;
    });

  test("a network namespace that is added later can be entered, and its settings can be changed", async () => {
    const later = `${space}2`;
    await exec.run(["ip", "netns", "add", later]);
    try {
      await tools.run(["ip", "-n", later, "link", "set", "lo", "up"]);
      await tools.run(["nsenter", `--net=/run/netns/${later}`, "sysctl", "-qw", "net.ipv4.ip_forward=1"]);
      const value = await exec.run(["ip", "netns", "exec", later, "sysctl", "-n", "net.ipv4.ip_forward"]);
      assert.equal(value.trim(), "1");
    } finally {
      await exec.run(["ip", "netns", "del", later]);
    }
  });

  test("files, settings of the kernel, other namespaces and processes of the host are out of reach", async () => {
    const fails = (...argv: string[]) => assert.rejects(tools.run(argv), new RegExp("not permitted|Read-only|No such"));
    await fails("sh", "-c", "echo x >/proc/sys/kernel/core_pattern");
    await fails("sh", "-c", "echo x >/usr/brume-written");
    await fails("sh", "-c", `echo x >/run/netns/${space}`);
    await fails("nsenter", "--mount=/proc/self/ns/mnt", "true");
    await fails("sh", "-c", `kill -0 ${process.pid}`);
    await fails("mknod", "/dev/x", "b", "8", "0");
    // It is reported as done, and is not.
    await tools.run(["mount", "-t", "tmpfs", "none", "/dev"]);
    assert.doesNotMatch(await tools.run(["cat", "/proc/mounts"]), /tmpfs \/dev /);
  });

  test("the C library finds the settings of huge pages, and nothing else in /sys", async () => {
    const read = (path: string) => {
      const host = existsSync(path) ? readFileSync(path, "utf8") : "\n";
      return tools.run(["cat", path]).then((text) => assert.equal(text, host));
    };
    const folder = "/sys/kernel/mm/transparent_hugepage";
    for (const name of ["enabled", "hpage_pmd_size"]) await read(join(folder, name));
    const files = await tools.run(["find", "/sys", "-type", "f"]);
    assert.deepEqual(files.split("\n").sort(), ["", join(folder, "enabled"), join(folder, "hpage_pmd_size")]);
  });

  test("what needs all rights has them", async () => {
    assert.match(await tools.run(["ip", "netns", "pids", space], { rights: "all" }), /^$/);
    assert.equal(
      readlinkSync("/proc/self/ns/mnt"),
      (await tools.run(["readlink", "/proc/self/ns/mnt"], { rights: "all" })).trim(),
    );
  });
});

describe("programs that copy and create files of disks", { skip: whyNot("qemu-img") }, () => {
  /** Returns an `Exec` that adds the effective capabilities of each command to the list, as the program itself sees them. */
  const observed = (rights: string[]): Exec => ({
    ...exec,
    async run(argv, options) {
      const at = argv.findIndex((word) => ["qemu-img", "cp"].includes(word));
      const shown = [...argv.slice(0, at), "grep", "-E", "^(Cap(Eff|Bnd)|NoNewPrivs)", "/proc/self/status"];
      if (at >= 0) rights.push((await exec.run(shown)).replaceAll(/\s+/g, " ").trim());
      return exec.run(argv, options);
    },
  });
  const nothing = "CapEff: 0000000000000000 CapBnd: 0000000000000000 NoNewPrivs: 1";
  const readsAll = "CapEff: 0000000000000004 CapBnd: 0000000000000004 NoNewPrivs: 1";

  test("qemu-img create has no capability, also where an interrupted call left a file of the server's user", async (t) => {
    const folder = mkdtempSync(join(tmpdir(), "brume-create-"));
    t.after(() => rmSync(folder, { recursive: true }));
    const path = join(folder, "disk");
    writeFileSync(path, "incomplete");
    chmodSync(path, 0o600);
    chownSync(path, 688_778, 688_778);
    const rights: string[] = [];
    await createDisks(observed(rights), folder).createTarget(path, 2 ** 20, 688_778);
    assert.deepEqual(rights, [nothing]);
    assert.equal(statSync(path).uid, 688_778);
  });

  test("cp reads a file of any user and writes only its draft", async (t) => {
    const folder = mkdtempSync(join(tmpdir(), "brume-import-"));
    t.after(() => rmSync(folder, { recursive: true }));
    const file = join(folder, "disk.raw");
    writeFileSync(file, "no disk");
    chmodSync(file, 0o600);
    chownSync(file, 688_778, 688_778);
    const rights: string[] = [];
    const make = { tools: createDiskTools(exec), now: 0 };
    const spec = { name: "disk", title: "disk", family: "Linux", os: "Linux", minRam: 128, hdd: 1 } as const;
    const source = { folder, file: "disk.raw", sha256: "0".repeat(64) };
    await assert.rejects(importFile(observed(rights), join(folder, "images"), spec, source, make), /The sha256 of/);
    assert.deepEqual(rights, [readsAll]);
  });
});
