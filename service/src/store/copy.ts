/**
 * The format of exports: all rows of a database in one file that any database of the same schema can import, SQLite or PostgreSQL. The
 * file has lines of JSON: a header (schema, tables, number of rows of each), the rows of each table as arrays with bytes in base64,
 * and the SHA-256 of all lines before. `export.ts` writes it and `import.ts` reads it; neither loads a complete table into memory.
 */
import type { Row, Session } from "./session.ts";
import type { Column, Table } from "./shape.ts";

/** Reports progress: `rows` of `total` rows of one table are done. */
export type CopyProgress = (table: string, rows: number, total: number) => void;

/** A table in an export file: its name, columns and number of rows. */
export interface TableHeader {
  readonly name: string;
  readonly columns: readonly string[];
  readonly rows: number;
  /** Highest id ever generated, so that no id is reused; null if the database does not generate the ids. */
  readonly last: number | null;
}

/** First line of an export file. */
export interface Header {
  readonly format: "brume export";
  readonly version: 1;
  /** Migrations of the database. An import requires the same ones. */
  readonly schema: readonly { readonly number: number; readonly name: string; readonly checksum: string }[];
  readonly tables: readonly TableHeader[];
}

/** Returns the name as a quoted SQL identifier. */
export const quote = (name: string): string => `"${name}"`;
/** Returns the names as quoted SQL identifiers, separated by commas. */
export const quoteAll = (names: readonly string[]): string => names.map(quote).join();
/** Returns the names of the columns of a table. */
export const namesOf = ({ columns }: Table): string[] => columns.map((column) => column.name);

/** Returns the line of a row. */
export const encodeRow = ({ columns }: Table, row: Row): unknown[] =>
  columns.map(({ name, type }) => {
    const value = row[name];
    return type === "bytes" && value !== null ? Buffer.from(value as Uint8Array).toString("base64") : value;
  });

/** Returns the values of a line in the order of the columns. Throws on a line that `encodeRow` cannot produce. */
export function decodeRow({ name, columns }: Table, line: unknown): unknown[] {
  if (!Array.isArray(line) || line.length !== columns.length) throw new Error(`this is not a row of table ${name}`);
  return columns.map((column, index) => decode(name, column, line[index]));
}

function decode(table: string, { name, type, nullable }: Column, value: unknown): unknown {
  if (value === null && nullable) return null;
  if (type === "int" && Number.isSafeInteger(value)) return value;
  if (type === "text" && typeof value === "string") return value;
  if (type === "bytes" && typeof value === "string") return Buffer.from(value, "base64");
  throw new Error(`${table}.${name} cannot be ${JSON.stringify(value)?.slice(0, 40)}`);
}

/** Returns the header of a parsed line. Throws if it is not a header of this version. */
export function decodeHeader(line: unknown): Header {
  const { format, version, schema, tables } = (line ?? {}) as Partial<Record<keyof Header, unknown>>;
  if (format !== "brume export") throw new Error("this is not an export of Brume");
  if (version !== 1) throw new Error(`this export has version ${String(version)}, this release reads version 1`);
  const isCount = (value: unknown): boolean => Number.isSafeInteger(value) && (value as number) >= 0;
  const isTable = (value: Partial<TableHeader> | null): boolean =>
    typeof value?.name === "string" &&
    Array.isArray(value.columns) &&
    isCount(value.rows) &&
    (value.last === null || isCount(value.last));
  const isMigration = (value: Partial<Header["schema"][number]> | null): boolean =>
    typeof value?.name === "string" && typeof value.checksum === "string" && isCount(value.number);
  if (!Array.isArray(schema) || !schema.every(isMigration)) throw new Error("the schema in the header is damaged");
  if (!Array.isArray(tables) || !tables.every(isTable)) throw new Error("the tables in the header are damaged");
  return line as Header;
}

/** Resolves to the number of rows of a table. */
export async function countRows(session: Session, table: string): Promise<number> {
  return (await session.first(`SELECT count(*) AS rows FROM ${quote(table)}`, []))?.["rows"] as number;
}

/** Returns the highest id that a table ever generated, also if that row was deleted; 0 if none. */
export async function readLast(session: Session, { name, key }: Table): Promise<number> {
  const row =
    session.kind === "sqlite"
      ? await session.first("SELECT seq AS last FROM sqlite_sequence WHERE name = ?", [name])
      : await session.first(
          `SELECT last_value - (NOT is_called)::int AS last FROM ${await counterOf(session, name, key)}`,
          [],
        );
  return (row?.["last"] as number | undefined) ?? 0;
}

/** Sets the next generated id of a table to `last + 1`. */
export async function writeLast(session: Session, { name, key }: Table, last: number): Promise<void> {
  if (last === 0) return;
  if (session.kind === "sqlite") {
    const known = await session.run("UPDATE sqlite_sequence SET seq = ? WHERE name = ?", [last, name]);
    if (known === 0) await session.run("INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)", [name, last]);
  } else {
    await session.all("SELECT setval($1::regclass, $2)", [await counterOf(session, name, key), last]);
  }
}

async function counterOf(session: Session, table: string, key: readonly string[]): Promise<string> {
  const row = await session.first("SELECT pg_get_serial_sequence($1, $2) AS name", [quote(table), key[0]]);
  return row?.["name"] as string;
}
