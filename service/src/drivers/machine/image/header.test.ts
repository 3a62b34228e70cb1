import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { headerBytes, inspectHeader } from "./header.ts";

const gigabyte = 2n ** 30n;

/** The header of a qcow2, changed by the test. */
function header(change: (head: Buffer) => void = () => {}): Buffer {
  const head = Buffer.alloc(headerBytes);
  head.write("QFI\u00fb", "latin1");
  head.writeUInt32BE(3, 4);
  head.writeBigUInt64BE(2n * gigabyte, 24);
  change(head);
  return head;
}
const inspect = (change?: (head: Buffer) => void) => inspectHeader(header(change), 200_000);

test("accepts a plain qcow2 of each version with harmless features", () => {
  const plain = { format: "qcow2", size: 2 ** 31 };
  assert.deepEqual(inspect(), plain);
  assert.deepEqual(
    inspect((head) => head.writeUInt32BE(2, 4)),
    plain,
  );
  for (const feature of [1n, 8n, 16n])
    assert.deepEqual(
      inspect((head) => head.writeBigUInt64BE(feature, 72)),
      plain,
    );
});

test("a qcow2 that names another file, is encrypted or unknown is unsafe", () => {
  const hostile: ((head: Buffer) => void)[] = [
    (head) => head.writeBigUInt64BE(1024n, 8),
    (head) => head.writeUInt32BE(11, 16),
    (head) => head.writeUInt32BE(1, 32),
    (head) => head.writeUInt32BE(2, 32),
    (head) => head.writeBigUInt64BE(4n, 72),
    (head) => head.writeBigUInt64BE(1n << 40n, 72),
  ];
  for (const change of hostile) assert.equal((inspect(change) as { defect: string }).defect, "unsafe");
});

test("a file that cannot become a disk is unusable", () => {
  const broken: ((head: Buffer) => void)[] = [
    (head) => head.writeUInt32BE(1, 4),
    (head) => head.writeUInt32BE(4, 4),
    (head) => head.writeBigUInt64BE(0n, 24),
    (head) => head.writeBigUInt64BE(4097n * gigabyte, 24),
    (head) => head.writeBigUInt64BE(2n ** 64n - 1n, 24),
    (head) => head.writeBigUInt64BE(2n, 72),
  ];
  for (const change of broken) assert.equal((inspect(change) as { defect: string }).defect, "unusable");
  for (const length of [4, 71, 103])
    assert.equal((inspectHeader(header().subarray(0, length), length) as { defect: string }).defect, "unusable");
});

test("other known formats are not accepted as raw disks", () => {
  for (const text of ["KDMV", "# Disk DescriptorFile", "vhdxfile", "<!DOCTYPE html>", "PK\u0003\u0004", "\u001f\u008b"])
    assert.match((inspectHeader(Buffer.from(text, "latin1"), 5) as { reason: string }).reason, /must be qcow2 or raw/);
  assert.equal((inspectHeader(Buffer.alloc(0), 0) as { reason: string }).reason, "The image is empty.");
  assert.deepEqual(inspectHeader(Buffer.alloc(104), 4096), { format: "raw", size: 4096 });
});

test("random bytes never throw", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: headerBytes }), fc.boolean(), fc.nat(), (bytes, isQcow2, length) => {
      const head = Buffer.from(bytes);
      if (isQcow2) head.write("QFI\u00fb", "latin1");
      const found = inspectHeader(head, length);
      assert.ok("defect" in found || (found.size > 0 && found.size <= 4096 * 2 ** 30));
    }),
  );
});
