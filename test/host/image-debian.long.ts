/**
 * The Debian image, booted by BIOS: cloud-init applies Brume's seed with a customer's user data, and a copy of its disk becomes another
 * server. Build the image first; it takes a minute: `npm run image -- debian-12 --images .engines/images`.
 */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { test } from "node:test";
import { readImage } from "../../service/src/drivers/machine/image/manifest.ts";
import { readyMark, renderSeed } from "../../service/src/drivers/machine/seed/files.ts";
import { hashPassword } from "../../service/src/drivers/machine/seed/password.ts";
import { until } from "../support/waituntil.ts";
import { boot, createDisk, createKey, guest, type Key, type Running } from "./imageguest.ts";

const images = resolve(import.meta.dirname, "../../.engines/images");
const image = await readImage(images, "debian-12");
const skip = image === null && "it is not built: npm run image -- debian-12 --images .engines/images";
/** Seconds; a first boot takes 40 where nothing else runs. */
const bootTimeout = 400;

const identify = (vm: Running, key: Key) => ({
  machineId: vm.ssh("cat /etc/machine-id", key),
  hostKey: vm.ssh("cat /etc/ssh/ssh_host_ed25519_key.pub", key),
});

test("a first boot, and that of a copy", { skip, timeout: 1_200_000 }, async (t) => {
  if (image === null) return;
  const folder = mkdtempSync(join(tmpdir(), "brume-debian-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const key = createKey(folder);
  const disk = createDisk(images, image, join(folder, "one.qcow2"), 6);
  const userData = "#cloud-config\nruncmd: [echo theirs >/root/theirs]\nusers: [{name: alice}]\n";
  const start = (disk: string, spec: Parameters<typeof guest>[0]) =>
    boot({
      folder,
      images,
      image,
      disk,
      memory: image.minRam,
      cpus: 2,
      seed: renderSeed(guest({ sshKeys: [key.line], ...spec })),
    });

  let vm = await start(disk, { userData, passwordHash: hashPassword("First-Pw-1", "salt") });
  t.after(() => vm.close());
  await vm.says(new RegExp(`${readyMark("i-1")}\\r?\\n`), bootTimeout);
  await until("ssh", () => vm.ssh("true", key) !== null, bootTimeout);
  assert.equal(vm.ssh("cat /root/theirs; id -un alice; hostname", key), "theirs\nalice\none");
  assert.equal(vm.ssh("id -un", { password: "First-Pw-1" }), "root");
  assert.match(vm.ssh("ip -br addr show scope global | tail -n 1", key) ?? "", /10\.0\.2\.15\/24 fd24::15\/64/);
  assert.equal(vm.ssh("cat /sys/class/net/e*/mtu", key), "1400");
  assert.equal(vm.ssh("systemctl --failed --no-legend; cloud-init status", key), "status: done");
  assert.equal(vm.ssh("getent hosts localhost one | wc -l", key), "2");
  assert.ok(Number(vm.ssh("df -m / | awk 'END { print $2 }'", key)) > 5500, "the root file system has grown");
  const original = identify(vm, key);
  await vm.monitor("system_powerdown");
  await vm.ended();

  const copy = join(folder, "two.qcow2");
  execFileSync("qemu-img", ["create", "-q", "-f", "qcow2", "-F", "qcow2", "-b", disk, copy]);
  vm = await start(copy, { instanceId: "i-2", hostName: "two", passwordHash: hashPassword("Second-2", "salt") });
  await vm.says(new RegExp(`${readyMark("i-2")}\\r?\\n`), bootTimeout);
  await until("ssh", () => vm.ssh("true", key) !== null, bootTimeout);
  const copied = identify(vm, key);
  assert.match(copied.machineId ?? "", /^[0-9a-f]{32}$/);
  assert.match(copied.hostKey ?? "", /^ssh-ed25519 /);
  assert.notEqual(copied.machineId, original.machineId);
  assert.notEqual(copied.hostKey, original.hostKey);
  assert.equal(vm.ssh("hostname; cat /root/theirs", key), "two\ntheirs");
  assert.equal(vm.ssh("id -un", { password: "Second-2" }), "root");
  assert.equal(vm.ssh("id -un", { password: "First-Pw-1" }), null);
});
