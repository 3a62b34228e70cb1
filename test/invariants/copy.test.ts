/** Invariants of backup, export and import: complete or not at all, and lossless between the databases. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { backup } from "../../service/src/store/backup.ts";
import type { Snapshot, Store } from "../../service/src/store/db.ts";
import { exportFile } from "../../service/src/store/export.ts";
import { importFile } from "../../service/src/store/import.ts";
import { migrate } from "../../service/src/store/migrate.ts";
import { openPostgresSnapshot } from "../../service/src/store/postgres.ts";
import type { Row } from "../../service/src/store/session.ts";
import { sessionOf } from "../../service/src/store/session.ts";
import { connect, openSqliteSnapshot } from "../../service/src/store/sqlite.ts";
import type { Database } from "../support/databases.ts";
import { databases, startDatabase } from "../support/databases.ts";
import { insertEvent } from "../support/writer.ts";

const folder = mkdtempSync(join(tmpdir(), "brume-copy-"));
after(() => rmSync(folder, { recursive: true, force: true }));
let files = 0;
const newFile = (): string => join(folder, `${++files}`);

/** Tables of every shape: references in a circle and before their table's turn, counted ids, text keys, bytes, no rows. */
const shapes = [
  {
    number: 1,
    name: "shapes",
    checksum: "shapes",
    text: `
      CREATE TABLE child (id {{id}}, parent_id {{int}} REFERENCES child (id), data {{bytes}}, note {{text}}) {{strict}};
      CREATE TABLE empty (id {{id}}) {{strict}};
      CREATE TABLE link (name {{text}} NOT NULL, part {{int}} NOT NULL, child_id {{int}} NOT NULL REFERENCES child (id),
        PRIMARY KEY (name, part)) {{strict}};
      CREATE TABLE ahead (id {{int}} PRIMARY KEY, name {{text}} NOT NULL, part {{int}} NOT NULL,
        FOREIGN KEY (name, part) REFERENCES link (name, part)) {{strict}};`,
  },
];

/** Runs one text with values, `?` on both databases. */
const run = (store: Store, sql: string, rows: readonly (readonly unknown[])[]): Promise<void> =>
  store.write(async (tx) => {
    const session = sessionOf(tx);
    let place = 0;
    const text = session.kind === "sqlite" ? sql : sql.replace(/\?/g, () => `$${++place}`);
    for (const values of rows) await session.run(text, values);
  });

async function start(kind: Database["kind"]): Promise<Database> {
  const database = await startDatabase(kind, { migrated: false });
  await migrate(database.store, shapes);
  return database;
}

async function fill({ store }: Database): Promise<void> {
  const notes = ["", null, "line\nbreak", 'quote " \\ é 𝄞', "z"];
  const children = Array.from({ length: 1203 }, (_, i) => [
    // The first refers to the last, as only an update can do.
    i === 0 ? null : i,
    i % 3 === 0 ? null : Uint8Array.from({ length: i % 40 }, (_byte, at) => (i * at) % 256),
    notes[i % notes.length],
  ]);
  await run(store, "INSERT INTO child (parent_id, data, note) VALUES (?, ?, ?)", children);
  await run(store, "UPDATE child SET parent_id = 1200 WHERE id = 1", [[]]);
  await run(store, "DELETE FROM child WHERE id > 1200", [[]]);
  const names = ["a", "B", "é", "𝄞", "\uffee", ""];
  const links = Array.from({ length: 1100 }, (_, i) => [names[i % names.length], i, (i % 1200) + 1]);
  await run(store, "INSERT INTO link (name, part, child_id) VALUES (?, ?, ?)", links);
  await run(store, "INSERT INTO ahead (id, name, part) VALUES (?, ?, ?)", [[Number.MIN_SAFE_INTEGER, "a", 0]]);
  await run(store, "INSERT INTO ahead (id, name, part) VALUES (?, ?, ?)", [[7, "B", 1]]);
}

const snap = ({ kind, address }: Database): Promise<Snapshot> =>
  kind === "sqlite" ? openSqliteSnapshot(address) : openPostgresSnapshot(address);

async function exportAll(database: Database): Promise<string> {
  const file = newFile();
  const snapshot = await snap(database);
  try {
    await exportFile(snapshot, file);
  } finally {
    await snapshot.close();
  }
  return file;
}

