import assert from "node:assert/strict";
import { test } from "node:test";
import { DiskError } from "../disk/disk.ts";
import { startError } from "./start.ts";

const layer =
  "qemu-system-x86_64: -blockdev driver=qcow2,node-name=disk1,discard=unmap,file.driver=file,file.filename=../disk-1/1.qcow2";

test("a layer that QEMU cannot read is a damaged disk, which no retry repairs", () => {
  for (const reason of ["Unsupported cluster size: 2^4294967295", "Active L1 table too large"]) {
    const error = startError(`${layer}: ${reason}`);
    assert.ok(error instanceof DiskError, reason);
    assert.equal(error.message, `its disk is damaged: layer 1.qcow2 cannot be used: ${reason}`);
  }
});

test("errors that may pass are not final", () => {
  const outputs = [
    `${layer}: Could not open '../disk-1/1.qcow2': Permission denied`,
    `${layer}: Failed to get "write" lock`,
    "qemu-system-x86_64: cannot set up guest memory 'ram': Cannot allocate memory",
    "",
  ];
  for (const output of outputs) {
    const error = startError(output);
    assert.ok(!(error instanceof DiskError), output);
    assert.equal(error.message, `QEMU ended: ${output || "without output"}`);
  }
});
