import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, readlinkSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { syncPath, syncPathNow } from "./fsync.ts";

/** Returns what the descriptors of this process lead to. Other tests of the process may open and close theirs meanwhile. */
const openPaths = (): string[] =>
  readdirSync("/proc/self/fd").flatMap((fd) => {
    try {
      return [readlinkSync(`/proc/self/fd/${fd}`)];
    } catch {
      // The descriptor of the folder itself is closed by now.
      return [];
    }
  });

test("files and folders are synced without a change or an open descriptor; a missing one is an error", async () => {
  const folder = mkdtempSync(join(tmpdir(), "brume-fsync-"));
  try {
    const file = join(folder, "file");
    writeFileSync(file, "text");
    for (const path of [file, folder]) {
      await syncPath(path);
      syncPathNow(path);
    }
    assert.deepEqual(
      openPaths().filter((path) => path.startsWith(folder)),
      [],
    );
    const missing = join(folder, "missing");
    await assert.rejects(syncPath(missing), { code: "ENOENT" });
    assert.throws(() => syncPathNow(missing), { code: "ENOENT" });
  } finally {
    rmSync(folder, { recursive: true });
  }
});
