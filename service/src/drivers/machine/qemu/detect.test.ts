import assert from "node:assert/strict";
import { test } from "node:test";
import { describeMissing, withoutRoot } from "./detect.ts";

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
