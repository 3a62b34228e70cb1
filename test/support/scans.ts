/** Finds statements that a process sends to SQLite and that read a whole table, so that tests of costs do not depend on time. */
import { StatementSync } from "node:sqlite";
import { sql } from "kysely";
import type { Reader } from "../../service/src/store/db.ts";

/** A statement, and the line of its plan that names the table. */
export interface Scan {
  readonly text: string;
  readonly plan: string;
}

/** Runs `act`, and returns the statements executed meanwhile that read all rows of one of the tables. */
export async function findScans(read: Reader, tables: readonly string[], act: () => Promise<unknown>): Promise<Scan[]> {
  const executed = new Set<string>();
  const { all, get, run } = StatementSync.prototype;
  const noting = (method: (...input: never[]) => unknown) =>
    function (this: StatementSync, ...input: unknown[]): unknown {
      executed.add(this.sourceSQL);
      return Reflect.apply(method, this, input);
    };
  Object.assign(StatementSync.prototype, { all: noting(all), get: noting(get), run: noting(run) });
  try {
    await act();
  } finally {
    Object.assign(StatementSync.prototype, { all, get, run });
  }
  const pattern = new RegExp(`^SCAN (?:${tables.join("|")})\\b`);
  const found: Scan[] = [];
  for (const text of executed) {
    if (!/^\s*(?:select|with|insert|update|delete)\b/i.test(text)) continue;
    const { rows } = await sql.raw<{ detail: string }>(`explain query plan ${text}`).execute(read);
    for (const { detail: plan } of rows) if (pattern.test(plan)) found.push({ text, plan });
  }
  return found;
}
