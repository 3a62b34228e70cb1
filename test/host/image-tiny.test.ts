/**
 * The tiny Linux image under QEMU, without Brume: a first boot with all settings that the seed can contain, changes of NICs and disks
 * while it runs, the power button, and a copy of its disk that must become another server.
 */
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { after, before, test } from "node:test";
import { type GuestImage, readImage } from "../../service/src/drivers/machine/image/manifest.ts";
import { readyMark, renderSeed } from "../../service/src/drivers/machine/seed/files.ts";
import { hashPassword } from "../../service/src/drivers/machine/seed/password.ts";
import { until } from "../support/waituntil.ts";
import { boot, createDisk, createKey, guest, type Key, mac, type Running } from "./imageguest.ts";

const root = resolve(import.meta.dirname, "../..");
const images = join(root, ".engines/images");
const lacks = ["qemu-system-x86_64", "qemu-img", "ssh"].find((program) => spawnSync(program, ["-V"]).error);
const skip = lacks === undefined ? false : `${lacks} is not installed`;
let folder = "";
let image: GuestImage;
let key: Key;

before(async () => {
  if (skip) return;
  execFileSync("sh", [join(root, "scripts/image"), "tiny"], { stdio: "ignore" });
  const found = await readImage(images, "brume-tiny");
  assert.ok(found, "the small Linux was not built");
  image = found;
  folder = mkdtempSync(join(tmpdir(), "brume-tiny-"));
  key = createKey(folder);
});
after(() => rmSync(folder, { recursive: true, force: true }));

const start = (disk: string, spec: Parameters<typeof guest>[0], options: { memory?: number; extra?: string[] } = {}) =>
  boot({ folder, images, image, disk, seed: renderSeed(guest(spec)), ...options });

/** Returns whether a capture has an ARP announcement of the guest: the same sender and target address (RFC 5227, section 3). */
function announces(capture: Buffer, address: string): boolean {
  const ip = Buffer.from(address.split(".").map(Number));
  const sender = Buffer.concat([Buffer.from(mac.replaceAll(":", ""), "hex"), ip]);
  for (let at = capture.indexOf(sender); at !== -1; at = capture.indexOf(sender, at + 1))
    if (capture.subarray(at + 16, at + 20).equals(ip)) return true;
  return false;
}

/** Returns the values that identify a server. */
const identify = (vm: Running) => ({
  machineId: vm.ssh("cat /etc/machine-id", key),
  hostKey: vm.ssh("dropbearkey -y -f /etc/dropbear/host_key | grep ^ssh", key),
  hostName: vm.ssh("hostname; cat /etc/hostname", key),
});

test("the canary boots with a working accelerator", { skip }, () => {
  const file = (name = "") => join(images, image.name, name);
  const output = execFileSync(
    "qemu-system-x86_64",
    [
      ["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-machine", "q35", "-m", "128"],
      ["-accel", "tcg", "-cpu", "max", "-kernel", file(image.files.kernel), "-initrd", file(image.files.initrd)],
      ["-append", "console=ttyS0 quiet no_timer_check cryptomgr.notests panic=1 canary", "-serial", "stdio"],
    ].flat(),
  );
  assert.match(output.toString(), /^CANARY-OK\r?$/m);
});

