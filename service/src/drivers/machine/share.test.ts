import assert from "node:assert/strict";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { createShares } from "./share.ts";

function scratch(fill: (root: string) => void): string {
  const root = mkdtempSync(join(tmpdir(), "brume-share-"));
  fill(root);
  return root;
}
const read = (...parts: string[]) => readFileSync(join(...parts), "utf8");

test("one hierarchy: weights of a hundred, and the way down is opened", () => {
  const root = scratch((root) => writeFileSync(join(root, "cgroup.controllers"), "cpuset cpu io\n"));
  const shares = createShares("t1", root);
  assert.equal(shares.works, true);
  shares.set(7, 4, 123);
  assert.deepEqual(
    [read(root, "brume-t1/7/cpu.weight"), read(root, "brume-t1/7/cgroup.procs"), read(root, "cgroup.subtree_control")],
    ["400", "123", "+cpu"],
  );
  shares.set(7, 1000, 123);
  assert.equal(read(root, "brume-t1/7/cpu.weight"), "10000");
  rmSync(root, { recursive: true });
});

test("one hierarchy per controller: shares of 1024", () => {
  const root = scratch((root) => {
    mkdirSync(join(root, "cpu"));
    writeFileSync(join(root, "cpu/cpu.shares"), "1024");
  });
  const shares = createShares("t1", root);
  shares.set(7, 2, 123);
  assert.equal(read(root, "cpu/brume-t1/7/cpu.shares"), "2048");
  rmSync(root, { recursive: true });
});

test("nothing is made where there is no such thing, or until it is wanted", async () => {
  const bare = scratch(() => {});
  const none = createShares("t1", bare);
  assert.equal(none.works, false);
  none.set(7, 2, 123);
  await none.remove(7);
  assert.equal(existsSync(join(bare, "brume-t1")), false);
  const root = scratch((root) => writeFileSync(join(root, "cgroup.controllers"), "cpu\n"));
  const shares = createShares("t1", root);
  await shares.remove(7);
  assert.equal(shares.works, true);
  rmSync(bare, { recursive: true });
  rmSync(root, { recursive: true });
});
