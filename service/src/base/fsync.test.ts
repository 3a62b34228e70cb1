import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { syncPath, syncPathNow } from "./fsync.ts";

test("files and folders are synced without a change or an open descriptor; a missing one is an error", async () => {
  const folder = mkdtempSync(join(tmpdir(), "brume-fsync-"));
  try {
    const file = join(folder, "file");
    writeFileSync(file, "text");
    const before = readdirSync("/proc/self/fd").length;
    for (const path of [file, folder]) {
      await syncPath(path);
      syncPathNow(path);
    }
    assert.equal(readdirSync("/proc/self/fd").length, before);
    const missing = join(folder, "missing");
    await assert.rejects(syncPath(missing), { code: "ENOENT" });
    assert.throws(() => syncPathNow(missing), { code: "ENOENT" });
  } finally {
    rmSync(folder, { recursive: true });
  }
});
