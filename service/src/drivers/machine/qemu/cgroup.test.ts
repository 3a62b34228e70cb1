import assert from "node:assert/strict";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { createGroups } from "./cgroup.ts";

function scratch(fill: (root: string) => void): string {
  const root = mkdtempSync(join(tmpdir(), "brume-cgroup-"));
  fill(root);
  return root;
}
const read = (...parts: string[]) => readFileSync(join(...parts), "utf8");
const limits = { weight: 4, memory: 768, tasks: 256 };

test("v2: sets weight, memory and threads, and enables the controllers on the path", () => {
  const root = scratch((root) => writeFileSync(join(root, "cgroup.controllers"), "cpuset cpu io memory pids\n"));
  const groups = createGroups("t1", root);
  assert.deepEqual(groups.missing, []);
  groups.set(7, limits, 123);
  const group = join(root, "brume-t1/7");
  assert.deepEqual(
    ["cpu.weight", "memory.max", "pids.max", "cgroup.procs"].map((file) => read(group, file)),
    ["400", String(768 * 2 ** 20), "256", "123"],
  );
  assert.match(read(root, "cgroup.subtree_control"), /^\+(cpu|memory|pids)$/);
  groups.set(7, { ...limits, weight: 1000 }, 123);
  assert.equal(read(group, "cpu.weight"), "10000");
  rmSync(root, { recursive: true });
});

test("v1: one hierarchy per controller, and missing ones are listed", () => {
  const root = scratch((root) => {
    for (const controller of ["cpu", "memory"]) {
      mkdirSync(join(root, controller));
      writeFileSync(join(root, controller, "cgroup.procs"), "");
    }
  });
  const groups = createGroups("t1", root);
  assert.deepEqual(groups.missing, ["pids"]);
  groups.set(7, { ...limits, weight: 2 }, 123);
  assert.equal(read(root, "cpu/brume-t1/7/cpu.shares"), "2048");
  assert.equal(read(root, "memory/brume-t1/7/memory.limit_in_bytes"), String(768 * 2 ** 20));
  assert.equal(read(root, "memory/brume-t1/7/cgroup.procs"), "123");
  rmSync(root, { recursive: true });
});

test("creates no group without a controller or before the first use", async () => {
  const bare = scratch(() => {});
  const none = createGroups("t1", bare);
  assert.deepEqual(none.missing, ["cpu", "memory", "pids"]);
  none.set(7, limits, 123);
  await none.remove(7);
  assert.equal(existsSync(join(bare, "brume-t1")), false);
  const root = scratch((root) => writeFileSync(join(root, "cgroup.controllers"), "cpu\n"));
  const groups = createGroups("t1", root);
  await groups.remove(7);
  assert.deepEqual(groups.missing, ["memory", "pids"]);
  rmSync(bare, { recursive: true });
  rmSync(root, { recursive: true });
});
