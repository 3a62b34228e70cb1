import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { CommandError } from "../../exec.ts";
import type { ToolUse } from "../disk/tool.ts";
import { convertDisk } from "./convert.ts";

const folder = mkdtempSync(join(tmpdir(), "brume-convert-"));
after(() => rmSync(folder, { recursive: true }));
let outputs = 0;

/** Converts with a `qemu-img` that ends in this way. Returns its limits. */
async function convert(code: number | null, stderr: string, why: string): Promise<ToolUse> {
  let seen: ToolUse | null = null;
  const tools = {
    run(argv: readonly string[], use: ToolUse) {
      seen = use;
      return code === 0 ? Promise.resolve("") : Promise.reject(new CommandError(argv, code, stderr, why));
    },
    tryRoot: () => Promise.resolve(),
  };
  await convertDisk(tools, folder, "foreign", { format: "qcow2", size: 2 ** 30 }, `${++outputs}.qcow2`);
  return seen ?? assert.fail("nothing was run");
}

test("an image is damaged only if the program has refused it", async () => {
  const damaged = { name: "ImageError", defect: "unusable" };
  await assert.rejects(convert(1, "qemu-img: error while reading at byte 0: Input/output error\n", ""), damaged);
  await assert.rejects(convert(2, "ERROR cluster 4 refcount=0 reference=1\n", ""), damaged);
  await assert.rejects(convert(null, "", "printed more than 67108864 bytes"), damaged);
  for (const [code, stderr, why] of [
    [null, "", "ended with SIGKILL"],
    [null, "", "took longer than 3600000 ms"],
    [137, "qemu-img: warning: something\nKilled\n", ""],
    [1, "unshare: fork failed: Resource temporarily unavailable\n", ""],
  ] as const)
    await assert.rejects(convert(code, stderr, why), { name: "CommandError" }, why || stderr);
});

test("lack of disk space is no damage", async () => {
  await assert.rejects(convert(1, "qemu-img: error while writing at byte 0: File too large\n", ""), { defect: "full" });
});

test("the largest disk has time for its conversion", async () => {
  const { timeout } = await convert(0, "", "");
  assert.ok((timeout / 1000) * 100e6 >= 4096e9, "4096 GB at 100 MB/s");
});
