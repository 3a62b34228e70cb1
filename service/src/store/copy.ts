/**
 * All rows of a database as one file that any other of the same schema can take in, SQLite or PostgreSQL: for moving from
 * one to the other, and for looking into. Lines of JSON: a header (schema, tables, how many rows of each), then each
 * table's rows in its order as arrays, bytes in base64, then the SHA-256 of all lines before. This room is the format;
 * `export.ts` writes it and `import.ts` reads it, and neither ever holds a whole table in memory.
 */
import type { Row, Session } from "./session.ts";
import type { Column, Table } from "./shape.ts";

/** What is told while it goes on: `rows` of `total` of one table. */
export type CopyProgress = (table: string, rows: number, total: number) => void;

export interface TableHeader {
  readonly name: string;
  readonly columns: readonly string[];
  readonly rows: number;
  /** The highest id ever given, so that none is given again; null where the database does not count. */
  readonly last: number | null;
}

export interface Header {
  readonly format: "brume export";
  readonly version: 1;
  /** The migrations of the database; a copy goes only where they are the same. */
  readonly schema: readonly { readonly number: number; readonly name: string; readonly checksum: string }[];
  readonly tables: readonly TableHeader[];
}

export const quote = (name: string): string => `"${name}"`;
export const quoteAll = (names: readonly string[]): string => names.map(quote).join();
export const namesOf = ({ columns }: Table): string[] => columns.map((column) => column.name);

/** A row as its line. */
export const encodeRow = ({ columns }: Table, row: Row): unknown[] =>
  columns.map(({ name, type }) => {
    const value = row[name];
    return type === "bytes" && value !== null ? Buffer.from(value as Uint8Array).toString("base64") : value;
  });

/** A line as the row's values in the order of the columns. Throws on anything that `encodeRow` does not make. */
export function decodeRow({ name, columns }: Table, line: unknown): unknown[] {
  if (!Array.isArray(line) || line.length !== columns.length) throw new Error(`this is no row of ${name}`);
  return columns.map((column, index) => decode(name, column, line[index]));
}

function decode(table: string, { name, type, nullable }: Column, value: unknown): unknown {
  if (value === null && nullable) return null;
  if (type === "int" && Number.isSafeInteger(value)) return value;
  if (type === "text" && typeof value === "string") return value;
  if (type === "bytes" && typeof value === "string") return Buffer.from(value, "base64");
  throw new Error(`${table}.${name} cannot be ${JSON.stringify(value)?.slice(0, 40)}`);
}

/** The header from its line. Throws on anything that is no header of this version. */
export function decodeHeader(line: unknown): Header {
  const { format, version, schema, tables } = (line ?? {}) as Partial<Record<keyof Header, unknown>>;
  if (format !== "brume export") throw new Error("this is no export of Brume");
  if (version !== 1) throw new Error(`this export has version ${String(version)}, this program reads version 1`);
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

export async function countRows(session: Session, table: string): Promise<number> {
  return (await session.first(`SELECT count(*) AS rows FROM ${quote(table)}`, []))?.["rows"] as number;
}

/** The highest id that a counted table ever gave, 0 if none; not the highest that is there. */
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

/** Makes the next id of a counted table `last + 1`. */
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
