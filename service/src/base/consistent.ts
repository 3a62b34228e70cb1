/**
 * Reads a row together with the rows that belong to it, as of one moment, without a transaction: several queries see one state if the
 * version of the row is the same before and after them. Inside a transaction that is always so.
 */

export interface ConsistentRead<Row, Rest> {
  /** Finds the row; undefined: it does not exist (any more). */
  readonly find: () => Promise<Row | undefined>;
  /** Returns a value that every change of the row, or of the rows that belong to it, changes. */
  readonly version: (row: Row) => number;
  /** Reads the rows that belong to it. */
  readonly read: (row: Row) => Promise<Rest>;
  /** Maximum number of reads while the row keeps changing; after that the last state is returned as it is. Default: no limit. */
  readonly attempts?: number;
}

/** Reads until the version stays the same during a read. Resolves to undefined if the row does not exist. */
export async function readConsistently<Row, Rest>({
  find,
  version,
  read,
  attempts = Number.POSITIVE_INFINITY,
}: ConsistentRead<Row, Rest>): Promise<{ readonly row: Row; readonly rest: Rest } | undefined> {
  let row = await find();
  for (let attempt = 1; row !== undefined; attempt++) {
    const rest = await read(row);
    const after = await find();
    if (after === undefined) return undefined;
    if (version(after) === version(row) || attempt >= attempts) return { row, rest };
    row = after;
  }
  return undefined;
}
