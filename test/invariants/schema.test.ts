/** Invariants of the schema: types, migrations and both databases agree, and migrations are safe. */
import assert from "node:assert/strict";
import { readdir, readFile } from "node:fs/promises";
import { test } from "node:test";
import type { Migration } from "../../service/src/store/migrate.ts";
import { migrate, readMigrations, render } from "../../service/src/store/migrate.ts";
import { sessionOf } from "../../service/src/store/session.ts";
import type { Column } from "../../service/src/store/shape.ts";
import { describe } from "../../service/src/store/shape.ts";
import type { Database } from "../support/databases.ts";
import { databases, startDatabase } from "../support/databases.ts";

/** Returns the row types of `schema.ts` and `schema/` as columns, read from their text, because types do not exist at run time. */
async function readTypes(): Promise<Map<string, Column[]>> {
  const store = new URL("../../service/src/store/", import.meta.url);
  const parts = await readdir(new URL("schema", store));
  const files = ["schema.ts", ...parts.map((part) => `schema/${part}`)];
  const text = (await Promise.all(files.map((file) => readFile(new URL(file, store), "utf8")))).join("\n");
  const interfaces = new Map<string, Map<string, string>>();
  for (const [, name = "", body = ""] of text.matchAll(/^export interface (\w+) \{\n(.*?)^\}/gms)) {
    const fields = body
      .replace(/\/\*\*.*?\*\//gs, "")
      .split(";")
      .map((field) => field.trim())
      .filter((field) => field !== "");
    interfaces.set(
      name,
      new Map(
        fields.map((field) => {
          const [, key, type] = /^(\w+): (.+)$/s.exec(field) ?? [];
          assert.ok(key !== undefined && type !== undefined, `${name}: cannot read "${field}"`);
          return [key, type] as const;
        }),
      ),
    );
  }
  const tables = new Map<string, Column[]>();
  for (const [table, type] of interfaces.get("Tables") ?? []) {
    const fields = interfaces.get(type);
    assert.ok(fields !== undefined, `${type} is not in schema.ts`);
    tables.set(table, [...fields].map(([name, given]) => toColumn(`${table}.${name}`, name, given)).sort(byName));
  }
  return tables;
}

const byName = (a: Column, b: Column): number => (a.name < b.name ? -1 : 1);

function toColumn(place: string, name: string, given: string): Column {
  const parts = given
    .replace(/^Generated<(.*)>$/s, "$1")
    .split("|")
    .map((part) => part.trim())
    .filter((part) => part !== "");
  const types = new Set(
    parts.filter((part) => part !== "null").map((part) => (part.startsWith('"') ? "string" : part)),
  );
  const [type] = types;
  const known = { number: "int", string: "text", Uint8Array: "bytes" } as const;
  assert.ok(types.size === 1 && type !== undefined && type in known, `${place} has the type ${given}`);
  return { name, type: known[type as keyof typeof known], nullable: parts.includes("null") };
}

for (const kind of databases) {
  test(`${kind}: the migrated database has the columns of schema.ts, and every table has a key`, async () => {
    const database = await startDatabase(kind);
    try {
      const types = await readTypes();
      types.delete("migration");
      const tables = await describe(sessionOf(database.store.read));
      assert.deepEqual(
        Object.fromEntries(tables.map(({ name, columns }) => [name, columns])),
        Object.fromEntries(types),
      );
      for (const { name, key } of tables) assert.ok(key.length > 0, `${name} has no primary key`);
    } finally {
      await database.close();
    }
  });
}

test("both databases have the same keys and counters", async () => {
  const described = [];
  for (const kind of databases) {
    const database = await startDatabase(kind);
    described.push(await describe(sessionOf(database.store.read)));
    await database.close();
  }
  assert.deepEqual(described[0], described[1]);
});

test("migrations are numbered without a gap and use what both databases have", async () => {
  const migrations = await readMigrations();
  assert.ok(migrations.length > 0);
  for (const [index, { number, name, text }] of migrations.entries()) {
    assert.equal(number, index + 1, name);
    // A reference that is checked at the commit would also fail the other writes of the group.
    const banned = /\b(TRIGGER|FUNCTION|DEFERRABLE|DEFERRED|COLLATE)\b/i;
    assert.equal(banned.exec(text.replace(/--.*$/gm, ""))?.[0], undefined, name);
  }
});

test("sqlite: every table is strict", async () => {
  const database = await startDatabase("sqlite");
  const loose =
    "SELECT name FROM pragma_table_list WHERE type = 'table' AND strict = 0 AND name NOT LIKE 'sqlite^_%' ESCAPE '^'";
  assert.deepEqual(await sessionOf(database.store.read).all(loose, []), []);
  await database.close();
});

test("postgres: every text is compared byte by byte, as in SQLite", async () => {
  const database = await startDatabase("postgres");
  const other = `SELECT table_name, column_name FROM information_schema.columns
    WHERE table_schema = current_schema() AND data_type = 'text' AND collation_name IS DISTINCT FROM 'C'`;
  assert.deepEqual(await sessionOf(database.store.read).all(other, []), []);
  await database.close();
});

test("an unknown placeholder is rejected", () => {
  assert.throws(() => render("CREATE TABLE a (b {{bool}})", "sqlite"), /unknown placeholder \{\{bool\}\}/);
});

const migration = (number: number, name: string, text: string): Migration => ({ number, name, text, checksum: text });
const one = migration(
  1,
  "one",
  "CREATE TABLE a (id {{id}}, b {{text}} NOT NULL) {{strict}}; CREATE INDEX a_b ON a (b)",
);
const two = migration(2, "two", "ALTER TABLE a ADD COLUMN c {{int}}");
const broken = migration(2, "broken", "CREATE TABLE d (e {{int}}) {{strict}}; INSERT INTO nowhere VALUES (1)");

async function withEmpty(kind: Database["kind"], prove: (database: Database) => Promise<void>): Promise<void> {
  const database = await startDatabase(kind, { migrated: false });
  try {
    await prove(database);
  } finally {
    await database.close();
  }
}

const readTables = async ({ store }: Database): Promise<string[]> =>
  (await describe(sessionOf(store.read))).map(({ name }) => name);

for (const kind of databases) {
  test(`${kind}: only what is missing is applied`, () =>
    withEmpty(kind, async ({ store }) => {
      assert.deepEqual(await migrate(store, [one]), ["one"]);
      assert.deepEqual(await migrate(store, [one, two]), ["two"]);
      assert.deepEqual(await migrate(store, [one, two]), []);
    }));

  test(`${kind}: a changed migration and a newer database are rejected`, () =>
    withEmpty(kind, async ({ store }) => {
      await migrate(store, [one, two]);
      const changed = { ...one, checksum: "other" };
      await assert.rejects(migrate(store, [changed, two]), /migration 1 \(one\) was changed/);
      await assert.rejects(migrate(store, [one]), /has schema 2, this release supports 1/);
    }));

  test(`${kind}: a failed migration leaves nothing, and earlier ones stay`, () =>
    withEmpty(kind, async (database) => {
      await assert.rejects(migrate(database.store, [one, broken]), /migration broken failed: .*nowhere/);
      assert.deepEqual(await readTables(database), ["a"]);
      assert.deepEqual(await migrate(database.store, [one, two]), ["two"]);
    }));

  test(`${kind}: concurrent migrations are safe`, () =>
    withEmpty(kind, async (database) => {
      const { store } = database;
      const stores = kind === "sqlite" ? [store, store, store] : [store, await database.open(), await database.open()];
      const applied = await Promise.all(stores.map((at) => migrate(at, [one, two])));
      assert.deepEqual(applied.flat().sort(), ["one", "two"]);
      assert.deepEqual(await readTables(database), ["a"]);
    }));
}