test("a server's life, and that of its copy", { skip }, async (t) => {
  const disk = createDisk(images, image, join(folder, "one.qcow2"), 5);
  const script = '#!/bin/sh\necho "$0 as $(id -un)" >>/root/ran\n';
  const first = { sshKeys: [key.line], passwordHash: hashPassword("First-Pw-1", "salt"), userData: script };
  const mark = (id: string) => new RegExp(`^${readyMark(id)}\\r?$`, "m");
  // The minimum that the image declares.
  const capture = join(folder, "one.pcap");
  const extra = ["-object", `filter-dump,id=f0,netdev=n0,file=${capture}`];
  let vm = await start(disk, first, { memory: image.minRam, extra });
  t.after(() => vm.close());

  const ready = await vm.says(/^READY uptime=(\S+) host=one ip=10\.0\.2\.15\/24,fd24::15\/64\r?$/m);
  t.diagnostic(`ready ${ready[1]} s after its kernel began`);
  await vm.says(mark("i-1"));
  assert.ok(announces(readFileSync(capture), "10.0.2.15"), "neighbours learn the MAC address of the server");
  assert.equal(vm.ssh("cat /root/ran", key), "/run/seed/user-script as root");
  assert.equal(vm.ssh("id -un", { password: "First-Pw-1" }), "root");
  assert.equal(vm.ssh("id -un", { password: "wrong" }), null);
  assert.equal(vm.ssh("cat /etc/resolv.conf", key), "nameserver 10.0.2.3");
  assert.equal(vm.ssh("ip route | grep default", key), "default via 10.0.2.2 dev eth0  metric 101");
  assert.equal(vm.ssh("cat /sys/class/net/eth0/mtu", key), "1400");
  const size = () => Number(vm.ssh("df -m / | awk 'END { print $2 }'", key));
  await until("a root file system of 5 GB", () => size() > 4800);
  vm.type("\n");
  await vm.says(/one login: /);
  const original = identify(vm);

  await vm.monitor("block_resize", { "node-name": "d", size: 6 * 2 ** 30 });
  await until("a root file system of 6 GB", () => size() > 5800);
  await vm.monitor("object-add", { "qom-type": "memory-backend-ram", id: "m1", size: 128 * 2 ** 20 });
  await vm.monitor("device_add", { driver: "pc-dimm", id: "dimm1", memdev: "m1" });
  const memory = () => Number(vm.ssh("awk '/MemTotal/ { print $2 }' /proc/meminfo", key));
  await until("more memory", () => memory() > 190_000);
  await vm.monitor("netdev_add", { type: "user", id: "n1", net: "10.9.9.0/24", restrict: true });
  await vm.monitor("device_add", {
    driver: "virtio-net-pci",
    netdev: "n1",
    id: "c1",
    mac: "52:54:00:00:02:10",
    bus: "rp1",
  });
  await until("an address by DHCP", () => /10\.9\.9\./.test(vm.ssh("ip -4 -o addr show eth1", key) ?? ""));

  await vm.monitor("system_powerdown");
  await vm.ended();

  const copy = join(folder, "two.qcow2");
  execFileSync("qemu-img", ["create", "-q", "-f", "qcow2", "-F", "qcow2", "-b", disk, copy]);
  const other = createKey(mkdtempSync(join(folder, "other-")));
  const second = {
    instanceId: "i-2",
    hostName: "two",
    sshKeys: [other.line],
    passwordHash: hashPassword("Second-2", "salt"),
  };
  const nics = [{ mac, addresses: [], gateway4: null, gateway6: null, mtu: null, dhcp: true }];
  vm = await start(copy, { ...second, nics, nameServers: [] });
  await vm.says(/^READY .* host=two ip=10\.0\.2\.15\/24/m);
  await vm.says(mark("i-2"));
  assert.equal(vm.ssh("id -un", { password: "Second-2" }), "root");
  assert.equal(vm.ssh("id -un", { password: "First-Pw-1" }), null, "the password of before is no longer good");
  assert.equal(vm.ssh("true", key), null, "nor is the key of before");
  key = other;
  const copied = identify(vm);
  assert.equal(copied.hostName, "two\ntwo");
  assert.match(copied.machineId ?? "", /^[0-9a-f]{32}$/);
  assert.match(copied.hostKey ?? "", /^ssh-ed25519 /);
  assert.notEqual(copied.machineId, original.machineId);
  assert.notEqual(copied.hostKey, original.hostKey);
  assert.equal(vm.ssh("cat /root/ran", key), "/run/seed/user-script as root", "its files are those of the source");
});

