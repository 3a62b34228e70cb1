/** A SQLite file of an earlier release gets incremental vacuum: at a start if it is small, else by a command, and safely if killed. */
import assert from "node:assert/strict";
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import type { Log } from "../../service/src/base/log.ts";
import { compactAtStart } from "../../service/src/store/compact.ts";
import { readMigrations, render } from "../../service/src/store/migrate.ts";
import { connect, databaseName, openSqlite } from "../../service/src/store/sqlite.ts";
import { createProcess } from "../support/process.ts";

const script = fileURLToPath(new URL("../../scripts/compact.ts", import.meta.url));
/** Migrations of the release whose files had no incremental vacuum. */
const former = 10;
const kept = 4000;

/** Writes a file of the earlier release that consists mostly of free pages. */
async function makeFormer(folder: string): Promise<string> {
  const file = join(folder, databaseName);
  content ??= createFormer();
  writeFileSync(file, await content);
  return file;
}

let content: Promise<Buffer> | undefined;

async function createFormer(): Promise<Buffer> {
  const folder = mkdtempSync(join(tmpdir(), "brume-compact-"));
  const file = join(folder, databaseName);
  const connection = connect(file, { readOnly: false });
  connection.script("PRAGMA journal_mode = WAL");
  connection.script(
    render(
      "CREATE TABLE migration (number {{int}} NOT NULL PRIMARY KEY, name {{text}} NOT NULL, checksum {{text}} NOT NULL) {{strict}}",
      "sqlite",
    ),
  );
  for (const { number, name, checksum, text } of (await readMigrations()).slice(0, former)) {
    connection.script(render(text, "sqlite"));
    connection.run("INSERT INTO migration VALUES (?, ?, ?)", [number, name, checksum]);
  }
  const insert =
    "INSERT INTO event (type, date, project_id, resource, resource_id, data) VALUES (?, ?, 1, 'toy', ?, ?)";
  connection.script("BEGIN");
  for (let row = 0; row < 2 * kept; row++) connection.run(insert, ["sample.made", Date.now(), row, "x".repeat(3000)]);
  connection.script(`COMMIT; DELETE FROM event WHERE resource_id % 2 = 0; PRAGMA wal_checkpoint(TRUNCATE)`);
  connection.close();
  const bytes = readFileSync(file);
  rmSync(folder, { recursive: true, force: true });
  return bytes;
}

function inspect(file: string): { mode: number; events: number; sum: number; check: string } {
  const connection = connect(file, { readOnly: true });
  try {
    const value = (text: string, name: string): unknown => connection.first(text, [])?.[name];
    return {
      mode: Number(value("PRAGMA auto_vacuum", "auto_vacuum")),
      events: Number(value("SELECT count(*) AS count FROM event WHERE resource = 'toy'", "count")),
      sum: Number(value("SELECT sum(resource_id) AS sum FROM event WHERE resource = 'toy'", "sum")),
      check: String(value("PRAGMA integrity_check", "integrity_check")),
    };
  } finally {
    connection.close();
  }
}

const expected = { events: kept, sum: kept * kept, check: "ok" };

async function inFolder(prove: (folder: string) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "brume-compact-"));
  try {
    await prove(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

test("a start converts a small file of an earlier release", () =>
  inFolder(async (folder) => {
    const file = await makeFormer(folder);
    assert.deepEqual(inspect(file), { mode: 0, ...expected });
    const before = statSync(file).size;
    const brume = await createProcess("sqlite", { folder });
    try {
      assert.ok(
        brume.log.some(({ msg }) => msg.startsWith("Converted ")),
        "the log reports it",
      );
      await brume.client.createDomain({ body: { Name: "after.test" } });
      assert.equal(await brume.end("SIGTERM"), 0);
      assert.deepEqual(inspect(file), { mode: 2, ...expected });
      assert.ok(statSync(file).size < 0.6 * before, `${statSync(file).size} of ${before} bytes`);
      await brume.start();
      assert.ok(!brume.log.some(({ msg }) => msg.includes("convert")), "once");
    } finally {
      await brume.close();
    }
  }));

test("a kill during the conversion loses nothing", { timeout: 300_000 }, () =>
  inFolder(async (folder) => {
    const file = await makeFormer(folder);
    const sizeOfLog = (): number => statSync(`${file}-wal`, { throwIfNoEntry: false })?.size ?? 0;
    let killed = 0;
    for (const bytes of [1, 2e6, 6e6, 10e6]) {
      const child = spawn(process.execPath, [script], { env: { ...process.env, BRUME_DATA: folder }, stdio: "ignore" });
      const ended = once(child, "exit");
      while (child.exitCode === null && sizeOfLog() < bytes) await sleep(1);
      child.kill("SIGKILL");
      await ended;
      if (child.signalCode === "SIGKILL") killed += 1;
      const { mode, ...rest } = inspect(file);
      assert.deepEqual(rest, expected, `killed at ${bytes} bytes of the log`);
      assert.ok(mode === 0 || mode === 2);
    }
    assert.ok(killed > 0, "at least one was killed before its end");
    const brume = await createProcess("sqlite", { folder });
    try {
      await brume.end("SIGTERM");
      assert.deepEqual(inspect(file), { mode: 2, ...expected });
    } finally {
      await brume.close();
    }
  }),
);

test("a file that is too large is not converted, and the log names the command", () =>
  inFolder(async (folder) => {
    const file = await makeFormer(folder);
    const lines: string[] = [];
    const log: Log = (level, message) => void lines.push(`${level}: ${message}`);
    const store = await openSqlite(file, { log });
    try {
      await compactAtStart(store, file, log, 1e6);
    } finally {
      await store.close();
    }
    assert.match(lines.join("\n"), /^warn: .* too large \(\d+ MB\) .*"npm run compact" .* once\.$/);
    assert.equal(inspect(file).mode, 0);
  }));

test("npm run compact converts the file, unless a service uses it", () =>
  inFolder(async (folder) => {
    const file = await makeFormer(folder);
    const env = { ...process.env, BRUME_DATA: folder };
    const store = await openSqlite(file, { log: () => {} });
    try {
      const { status, stderr } = spawnSync(process.execPath, [script], { env, encoding: "utf8" });
      assert.equal(status, 1);
      assert.match(stderr, /in use by another Brume service/);
    } finally {
      await store.close();
    }
    execFileSync(process.execPath, [script], { env, stdio: "pipe" });
    assert.deepEqual(inspect(file), { mode: 2, ...expected });
  }));
