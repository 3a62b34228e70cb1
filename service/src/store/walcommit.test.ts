/** When the log of SQLite is moved into the database: the checkpoints of commits beside a reader that needs an old state. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { type TestContext, test } from "node:test";
import { connect } from "./sqlite.ts";
import { createWalCommits } from "./walcommit.ts";

/** Opens an empty database with its commits. `runs` counts the checkpoints. */
function openCommits(t: TestContext) {
  const folder = mkdtempSync(join(tmpdir(), "brume-wal-"));
  const file = join(folder, "brume.db");
  const writing = connect(file, { readOnly: false });
  writing.script(`
    PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = 0;
    CREATE TABLE big (id INTEGER PRIMARY KEY, data BLOB)`);
  const reading = connect(file, { readOnly: true });
  const runs = { count: 0 };
  const commits = createWalCommits({
    file,
    writing,
    reading,
    log: () => {},
    hasWorker: true,
    sync: async () => {},
    async runCheckpoint() {
      runs.count += 1;
      const other = new DatabaseSync(file);
      other.exec("PRAGMA wal_checkpoint(PASSIVE)");
      other.close();
    },
  });
  /** Stores a row of about so many pages. */
  async function store(pages: number): Promise<void> {
    await commits.begin();
    writing.run(`INSERT INTO big (data) VALUES (zeroblob(${pages} * 4096))`, []);
    await commits.commit(true);
  }
  const pagesInLog = () => Number(writing.first("PRAGMA wal_checkpoint(NOOP)", [])?.["log"]);
  const readers: DatabaseSync[] = [];
  function openReader(): DatabaseSync {
    const reader = new DatabaseSync(file, { readOnly: true });
    readers.push(reader);
    reader.exec("BEGIN; SELECT count(*) FROM big");
    return reader;
  }
  t.after(async () => {
    await commits.close();
    for (const each of [reading, writing, ...readers.filter(({ isOpen }) => isOpen)]) each.close();
    rmSync(folder, { recursive: true });
  });
  return { runs, store, pagesInLog, openReader };
}

test("a log that a reader needs is not moved at each commit", async (t) => {
  const { runs, store, pagesInLog, openReader } = openCommits(t);
  const reader = openReader();
  await store(9000);
  for (let index = 0; index < 10; index++) await store(1);
  assert.ok(pagesInLog() > 9000);
  assert.ok(runs.count >= 1 && runs.count <= 2, `${runs.count}`);

  // It is tried again when the log has grown, and then SQLite starts it again.
  reader.close();
  await store(4100);
  await store(1);
  assert.ok(runs.count <= 4, `${runs.count}`);
  await store(1);
  assert.ok(pagesInLog() < 100, `${pagesInLog()}`);
});

test("a log is moved whenever it is long if no reader needs it", async (t) => {
  const { runs, store, pagesInLog } = openCommits(t);
  for (let index = 0; index < 20; index++) await store(1000);
  assert.ok(runs.count >= 4 && runs.count <= 5, `${runs.count}`);
  assert.ok(pagesInLog() < 6000, `${pagesInLog()}`);
});

test("a reader in the middle of the log costs one checkpoint more", async (t) => {
  const { runs, store, openReader } = openCommits(t);
  await store(3000);
  openReader();
  await store(6000);
  for (let index = 0; index < 10; index++) await store(1);
  assert.ok(runs.count >= 1 && runs.count <= 2, `${runs.count}`);
});
