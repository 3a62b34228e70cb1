/**
 * Imports a file in the format of `copy.ts` into an empty database, in one transaction. The file is untrusted input, so each line is
 * checked. It is read synchronously, because a transaction may await only the database; no other client uses an empty one.
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

/** Values in one INSERT: SQLite allows at most 32,766, and more rows at once are not faster. */
const valuesAtOnce = 4000;

/**
 * Imports `file` into `store`, which must be migrated and empty, and resolves to the number of rows. Rejects and stores nothing when
 * the database is not empty or has another schema, or the file is damaged; the message names the line.
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
  /** Returns the next line, parsed and decoded. Throws with the line number if `decode` throws, without valid JSON, and at the end. */
  next<T>(decode: (line: unknown) => T): T;
  /** Returns the SHA-256 of all lines so far, in hex. */
  digest(): string;
  /** False if another line follows, or bytes without a line break. */
  isAtEnd(): boolean;
}

async function fill(tx: Tx, lines: Lines, onProgress: CopyProgress): Promise<number> {
  const session = sessionOf(tx);
  const header = lines.next(decodeHeader);
  await compareSchema(tx, header);
  const tables = await describe(session);
  if (
    toText(tables.map((table) => [table.name, namesOf(table)])) !==
    toText(header.tables.map(({ name, columns }) => [name, columns]))
  ) {
    throw new Error("the tables of the export differ from those of this database");
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
  const isComplete = lines.next((line) => (line as { sha256?: unknown } | null)?.sha256 === digest) && lines.isAtEnd();
  if (!isComplete) throw new Error("the file was changed or damaged after its export");
  await restore();
  for (const { name, rows } of header.tables) {
    if ((await countRows(session, name)) !== rows)
      throw new Error(`table ${name} does not have all its rows after the import`);
  }
  return total;
}

const toText = (tables: readonly (readonly [string, readonly string[]])[]): string => JSON.stringify(tables);

async function compareSchema(tx: Tx, header: Header): Promise<void> {
  const mine = await tx.selectFrom("migration").selectAll().orderBy("number").execute();
  const isSame = (other: Header["schema"][number], index: number): boolean => mine[index]?.checksum === other.checksum;
  if (header.schema.length === mine.length && header.schema.every(isSame)) return;
  throw new Error(
    `the export has schema ${header.schema.length}, this database ${mine.length}: export and import with one version of Brume`,
  );
}

/** Suspends foreign keys, because references of tables can be circular. Resolves to a function that checks and restores them. */
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
    throw new Error("this is not a line of an export of Brume", { cause });
  }
}

function readLines(handle: number): Lines {
  const chunk = Buffer.alloc(1 << 18);
  const hash = createHash("sha256");
  let rest: Buffer[] = [];
  /** Complete lines, the next one last. */
  const ready: Buffer[] = [];
  let number = 0;

  /** Reads one more chunk and splits it into lines. Returns false at the end of the file. */
  const read = (): boolean => {
    const size = readSync(handle, chunk);
    if (size === 0) return false;
    let from = 0;
    for (let end = chunk.indexOf(10); end !== -1 && end < size; end = chunk.indexOf(10, from)) {
      ready.push(Buffer.concat([...rest, chunk.subarray(from, end + 1)]));
      rest = [];
      from = end + 1;
    }
    ready.reverse();
    if (from < size) rest.push(Buffer.from(chunk.subarray(from, size)));
    return true;
  };
  const hasLine = (): boolean => {
    while (ready.length === 0) if (!read()) return false;
    return true;
  };
  return {
    next(decode) {
      number += 1;
      if (!hasLine()) throw new Error(`line ${number}: the file ends too early`);
      const line = ready.pop() as Buffer;
      hash.update(line);
      try {
        return decode(parse(line));
      } catch (error) {
        throw new Error(`line ${number}: ${(error as Error).message}`, { cause: error });
      }
    },
    digest: () => hash.copy().digest("hex"),
    isAtEnd: () => !hasLine() && rest.length === 0,
  };
}
