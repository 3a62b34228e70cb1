/**
 * Fills an empty database from a file in the format of `copy.ts`, in one transaction: wholly or not at all. The file is
 * input from outside, so each line is checked; it is read synchronously, for nothing but the database may be awaited in
 * a transaction and nobody else works on an empty one.
 */
import { createHash } from "node:crypto";
import { closeSync, openSync, readSync } from "node:fs";
import type { CopyProgress, Header } from "./copy.ts";
import { countRows, decodeHeader, decodeRow, namesOf, quote, quoteAll, writeLast } from "./copy.ts";
import type { Store, Tx } from "./db.ts";
import type { Session } from "./session.ts";
import { sessionOf } from "./session.ts";
import type { Table } from "./shape.ts";
import { describe } from "./shape.ts";

/** Values in one INSERT: SQLite takes at most 32766, and more rows at once are not quicker. */
const valuesAtOnce = 4000;

/**
 * Takes `file` into `store`, migrated and empty, and resolves to the number of rows. Rejects, with nothing stored, when the
 * database is not empty, has another schema, or the file is not what an export left; the message says which line.
 */
export function importFile(
  store: Store,
  file: string,
  { onProgress = () => {} }: { onProgress?: CopyProgress } = {},
): Promise<number> {
  return store.write(async (tx) => {
    const handle = openSync(file, "r");
    try {
      return await fill(tx, readLines(handle), onProgress);
    } finally {
      closeSync(handle);
    }
  });
}

interface Lines {
  /** The next line, parsed and decoded. Throws, naming the line, where `decode` does, on what is no JSON and at the end. */
  next<T>(decode: (line: unknown) => T): T;
  /** SHA-256 of all lines so far, in hex. */
  digest(): string;
  isAtEnd(): boolean;
}

async function fill(tx: Tx, lines: Lines, onProgress: CopyProgress): Promise<number> {
  const session = sessionOf(tx);
  const header = lines.next(decodeHeader);
  await compareSchema(tx, header);
  const tables = await describe(session);
  if (
    sketch(tables.map((table) => [table.name, namesOf(table)])) !==
    sketch(header.tables.map(({ name, columns }) => [name, columns]))
  ) {
    throw new Error("the tables of the export are not those of this database");
  }
  for (const { name } of tables) {
    if (session.kind === "postgres") await session.script(`LOCK TABLE ${quote(name)} IN ACCESS EXCLUSIVE MODE`);
    const rows = await countRows(session, name);
    if (rows > 0) throw new Error(`the database is not empty: ${name} has rows. Import into a new one`);
  }
  const restore = await suspendForeignKeys(session);
  let total = 0;
  for (const [index, table] of tables.entries()) {
    const { rows = 0, last = null } = header.tables[index] ?? {};
    await fillTable(session, table, rows, lines, onProgress);
    if (last !== null) await writeLast(session, table, last);
    total += rows;
  }
  const digest = lines.digest();
  const isWhole = lines.next((line) => (line as { sha256?: unknown } | null)?.sha256 === digest) && lines.isAtEnd();
  if (!isWhole) throw new Error("the file has been changed or damaged since its export");
  await restore();
  for (const { name, rows } of header.tables) {
    if ((await countRows(session, name)) !== rows) throw new Error(`${name} did not take all its rows`);
  }
  return total;
}

const sketch = (tables: readonly (readonly [string, readonly string[]])[]): string => JSON.stringify(tables);

async function compareSchema(tx: Tx, header: Header): Promise<void> {
  const mine = await tx.selectFrom("migration").selectAll().orderBy("number").execute();
  const isSame = (other: Header["schema"][number], index: number): boolean => mine[index]?.checksum === other.checksum;
  if (header.schema.length === mine.length && header.schema.every(isSame)) return;
  throw new Error(
    `the export has schema ${header.schema.length}, this database ${mine.length}: export and import with one version of Brume`,
  );
}

/** Tables may refer to each other in circles, so references are checked when all rows are there; resolves to what does that. */
async function suspendForeignKeys(session: Session): Promise<() => Promise<void>> {
  if (session.kind === "sqlite") {
    await session.script("PRAGMA defer_foreign_keys = ON");
    return async () => {};
  }
  const constraints = await session.all(
    `SELECT format('ALTER TABLE %s DROP CONSTRAINT %I', conrelid::regclass, conname) AS drop,
       format('ALTER TABLE %s ADD CONSTRAINT %I %s', conrelid::regclass, conname, pg_get_constraintdef(oid)) AS add
     FROM pg_constraint WHERE contype = 'f' AND connamespace = current_schema()::regnamespace`,
    [],
  );
  for (const { drop } of constraints) await session.script(drop as string);
  return async () => {
    for (const { add } of constraints) await session.script(add as string);
  };
}

async function fillTable(
  session: Session,
  table: Table,
  rows: number,
  lines: Lines,
  onProgress: CopyProgress,
): Promise<void> {
  const columns = namesOf(table);
  const most = Math.max(1, Math.floor(valuesAtOnce / columns.length));
  for (let done = 0; done < rows; ) {
    const count = Math.min(most, rows - done);
    const values = Array.from({ length: count }, () => lines.next((line) => decodeRow(table, line))).flat();
    const marks = Array.from({ length: count }, (_, row) => {
      const first = row * columns.length + 1;
      return `(${columns.map((_name, index) => (session.kind === "sqlite" ? "?" : `$${first + index}`)).join()})`;
    });
    const text = `INSERT INTO ${quote(table.name)} (${quoteAll(columns)}) VALUES ${marks.join()}`;
    await session.run(text, values);
    done += count;
    onProgress(table.name, done, rows);
  }
}

function parse(line: Buffer): unknown {
  try {
    return JSON.parse(String(line));
  } catch (cause) {
    throw new Error("this is no line of an export of Brume", { cause });
  }
}

function readLines(handle: number): Lines {
  const chunk = Buffer.alloc(1 << 18);
  const hash = createHash("sha256");
  let held: Buffer[] = [];
  /** Complete lines, the next one last. */
  const ready: Buffer[] = [];
  let number = 0;

  /** Cuts one more chunk into lines; false at the end of the file. */
  const read = (): boolean => {
    const size = readSync(handle, chunk);
    if (size === 0) return false;
    let from = 0;
    for (let end = chunk.indexOf(10); end !== -1 && end < size; end = chunk.indexOf(10, from)) {
      ready.push(Buffer.concat([...held, chunk.subarray(from, end + 1)]));
      held = [];
      from = end + 1;
    }
    ready.reverse();
    if (from < size) held.push(Buffer.from(chunk.subarray(from, size)));
    return true;
  };
  const isAtEnd = (): boolean => {
    while (ready.length === 0) if (!read()) return true;
    return false;
  };
  return {
    next(decode) {
      number += 1;
      if (isAtEnd()) throw new Error(`line ${number}: the file ends too early`);
      const line = ready.pop() as Buffer;
      hash.update(line);
      try {
        return decode(parse(line));
      } catch (error) {
        throw new Error(`line ${number}: ${(error as Error).message}`, { cause: error });
      }
    },
    digest: () => hash.copy().digest("hex"),
    isAtEnd,
  };
}
