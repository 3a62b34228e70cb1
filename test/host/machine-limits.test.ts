/**
 * The rights and limits of a VM process on the host, read from /proc while it runs: the kernel's state is tested, not the command
 * line.
 */
import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { exec } from "../../service/src/drivers/exec.ts";
import { createGroups, groupLimits } from "../../service/src/drivers/machine/qemu/cgroup.ts";
import { detectMachine } from "../../service/src/drivers/machine/qemu/detect.ts";
import { folderOf } from "../../service/src/drivers/machine/qemu/folder.ts";
import { openQemu } from "../../service/src/drivers/machine/qemu/qemu.ts";
import { createQmp, listAt, numberAt, textAt } from "../../service/src/drivers/machine/qemu/qmp.ts";
import { openSocket } from "../../service/src/drivers/machine/qemu/socket.ts";
import { describeMachines, findCapabilities, imageName, machine, untilReady } from "../support/machinelab.ts";

const found = await findCapabilities();
const lacks = "hindrance" in found ? found.hindrance : false;

test("the trials of a start succeed after one that was killed during them", { skip: lacks }, async (t) => {
  const servers = mkdtempSync(join(tmpdir(), "brm-"));
  const tap = "btryxtry";
  t.after(async () => {
    await exec.run(["ip", "link", "del", tap]).catch(() => {});
    rmSync(servers, { recursive: true });
  });
  await exec.run(["ip", "tuntap", "add", "dev", tap, "mode", "tap", "user", "0"]);
  const options = { exec, tag: "try", servers, uid: 699_999, canary: null, cache: join(servers, "cache") };
  const { trials } = await detectMachine(options);
  assert.deepEqual(
    trials.find(({ name }) => name === "taps for servers"),
    { name: "taps for servers", works: true, detail: "" },
  );
  await assert.rejects(exec.run(["ip", "link", "show", tap]));
});

