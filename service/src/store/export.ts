/** Exports a snapshot of a database to a file in the format of `copy.ts`, while services use the database. */
import { createHash } from "node:crypto";
import { open } from "node:fs/promises";
import type { CopyProgress, Header, TableHeader } from "./copy.ts";
import { countRows, encodeRow, namesOf, quote, quoteAll, readLast } from "./copy.ts";
import type { Snapshot } from "./db.ts";
import type { PlaceOptions } from "./files.ts";
import { placeFile } from "./files.ts";
import type { Row, Session } from "./session.ts";
import { sessionOf } from "./session.ts";
import type { Table } from "./shape.ts";
import { describe } from "./shape.ts";

/** Rows read and written at once; so many of the largest rows fit in memory. */
const page = 500;

/**
 * Writes all rows of `snapshot` to `target`, mode 600, and resolves to their number. Rejects and leaves `target` unchanged when it
 * exists without `replace`.
 */
export function exportFile(
  snapshot: Snapshot,
  target: string,
  { onProgress = () => {}, ...placing }: PlaceOptions & { onProgress?: CopyProgress } = {},
): Promise<number> {
  const session = sessionOf(snapshot.read);
  return placeFile(target, placing, async (draft) => {
    const file = await open(draft, "w");
    const hash = createHash("sha256");
    const write = async (lines: readonly unknown[]): Promise<void> => {
      const text = lines.map((line) => `${JSON.stringify(line)}\n`).join("");
      hash.update(text);
      await file.writeFile(text);
    };
    try {
      const tables = await describe(session);
      const header = await createHeader(snapshot, session, tables);
      await write([header]);
      let rows = 0;
      for (const [index, table] of tables.entries()) {
        let done = 0;
        for await (const found of readPages(session, table)) {
          await write(found.map((row) => encodeRow(table, row)));
          done += found.length;
          onProgress(table.name, done, header.tables[index]?.rows ?? done);
        }
        rows += done;
      }
      await file.writeFile(`${JSON.stringify({ sha256: hash.digest("hex") })}\n`);
      return rows;
    } finally {
      await file.close();
    }
  });
}

async function createHeader({ read }: Snapshot, session: Session, described: readonly Table[]): Promise<Header> {
  const tables: TableHeader[] = [];
  for (const table of described) {
    const rows = await countRows(session, table.name);
    const last = table.counted ? await readLast(session, table) : null;
    tables.push({ name: table.name, columns: namesOf(table), rows, last });
  }
  const schema = await read.selectFrom("migration").selectAll().orderBy("number").execute();
  return { format: "brume export", version: 1, schema, tables };
}

async function* readPages(session: Session, table: Table): AsyncGenerator<Row[]> {
  const { name, key } = table;
  const order = quoteAll(key);
  const marks = key.map((_, index) => (session.kind === "sqlite" ? "?" : `$${index + 1}`)).join();
  const read = (where: string, values: readonly unknown[]): Promise<Row[]> =>
    session.all(
      `SELECT ${quoteAll(namesOf(table))} FROM ${quote(name)} ${where} ORDER BY ${order} LIMIT ${page}`,
      values,
    );
  for (let rows = await read("", []); rows.length > 0; ) {
    yield rows;
    const last = rows.at(-1);
    const from = key.map((column) => last?.[column]);
    rows = rows.length < page ? [] : await read(`WHERE (${order}) > (${marks})`, from);
  }
}
