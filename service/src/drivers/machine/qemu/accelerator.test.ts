import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { CommandError, type Exec, exec } from "../../exec.ts";
import { chooseAccelerator } from "./accelerator.ts";

const folder = mkdtempSync(join(tmpdir(), "brume-accelerator-"));
after(() => rmSync(folder, { recursive: true }));

/** A machine on which these accelerators boot; `asked` are those that were tried. */
function machine(boots: readonly string[], version = "QEMU 1") {
  const asked: string[] = [];
  const fake: Exec = {
    ...exec,
    async run(argv) {
      if (argv.includes("--version")) return `${version}\nCopyright`;
      const name = argv[argv.indexOf("-accel") + 1] ?? "";
      asked.push(name);
      if (boots.includes(name)) return "...\r\nCANARY-OK\r\n";
      throw new CommandError(argv, 1, "qemu-system-x86_64: error: failed to set MSR 0x10a\nmore", "");
    },
  };
  return { fake, asked };
}
const canary = { folder, kernel: "vmlinuz", initrd: "initrd.gz" };
const choose = (fake: Exec, cache: string) => chooseAccelerator({ exec: fake, canary, cache, uid: 700_001 });

test("only what boots counts, and it is asked once", async () => {
  const cache = join(folder, "one.json");
  const first = machine(["tcg"]);
  const answer = await choose(first.fake, cache);
  assert.equal(answer.accelerator, "tcg");
  assert.equal(answer.trial.works, false);
  assert.match(answer.trial.detail, /emulated/);
  assert.ok(first.asked.includes("tcg"));
  const second = machine(["kvm"]);
  assert.deepEqual(await choose(second.fake, cache), answer);
  assert.deepEqual(second.asked, []);
});

test("another QEMU, or an unreadable file, leads to a new trial", async () => {
  const cache = join(folder, "two.json");
  await choose(machine(["tcg"]).fake, cache);
  const newer = machine(["tcg"], "QEMU 2");
  await choose(newer.fake, cache);
  assert.ok(newer.asked.length > 0);
  for (const text of ["", "null", '{"key": 1}', '{"accelerator": "kvm"}']) {
    writeFileSync(cache, text);
    const again = machine(["tcg"]);
    assert.equal((await choose(again.fake, cache)).accelerator, "tcg");
    assert.ok(again.asked.length > 0);
  }
});

test("a machine that boots nothing has no servers, and is asked again next time", async () => {
  const cache = join(folder, "three.json");
  const answer = await choose(machine([]).fake, cache);
  assert.equal(answer.accelerator, null);
  assert.match(answer.trial.detail, /^Servers are simulated \(.*tcg: .*MSR/);
  assert.equal((await choose(machine(["tcg"]).fake, cache)).accelerator, "tcg");
});
