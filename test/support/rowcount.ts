/** Counts the rows that a process reads from SQLite, so that tests of costs do not depend on time. */
import { StatementSync } from "node:sqlite";

/** Runs `act`, and returns the number of rows of the queries whose text contains `text`. */
export async function countRows(text: string, act: () => Promise<unknown>): Promise<number> {
  let count = 0;
  const { all } = StatementSync.prototype;
  const counting = function (this: StatementSync, ...input: unknown[]): unknown[] {
    const rows = Reflect.apply(all, this, input) as unknown[];
    if (this.sourceSQL.includes(text)) count += rows.length;
    return rows;
  };
  StatementSync.prototype.all = counting as typeof all;
  try {
    await act();
  } finally {
    StatementSync.prototype.all = all;
  }
  return count;
}
