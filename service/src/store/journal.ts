/**
 * Append-only tables, such as events, the audit and versions of domains. A transaction queues its rows and does not see them. They are
 * written right before the commit, many in one statement, on SQLite together with those of all writers of the commit: this halves
 * their cost. Code that reads such a table inside a write calls `flushJournals` first. On PostgreSQL the rows are written under a lock
 * until the commit. So ids grow in the order of commits on both databases. The lock is short, and always the last one, so it cannot
 * cause a deadlock.
 */

import type { DatabaseKind, Journal } from "./session.ts";

/** A queued row. */
export interface Entry {
  readonly journal: Journal;
  readonly values: readonly unknown[];
}

/** One prepared SQL statement with its values. */
export interface Statement {
  readonly sql: string;
  readonly values: readonly unknown[];
  /** Name of the prepared statement, unique per text. */
  readonly name: string;
}

/** Numbers of rows in one statement. Few sizes, so that few statements stay prepared. */
const sizes: Readonly<Record<DatabaseKind, readonly number[]>> = { sqlite: [16, 4, 1], postgres: [64, 16, 4, 1] };

const mark: Record<DatabaseKind, (n: number) => string> = { sqlite: () => "?", postgres: (n) => `$${n}` };

function textOf({ table, columns, texts }: Journal, kind: DatabaseKind, size: number): string {
  const known = texts.get(`${kind} ${size}`);
  if (known !== undefined) return known;
  const tuples = Array.from({ length: size }, (_, row) =>
    columns.map((_, column) => mark[kind](row * columns.length + column + 1)).join(", "),
  );
  const text = `insert into "${table}" ("${columns.join('", "')}") values (${tuples.join("), (")})`;
  texts.set(`${kind} ${size}`, text);
  return text;
}

/** Returns the INSERT statements of the entries for this kind of database. Each journal keeps the order of its entries. */
export function* statementsOf(entries: readonly Entry[], kind: DatabaseKind): Generator<Statement, void> {
  for (const [journal, rows] of Map.groupBy(entries, (entry) => entry.journal)) {
    for (let at = 0; at < rows.length; ) {
      const size = sizes[kind].find((each) => at + each <= rows.length) ?? 1;
      const values: unknown[] = [];
      for (const row of rows.slice(at, at + size)) values.push(...row.values);
      yield { sql: textOf(journal, kind, size), values, name: `${journal.table}-${size}` };
      at += size;
    }
  }
}