test("a #cloud-config is applied at the first boot only", { skip }, async (t) => {
  const disk = createDisk(images, image, join(folder, "config.qcow2"), 2);
  const userData = `#cloud-config
hostname: web
fqdn: web.example.org
users:
  - default
  - name: ann
    gecos: Ann O'Neill
    groups: [staff, wheel]
    lock_passwd: false
    passwd: ${hashPassword("Ann-Pw-1", "salt")}
    ssh_authorized_keys: ["${key.line}"]
  - {name: bob, uid: 1700, homedir: /srv/bob, ssh_authorized_keys: ["${key.line}"]}
ssh_authorized_keys: ["${key.line}"]
write_files:
  - {path: "/srv/a b/it's", content: "one\\ntwo\\n", permissions: "0640", owner: "ann:staff"}
  - {path: /srv/bytes, content: AAEC/w==, encoding: b64}
  - {path: /etc/profile, content: "# more\\n", append: true}
runcmd:
  - cd /srv; x=5
  - echo "in $PWD with $x" >>/root/ran
  - [sh, -c, 'echo "$0" >>/root/ran', "a 'quoted' $(word)"]
  - echo seen on the line
  - "false"
`;
  const vm = await start(disk, { userData });
  t.after(() => vm.close());
  await vm.says(/^BRUME-READY instance=i-1\r?$/m, 120);
  assert.match(vm.serial(), /^cloud-config: begins\r?$[\s\S]*^user ann is made\r?$[\s\S]*^seen on the line\r?$/m);
  assert.match(vm.serial(), /^runcmd ended with 1\r?$[\s\S]*^cloud-config: ended\r?$/m);
  const at = (user: string) => ({ ...key, user });
  assert.equal(vm.ssh("id", at("ann")), "uid=1000(ann) gid=1000(ann) groups=1000(ann),1001(staff),1002(wheel)");
  assert.equal(vm.ssh("id -un", { password: "Ann-Pw-1", user: "ann" }), "ann");
  assert.equal(vm.ssh("id -un", { password: "wrong", user: "ann" }), null);
  assert.equal(vm.ssh("id -u; pwd", at("bob")), "1700\n/srv/bob");
  assert.equal(vm.ssh("cat /root/ran", key), "in /srv with 5\na 'quoted' $(word)");
  assert.equal(
    vm.ssh("cat '/srv/a b/it'\\''s'; stat -c '%a %U %G' '/srv/a b/it'\\''s'", at("ann")),
    "one\ntwo\n640 ann staff",
  );
  assert.equal(
    vm.ssh("xxd -p /srv/bytes; stat -c '%a %U' /srv/bytes; tail -n 1 /etc/profile", at("ann")),
    "000102ff\n644 root\n# more",
  );
  assert.equal(
    vm.ssh("hostname; cat /etc/hostname; grep 127.0.1.1 /etc/hosts", at("ann")),
    "web\nweb\n127.0.1.1\tweb.example.org web",
  );
  // The same instance again: it is the same server, and nothing is applied twice.
  const original = identify(vm);
  const before = vm.serial().length;
  vm.ssh("reboot", key);
  const later = () => vm.serial().slice(before);
  await until("a second boot", () => /^BRUME-READY instance=i-1\r?$/m.test(later()));
  vm.restarted();
  assert.deepEqual(identify(vm), original);
  assert.equal(vm.ssh("cat /root/ran", key), "in /srv with 5\na 'quoted' $(word)", "its commands ran once");
  assert.equal(
    vm
      .ssh("tail -n 2 /etc/profile; hostname", at("ann"))
      ?.split("\n")
      .filter((one) => one === "# more").length,
    1,
  );
  assert.doesNotMatch(later(), /cloud-config/);

  // The seed of this server had no keys: all keys on its disk are its users'.
  vm.ssh("poweroff", key);
  await vm.ended();
  const copy = await start(disk, { instanceId: "i-2", hostName: "copy" });
  t.after(() => copy.close());
  await copy.says(/^BRUME-READY instance=i-2\r?$/m);
  assert.equal(copy.ssh("hostname", key), "copy", "a key that a user added is also good on a copy");
});
