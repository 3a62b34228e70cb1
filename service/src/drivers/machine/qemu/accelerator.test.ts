import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { CommandError, type Exec, exec } from "../../exec.ts";
import { chooseAccelerator } from "./accelerator.ts";

const folder = mkdtempSync(join(tmpdir(), "brume-accelerator-"));
after(() => rmSync(folder, { recursive: true }));

/** A fake host on which these accelerators boot; `tried` lists the attempts. */
function fakeHost(boots: readonly string[], version = "QEMU 1") {
  const tried: string[] = [];
  const fake: Exec = {
    ...exec,
    async run(argv) {
      if (argv.includes("--version")) return `${version}\nCopyright`;
      const name = argv[argv.indexOf("-accel") + 1] ?? "";
      tried.push(name);
      if (boots.includes(name)) return "...\r\nCANARY-OK\r\n";
      throw new CommandError(argv, 1, "qemu-system-x86_64: error: failed to set MSR 0x10a\nmore", "");
    },
  };
  return { fake, tried };
}
const canary = { folder, kernel: "vmlinuz", initrd: "initrd.gz" };
const device = join(folder, "kvm");
const choose = (fake: Exec, cache: string) => chooseAccelerator({ exec: fake, canary, cache, uid: 700_001, device });

test("chooses an accelerator that boots, and caches the result", async () => {
  const cache = join(folder, "one.json");
  const first = fakeHost(["tcg"]);
  const result = await choose(first.fake, cache);
  assert.equal(result.accelerator, "tcg");
  assert.equal(result.trial.works, false);
  assert.match(result.trial.detail, /emulated/);
  assert.ok(first.tried.includes("tcg"));
  const second = fakeHost(["kvm"]);
  assert.deepEqual(await choose(second.fake, cache), result);
  assert.deepEqual(second.tried, []);
});

test("a result that cannot be stored, as on a full disk, is used, and found again at the next start", async () => {
  const cache = join(folder, "no folder", "full.json");
  for (let starts = 0; starts < 2; starts++) {
    const { fake, tried } = fakeHost(["kvm"]);
    assert.equal((await choose(fake, cache)).accelerator, "kvm");
    assert.deepEqual(tried, ["kvm"]);
  }
});

test("a host without KVM, and one that keeps it from servers, are named without the text of QEMU", async () => {
  const failing = (reason: string): Exec => ({
    ...exec,
    async run(argv) {
      if (argv.includes("--version")) return "QEMU 1\n";
      if (argv.includes("tcg")) return "CANARY-OK";
      throw new CommandError(argv, 1, `qemu: Could not access KVM kernel module: ${reason}`, "");
    },
  });
  const closed = await choose(failing("Permission denied"), join(folder, "closed.json"));
  assert.match(closed.trial.detail, /: users of servers may not open \/dev\/kvm\. Run as root: chgrp kvm \/dev\/kvm; /);
  const { trial } = await choose(failing("No such file or directory"), join(folder, "none.json"));
  assert.match(trial.detail, /^Servers are emulated, .*: the processor's virtualization \(KVM\) does not work: /);
  assert.match(trial.detail, /: this host has no \/dev\/kvm\. Switch it on in the firmware/);
  assert.doesNotMatch(trial.detail, /qemu|-accel|No such file/);
});

test("another QEMU, or an unreadable file, leads to a new trial", async () => {
  const cache = join(folder, "two.json");
  await choose(fakeHost(["tcg"]).fake, cache);
  const newer = fakeHost(["tcg"], "QEMU 2");
  await choose(newer.fake, cache);
  assert.ok(newer.tried.length > 0);
  for (const text of ["", "null", '{"key": 1}', '{"accelerator": "kvm"}']) {
    writeFileSync(cache, text);
    const again = fakeHost(["tcg"]);
    assert.equal((await choose(again.fake, cache)).accelerator, "tcg");
    assert.ok(again.tried.length > 0);
  }
});

test("a /dev/kvm that appears leads to a new trial", async () => {
  const cache = join(folder, "later.json");
  await choose(fakeHost(["tcg"]).fake, cache);
  writeFileSync(device, "");
  assert.equal((await choose(fakeHost(["kvm"]).fake, cache)).accelerator, "kvm");
  rmSync(device);
  assert.equal((await choose(fakeHost(["tcg"]).fake, cache)).accelerator, "tcg");
});

test("a trial that was stopped is repeated at the next start", async () => {
  const cache = join(folder, "busy.json");
  const busy: Exec = {
    ...exec,
    async run(argv) {
      if (argv.includes("--version")) return "QEMU 1\nCopyright";
      if (argv.includes("tcg")) return "CANARY-OK";
      throw new CommandError(argv, null, "", "took longer than 10000 ms");
    },
  };
  assert.equal((await choose(busy, cache)).accelerator, "tcg");
  assert.equal((await choose(fakeHost(["kvm"]).fake, cache)).accelerator, "kvm");
});

test("without an accelerator servers are simulated, and the next start tries again", async () => {
  const cache = join(folder, "three.json");
  const result = await choose(fakeHost([]).fake, cache);
  assert.equal(result.accelerator, null);
  assert.match(
    result.trial.detail,
    /^Servers are simulated: .*KVM.*emulation does not work: the trial guest did not start\. Run as root: apt-get/,
  );
  assert.equal((await choose(fakeHost(["tcg"]).fake, cache)).accelerator, "tcg");
});
