import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readdirSync, readlinkSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { StorageError } from "./db.ts";
import { createHealth } from "./health.ts";
import { connect } from "./sqlite.ts";

test("a full disk is logged once, also if small writes succeed meanwhile", () => {
  let time = 5000;
  const lines: string[] = [];
  const health = createHealth(
    "brume.db",
    (_level, message) => lines.push(message),
    () => time,
  );
  for (let round = 0; round < 10; round++) {
    health.note(new StorageError("the disk is full", { isFull: true }));
    health.worked();
    time += 5000;
    health.worked();
    assert.equal(health.blocked(), "the disk is full");
  }
  time += 5000;
  health.worked();
  assert.equal(health.blocked(), null);
  assert.deepEqual(lines, [
    "Nothing can be stored: the disk is full. Reads and the name server still work.",
    "Changes can be stored again.",
  ]);
});

test("a check in progress does not keep the log when the file is closed", async (context) => {
  const folder = mkdtempSync(join(tmpdir(), "brume-health-"));
  context.after(() => rmSync(folder, { recursive: true }));
  const file = join(folder, "brume.db");
  const connection = connect(file, { readOnly: false });
  // Its check takes long enough to be in progress below.
  connection.script(`
    PRAGMA journal_mode = WAL; CREATE TABLE many (text TEXT);
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300000)
    INSERT INTO many SELECT 'text ' || i FROM n`);
  const uses = (): number =>
    readdirSync("/proc/self/fd").filter((each) => {
      try {
        return readlinkSync(`/proc/self/fd/${each}`) === file;
      } catch {
        return false;
      }
    }).length;
  const before = uses();
  const lines: string[] = [];
  const health = createHealth(file, (_level, message) => lines.push(message));
  const checked = health.check();
  while (uses() === before) await sleep(1);
  await health.close();
  connection.close();
  assert.equal(existsSync(`${file}-wal`), false);
  await checked;
  assert.deepEqual(lines, []);
});