await describeMachines("the process of a server", (newLab, lab) => {
  test("a VM process has rights only to its own files", async () => {
    const { servers, firstUid, open, pidOf } = newLab();
    const machines = await open();
    for (const id of [1, 2]) await machines.ensureDisk(machine({ id }), { image: imageName });
    await machines.ensureRunning(machine());
    const status = readFileSync(`/proc/${pidOf(1)}/status`, "utf8");
    const field = (name: string) => new RegExp(`^${name}:[ \\t]*(.*)$`, "m").exec(status)?.[1]?.trim();
    const uid = String(firstUid + 1);
    assert.deepEqual(field("Uid")?.split("\t"), [uid, uid, uid, uid]);
    assert.deepEqual(field("Gid")?.split("\t"), [uid, uid, uid, uid]);
    assert.deepEqual([field("Groups"), field("CapEff"), field("CapPrm")], ["", "0000000000000000", "0000000000000000"]);
    assert.deepEqual([field("NoNewPrivs"), field("Seccomp")], ["1", "2"]);

    assert.deepEqual([field("CapBnd"), field("CapInh"), field("CapAmb")], Array(3).fill("0000000000000000"));
    assert.match(readFileSync(`/proc/${pidOf(1)}/limits`, "utf8"), /^Max core file size +0 +0 /m);

    // A guest that escapes its VM sees only the process's root directory with its own folder.
    assert.ok("needs" in lab().options.confinement, "this machine makes no root for a server");
    const root = `/proc/${pidOf(1)}/root`;
    assert.deepEqual(readdirSync(root).sort(), ["dev", "lib", "lib64", "old", "proc", "server", "usr"]);
    assert.deepEqual(readdirSync(`${root}/old`), []);
    assert.deepEqual(readdirSync(`${root}/dev`).sort(), ["net", "null"]);
    assert.deepEqual(readdirSync(`${root}/server`).sort(), ["disk-1", "run", "seed.img"]);
    assert.equal(readlinkSync(`/proc/${pidOf(1)}/cwd`), "/server/run");
    const mounts = readFileSync(`/proc/${pidOf(1)}/mounts`, "utf8")
      .trim()
      .split("\n");
    const writable = mounts.map((line) => line.split(" ")).filter(([, , , options]) => !options?.startsWith("ro,"));
    assert.deepEqual(new Set(writable.map(([, path]) => path)), new Set(["/server/disk-1", "/server/run"]));
    for (const [, path, , options] of mounts.map((line) => line.split(" ")))
      assert.match(options ?? "", /\bnosuid\b/, `${path} may hold programs that change the user`);
    const reached = mounts.map((line) => line.split(" ")[1] ?? "").filter((path) => path.startsWith(servers));
    assert.deepEqual(reached, []);

    const person = (id: number) => ["setpriv", "--reuid", String(firstUid + id), "--regid", String(firstUid + id)];
    const may = (...argv: string[]) =>
      exec.run([...person(1), "--clear-groups", ...argv], { cwd: folderOf(servers, 1).run }).then(
        () => true,
        () => false,
      );
    assert.equal(await may("test", "-r", "../disk-1/1.qcow2"), true);
    for (const path of [
      "../../2/disk-1/0.qcow2",
      "../..",
      `${servers}/1/disk-1/0.qcow2`,
      "../state.json",
      "../qemu.log",
    ])
      assert.equal(await may("test", "-r", path), false, path);
    for (const path of [".", "..", "../disk-1", "../disk-1/0.qcow2", "../seed.img"])
      assert.equal(await may("test", "-w", path), false, path);
  });

  test("a VM process stays within its limits", async (t) => {
    const { tag, open, pidOf, options } = newLab();
    const machines = await open();
    const spec = machine({ id: 1, memory: 256 });
    await machines.ensureDisk(spec, { image: imageName });
    await machines.ensureRunning(spec);
    const groups = readFileSync(`/proc/${pidOf(1)}/cgroup`, "utf8");
    const limit = (controller: string, unified: string, apart: string): string | null => {
      const group = `brume-${tag}/1`;
      if (new RegExp(`^0::/(.*/)?${group}$`, "m").test(groups)) return read(`/sys/fs/cgroup/${group}/${unified}`);
      if (createGroups("tst").missing.some((one) => one === controller)) {
        t.diagnostic(`no limit of ${controller} is tried: this machine has no such control group`);
        return null;
      }
      assert.match(groups, new RegExp(`^[0-9]+:([^:]*,)?${controller}(,[^:]*)?:/${group}$`, "m"));
      return read(`/sys/fs/cgroup/${controller}/${group}/${apart}`);
    };
    const read = (path: string) => readFileSync(path, "utf8").trim();
    const memory = () => limit("memory", "memory.max", "memory.limit_in_bytes");
    const expected = (mb: number) => String(groupLimits({ ...spec, memory: mb }, options.accelerator).memory * 2 ** 20);
    assert.ok([null, expected(256)].includes(memory()), `${memory()}`);
    assert.ok([null, "256"].includes(limit("pids", "pids.max", "pids.max")));
    await untilReady(machines, 1);
    assert.equal((await machines.apply({ ...spec, memory: 512 })).memory, "live");
    assert.ok([null, expected(512)].includes(memory()), `${memory()}`);

    // The next service may have other limits for disks, and sets them also for servers that run.
    const debug = await createQmp(await openSocket(folderOf(lab().servers, 1).run, "qmp-debug"));
    const disk = async () => {
      const found = listAt(await debug.run("query-block")).find((one) => textAt(one, "qdev").includes("root"));
      return [numberAt(found, "inserted", "iops"), numberAt(found, "inserted", "bps")];
    };
    assert.deepEqual(await disk(), [20_000, 1000e6]);
    await machines.close();
    const next = await openQemu({ ...lab().options, diskLimits: { operations: 500, bandwidth: 0 } });
    assert.deepEqual(await disk(), [500, 0]);
    debug.close();
    await next.ensureRunning({ ...spec, memory: 512 });
    await next.close();
    await open();
  });

  test("a server that was started with fewer limits gets the current ones when it is adopted", async () => {
    const { open, options, pidOf } = newLab();
    const old = await openQemu({
      ...options,
      confinement: { tun: "private" },
      diskLimits: { operations: 0, bandwidth: 0 },
    });
    const nic = { id: 1, mac: "02:42:00:00:00:01" };
    const spec = machine({ id: 1, nics: [nic] });
    await old.ensureDisk(spec, { image: imageName });
    await old.ensureRunning(spec);
    await untilReady(old, 1);
    await old.close();
    const pid = pidOf(1);
    assert.ok(existsSync(`/proc/${pid}/root/etc`));

    const machines = await open();
    await machines.ensureRunning(spec);
    assert.equal(pidOf(1), pid);
    const more = { id: 2, mac: "02:42:00:00:00:02" };
    const grown = { ...spec, memory: 256, disk: { version: 1, gb: 2 }, nics: [nic, more] };
    const { memory, disk, nics } = await machines.apply(grown);
    assert.deepEqual({ memory, disk, nics }, { memory: "live", disk: "live", nics: "live" });
    const copy = machine({ id: 2 });
    await machines.ensureDisk(copy, { server: 1 });
    await machines.ensureSnapshot(1, "own-1");
    await machines.ensureImage(1, "own-1", { title: "kept" });
    await machines.ensureRunning({ ...grown, boot: 2 });
    assert.equal(existsSync(`/proc/${pidOf(1)}/root/etc`), false);
  });
});