const readAll = ({ store }: Database, sql: string): Promise<Row[]> => sessionOf(store.read).all(sql, []);

for (const from of databases) {
  for (const to of databases) {
    test(`${from} to ${to}: an import has the same rows, and no id is used again`, async () => {
      const source = await start(from);
      const target = await start(to);
      try {
        await fill(source);
        const file = await exportAll(source);
        assert.equal(await importFile(target.store, file), 1200 + 1100 + 2);
        for (const order of ["child ORDER BY id", "link ORDER BY part", "ahead ORDER BY id"]) {
          const sql = `SELECT * FROM ${order}`;
          assert.deepEqual(await readAll(target, sql), await readAll(source, sql));
        }
        assert.equal(readFileSync(await exportAll(target), "utf8"), readFileSync(file, "utf8"));
        await run(target.store, "INSERT INTO child (note) VALUES (?)", [["next"]]);
        await run(target.store, "INSERT INTO empty (id) SELECT 1 WHERE ? = 0", [[1]]);
        assert.deepEqual(await readAll(target, "SELECT id FROM child WHERE note = 'next'"), [{ id: 1204 }]);
        // Foreign keys are enforced again.
        await assert.rejects(
          run(target.store, "INSERT INTO link (name, part, child_id) VALUES ('x', 1, ?)", [[9999]]),
          /foreign key/i,
        );
      } finally {
        await source.close();
        await target.close();
      }
    });
  }
}

for (const kind of databases) {
  test(`${kind}: a damaged export file is rejected, and nothing is stored`, async () => {
    const source = await start("sqlite");
    const target = await start(kind);
    try {
      await fill(source);
      const text = readFileSync(await exportAll(source), "utf8");
      const lines = text.trimEnd().split("\n");
      const cases: [string, string, RegExp][] = [
        ["nothing", "", /line 1: the file ends too early/],
        ["no export", '{"format":"other"}\n', /line 1: this is not an export of Brume/],
        ["no line", "SQLite format 3\0", /line 1: /],
        ["no JSON", "# Brume\n", /line 1: this is not a line of an export of Brume/],
        ["newer", text.replace('"version":1', '"version":2'), /version 2, this release reads version 1/],
        ["other schema", text.replace('"checksum":"shapes"', '"checksum":"other"'), /with one version of Brume/],
        ["other tables", text.replace('"name":"empty"', '"name":"other"'), /tables of the export differ/],
        ["cut off", `${lines.slice(0, 700).join("\n")}\n["hal`, /line 701: the file ends too early/],
        ["cut at the end", lines.slice(0, -1).join("\n"), /ends too early/],
        ["row missing", lines.filter((_, index) => index !== 1300).join("\n"), /line \d+: /],
        ["row changed", text.replace("line\\nbreak", "line break"), /changed or damaged/],
        ["something behind", `${text}[]\n`, /changed or damaged/],
        ["a part of a line behind", `${text}x`, /changed or damaged/],
        ["wrong type", text.replace('"a",0]', '"a","0"]'), /line 2: ahead\.\w+ cannot be "0"/],
        ["broken reference", sign(text.replace('"B",1]', '"B",3]')), /foreign key/i],
      ];
      for (const [name, changed, expected] of cases) {
        assert.notEqual(changed, text, name);
        const file = newFile();
        writeFileSync(file, changed);
        await assert.rejects(importFile(target.store, file), expected, name);
        for (const table of ["ahead", "child", "link"]) {
          assert.deepEqual(await readAll(target, `SELECT * FROM ${table} LIMIT 1`), [], name);
        }
      }
      const textFile = newFile();
      writeFileSync(textFile, text);
      await importFile(target.store, textFile);
      await assert.rejects(importFile(target.store, textFile), /not empty: \w+ has rows/);
    } finally {
      await source.close();
      await target.close();
    }
  });

  test(`${kind}: an export is a consistent snapshot during writes`, async () => {
    const database = await startDatabase(kind);
    try {
      await database.store.write((tx) => insertEvent(tx, 1));
      const snapshot = await snap(database);
      await database.store.write((tx) => insertEvent(tx, 2));
      const file = newFile();
      assert.equal(await exportFile(snapshot, file), 1);
      await snapshot.close();
      await assert.rejects(exportFile(await snap(database), file), /exists/);
      assert.equal(statSync(file).mode & 0o777, 0o600);
    } finally {
      await database.close();
    }
  });
}

