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
  const health = createHealth("brume.db", (_level, message) => lines.push(message), {
    steady: () => time,
    freeSpace: async () => 0,
  });
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

test("a full disk with new free space counts as writable without a write", async (context) => {
  context.mock.timers.enable({ apis: ["setInterval"] });
  let free = 1000;
  let measured = 0;
  const lines: string[] = [];
  const health = createHealth("brume.db", (_level, message) => lines.push(message), {
    steady: () => 0,
    freeSpace: async () => {
      measured += 1;
      return free;
    },
  });
  /** Measures once. The result is processed in microtasks, all of which precede the next turn. */
  const measure = async (): Promise<void> => {
    context.mock.timers.tick(500);
    await new Promise((resolve) => setImmediate(resolve));
  };
  health.note(new StorageError("the disk is full", { isFull: true }));
  await measure();
  free = 100_000;
  await measure();
  assert.equal(health.blocked(), "the disk is full");
  free = 1e9;
  await measure();
  assert.equal(health.blocked(), null);
  const before = measured;
  await measure();
  assert.equal(measured, before, "a writable disk is not measured");
  assert.equal(lines.at(-1), "Changes can be stored again.");
  await health.close();
});

test("a failed measurement of a full disk is no new free space", async (context) => {
  context.mock.timers.enable({ apis: ["setInterval"] });
  const results = [9e6, null, 9e6];
  const health = createHealth("brume.db", () => {}, {
    steady: () => 0,
    freeSpace: async () => results.shift() ?? Promise.reject(new Error("input/output error")),
  });
  health.note(new StorageError("the disk is full", { isFull: true }));
  for (let round = 0; round < 2; round++) {
    context.mock.timers.tick(500);
    await new Promise((resolve) => setImmediate(resolve));
  }
  assert.deepEqual(results, []);
  assert.equal(health.blocked(), "the disk is full");
  await health.close();
});

test("damage that a read finds during a check does not start a second check", async (context) => {
  const folder = mkdtempSync(join(tmpdir(), "brume-health-"));
  context.after(() => rmSync(folder, { recursive: true }));
  const file = join(folder, "brume.db");
  connect(file, { readOnly: false }).close();
  let threads = 0;
  const count = (): void => void threads++;
  process.on("worker", count);
  context.after(() => process.off("worker", count));
  const health = createHealth(file, () => {});
  const checked = health.check();
  health.note(new StorageError("damaged", { isDamage: true }));
  await checked;
  assert.equal(threads, 1);
  assert.match(health.unavailable() ?? "", /^damaged/);
  await health.close();
});

test("failed writes try to make space, with a pause", () => {
  let time = 0;
  let tries = 0;
  const health = createHealth("brume.db", () => {}, {
    steady: () => time,
    freeSpace: async () => 0,
    makeSpace: async () => void tries++,
  });
  const fail = () => health.note(new StorageError("disk I/O error"));
  fail();
  fail();
  assert.equal(tries, 1);
  time += 3000;
  fail();
  assert.equal(tries, 2);
  health.note(new StorageError("damaged", { isDamage: true }));
  assert.equal(tries, 2, "damage is no lack of space");
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
