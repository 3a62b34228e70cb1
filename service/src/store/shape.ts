/**
 * Reads the tables of a database from its catalogue. Export and import use it, and a test compares it with the types of `schema.ts`, so
 * that there is no second list of tables.
 */
import type { Session } from "./session.ts";

/** A column of a table. */
export interface Column {
  readonly name: string;
  readonly type: "int" | "text" | "bytes";
  readonly nullable: boolean;
}

/** A table and its columns. */
export interface Table {
  readonly name: string;
  /** Sorted by name, because the order after `ALTER TABLE` differs between SQLite and PostgreSQL. */
  readonly columns: readonly Column[];
  /** Columns of the primary key, in its order. */
  readonly key: readonly string[];
  /** True if the database generates the key. */
  readonly counted: boolean;
}

const catalogue = {
  sqlite: `
    SELECT t.name AS "table", c.name AS name, c.type AS type, c.pk AS key,
      c."notnull" = 0 AND c.pk = 0 AS nullable, t.sql LIKE '%AUTOINCREMENT%' AND c.pk > 0 AS counted
    FROM sqlite_schema t JOIN pragma_table_info(t.name) c
    WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite^_%' ESCAPE '^'
    ORDER BY t.name, c.name`,
  postgres: `
    SELECT t.relname AS "table", c.attname AS name, format_type(c.atttypid, NULL) AS type,
      coalesce(array_position(k.indkey::int2[], c.attnum), -1) + 1 AS key,
      NOT c.attnotnull AS nullable, c.attidentity <> '' AS counted
    FROM pg_class t JOIN pg_attribute c ON c.attrelid = t.oid AND c.attnum > 0 AND NOT c.attisdropped
    LEFT JOIN pg_index k ON k.indrelid = t.oid AND k.indisprimary
    WHERE t.relkind = 'r' AND t.relnamespace = current_schema()::regnamespace
    ORDER BY t.relname COLLATE "C", c.attname COLLATE "C"`,
};

const types: Readonly<Record<string, Column["type"]>> = {
  INTEGER: "int",
  TEXT: "text",
  BLOB: "bytes",
  bigint: "int",
  text: "text",
  bytea: "bytes",
};

/** Returns all tables except `migration`, sorted by name. Throws on a column type that no migration uses. */
export async function describe(session: Session): Promise<Table[]> {
  const tables = new Map<string, Table & { columns: Column[]; key: string[]; counted: boolean }>();
  for (const row of await session.all(catalogue[session.kind], [])) {
    const { table: name, name: column, type: given } = row as { table: string; name: string; type: string };
    if (name === "migration") continue;
    const type = types[given];
    if (type === undefined) throw new Error(`${name}.${column} has the unsupported type ${given}`);
    const table = tables.get(name) ?? { name, columns: [], key: [], counted: false };
    tables.set(name, table);
    table.columns.push({ name: column, type, nullable: row["nullable"] === 1 });
    if (row["counted"] === 1) table.counted = true;
    const position = row["key"] as number;
    if (position > 0) table.key[position - 1] = column;
  }
  return [...tables.values()];
}