/** The text with the last line that its other lines have. */
function sign(text: string): string {
  const lines = text.slice(0, text.lastIndexOf("\n", text.length - 2) + 1);
  return `${lines}${JSON.stringify({ sha256: createHash("sha256").update(lines).digest("hex") })}\n`;
}

const countEvents = (file: string): unknown => {
  const database = connect(file, { readOnly: true });
  try {
    return database.first("SELECT count(*) AS count FROM event", [])?.["count"];
  } finally {
    database.close();
  }
};

test("a backup under steady writes ends, is complete, and overwrites no file", async () => {
  const database = await startDatabase("sqlite");
  const { store, address } = database;
  try {
    await store.write(async (tx) => {
      for (let i = 0; i < 2000; i++) await insertEvent(tx, i);
    });
    let isWriting = true;
    const writing = (async () => {
      while (isWriting) await store.write((tx) => insertEvent(tx, 0));
    })();
    const target = newFile();
    const stages = new Set<string>();
    const size = await backup(address, target, { onProgress: ({ stage }) => stages.add(stage) });
    isWriting = false;
    await writing;
    assert.equal(size, statSync(target).size);
    assert.deepEqual([...stages].at(-1), "check");
    assert.ok((countEvents(target) as number) >= 2000);

    await assert.rejects(backup(address, target), /exists/);
    const former = readFileSync(target);
    await assert.rejects(
      backup(target, join(folder, "missing", "file")),
      /folder .*missing does not exist: create it first/,
    );
    assert.deepEqual(readFileSync(target), former);
    await backup(address, target, { replace: true });
    assert.ok((countEvents(target) as number) > 2000);
    assert.deepEqual(
      readdirSync(folder).filter((name) => name.endsWith(".partial")),
      [],
    );
  } finally {
    await database.close();
  }
});

test("a damaged database creates no backup", async () => {
  const database = await startDatabase("sqlite");
  const target = newFile();
  try {
    await database.store.write(async (tx) => {
      for (let i = 0; i < 500; i++) await insertEvent(tx, i);
    });
    await database.store.close();
    const bytes = readFileSync(database.address);
    // Among the last pages are those of the rows just written; those before are of indexes, which a copy makes anew.
    const page = 4096 * Math.floor((bytes.length * 3) / 4 / 4096);
    bytes.fill(0xff, page, page + 10 * 4096);
    writeFileSync(database.address, bytes);
    await assert.rejects(backup(database.address, target), /malformed|damaged/);
    assert.throws(() => statSync(target), /ENOENT/);
  } finally {
    await database.close();
  }
});

const exec = promisify(execFile);
const script = (name: string, ...parameters: string[]): Promise<{ stderr: string }> =>
  exec(process.execPath, [fileURLToPath(new URL(`../../scripts/${name}.ts`, import.meta.url)), ...parameters]);

test("the commands move a database from SQLite to PostgreSQL while its service runs", async () => {
  const source = await startDatabase("sqlite");
  const target = await startDatabase("postgres", { migrated: false });
  try {
    await source.store.write((tx) => insertEvent(tx, 5));
    const file = newFile();
    assert.match(
      (await script("export", file, "--from", source.address)).stderr,
      /Exported 1 rows.*\n.*npm run import/,
    );
    assert.match((await script("import", file, "--to", target.address)).stderr, /Imported 1 rows/);
    assert.deepEqual(await readAll(target, "SELECT resource_id FROM event"), [{ resource_id: 5 }]);
    const copy = newFile();
    assert.match((await script("backup", copy, "--from", source.address)).stderr, /checked\.\n.*key/);
    assert.equal(countEvents(copy), 1);
    const refusals: [string[], RegExp][] = [
      [["backup", copy, "--from", source.address], /exists/],
      [["backup", copy, "--from", target.address], /pg_dump/],
      [["backup", newFile(), "--from", newFile()], /database .*does not exist/],
      [["import", file, "--to", target.address], /not empty/],
      [["import", file, "--to", source.address], /in use by another Brume service/],
      [["export"], /exactly one FILE/],
    ];
    for (const [[name = "", ...parameters], expected] of refusals) {
      await assert.rejects(script(name, ...parameters), (error: { code: number; stderr: string }) => {
        assert.equal(error.code, 1);
        assert.match(error.stderr, expected);
        return true;
      });
    }
  } finally {
    await source.close();
    await target.close();
  }
});
