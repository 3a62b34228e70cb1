import assert from "node:assert/strict";
import { test } from "node:test";
import { describeController, describeMissing, tryIdentityTools, withoutRoot } from "./detect.ts";

test("missing programs are reported as packages, with the command that brings them", () => {
  assert.equal(
    describeMissing(["qemu-img"]),
    "the packages qemu-utils are not installed. Run as root: apt-get install qemu-utils",
  );
  assert.match(describeMissing(["qemu-system-x86_64", "qemu-img"]), /: apt-get install qemu-system-x86 qemu-utils$/);
});

test("what is lost without a private root names no program", () => {
  for (const line of Object.values(withoutRoot)) {
    assert.match(line, /see the files of this host: this host permits no private mounts/);
    assert.doesNotMatch(line, /qemu|e2fsck|debugfs|unshare|private root/);
  }
});

test("a missing e2fsprogs is reported with what is lost, and the command that brings it", () => {
  assert.deepEqual(
    tryIdentityTools(() => true),
    { name: "removal of identities", works: true, detail: "" },
  );
  for (const missing of ["e2fsck", "debugfs"])
    assert.equal(
      tryIdentityTools((program) => program !== missing).detail,
      "Images and copies of servers keep what identifies the guest: the package e2fsprogs is not installed. Run as root: apt-get install e2fsprogs",
    );
});

test("a missing controller is reported with what to mount", () => {
  assert.equal(
    describeController("cpu").detail,
    "High performance makes no difference: this host has no control group for CPU. Mount /sys/fs/cgroup with the controller cpu, or give it to the container",
  );
});
