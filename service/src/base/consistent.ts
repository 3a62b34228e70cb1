/**
 * Reads a row together with the rows that belong to it, as of one moment, without a transaction: several queries see one state if the
 * version of the row is the same before and after them. Inside a transaction that is always so.
 */

/** What `readConsistently` reads, and how it detects a change. */
export interface ConsistentRead<Row, Rest> {
  /** The row, if it was found already. */
  readonly row?: Row;
  /** Finds the row; undefined: it does not exist (any more). */
  readonly find: () => Promise<Row | undefined>;
  /** Returns a value that every change of the row, or of the rows that belong to it, changes. */
  readonly version: (row: Row) => number;
  /** Reads only the version, if that costs less than `find`; undefined: the row does not exist (any more). */
  readonly current?: () => Promise<number | undefined>;
  /** Reads the rows that belong to it. */
  readonly read: (row: Row) => Promise<Rest>;
  /** Maximum number of reads while the row keeps changing; after that the last state is returned as it is. Default: no limit. */
  readonly attempts?: number;
}

/** Reads until the version stays the same during a read. Resolves to undefined if the row does not exist. */
export async function readConsistently<Row, Rest>({
  row: first,
  find,
  version,
  current,
  read,
  attempts = Number.POSITIVE_INFINITY,
}: ConsistentRead<Row, Rest>): Promise<{ readonly row: Row; readonly rest: Rest } | undefined> {
  let row = first ?? (await find());
  for (let attempt = 1; row !== undefined; attempt++) {
    const rest = await read(row);
    const next = current === undefined ? await find() : undefined;
    const now = current === undefined ? next && version(next) : await current();
    if (now === undefined) return undefined;
    if (now === version(row) || attempt >= attempts) return { row, rest };
    row = next ?? (await find());
  }
  return undefined;
}
