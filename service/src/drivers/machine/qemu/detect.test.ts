import assert from "node:assert/strict";
import { test } from "node:test";
import { describeMissing } from "./detect.ts";

test("missing programs are reported as packages, with the command that brings them", () => {
  assert.equal(
    describeMissing(["qemu-img"]),
    "the packages qemu-utils are not installed. Run as root: apt-get install qemu-utils",
  );
  assert.match(describeMissing(["qemu-system-x86_64", "qemu-img"]), /: apt-get install qemu-system-x86 qemu-utils$/);
});
