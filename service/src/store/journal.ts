/**
 * Tables to which rows are only ever added, such as events, the audit and versions of domains. A transaction hands its rows over and does
 * not see them: they are written as its last act, many in one statement, on SQLite together with those of all who share its commit,
 * which halves what they cost. Who reads such a table inside a write calls `flushJournals` first. On PostgreSQL it happens under a lock that lasts until the commit; so on both databases ids grow
 * in the order of commits, the lock is short, and, always taken last, can make no two transactions wait for each other.
 */

import type { Journal, Kind } from "./session.ts";

/** A row that was handed over. */
export interface Entry {
  readonly journal: Journal;
  readonly values: readonly unknown[];
}

export interface Statement {
  readonly sql: string;
  readonly values: readonly unknown[];
  /** Each text has its own. */
  readonly name: string;
}

/** Rows in one statement. Few sizes, so that few texts are kept prepared. */
const sizes = [16, 4, 1];

const mark: Record<Kind, (n: number) => string> = { sqlite: () => "?", postgres: (n) => `$${n}` };

function textOf({ table, columns, texts }: Journal, kind: Kind, size: number): string {
  const known = texts.get(`${kind} ${size}`);
  if (known !== undefined) return known;
  const tuples = Array.from({ length: size }, (_, row) =>
    columns.map((_, column) => mark[kind](row * columns.length + column + 1)).join(", "),
  );
  const text = `insert into "${table}" ("${columns.join('", "')}") values (${tuples.join("), (")})`;
  texts.set(`${kind} ${size}`, text);
  return text;
}

/** What writes the entries on this kind of database, those of each journal in the order in which they were handed over. */
export function* statementsOf(entries: readonly Entry[], kind: Kind): Generator<Statement, void> {
  for (const [journal, rows] of Map.groupBy(entries, (entry) => entry.journal)) {
    for (let at = 0; at < rows.length; ) {
      const size = sizes.find((each) => at + each <= rows.length) ?? 1;
      const values: unknown[] = [];
      for (const row of rows.slice(at, at + size)) values.push(...row.values);
      yield { sql: textOf(journal, kind, size), values, name: `${journal.table}-${size}` };
      at += size;
    }
  }
}
