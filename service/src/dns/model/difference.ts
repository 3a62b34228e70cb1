/** Computes the changes that turn one list of records into another. Records are identified by type, owner and value. */

import type { RecordRow } from "../table.ts";
import { recordKey, type StoredRecord } from "./record.ts";

/** A record that must exist afterwards. */
export interface DesiredRecord {
  readonly record: StoredRecord;
  /** JSON; null: the labels stay, and a new record has none. */
  readonly labels: string | null;
}

/** A change; `index` is the position in `desired`. */
export type Difference =
  | { readonly op: "Create"; readonly record: StoredRecord; readonly labels: string; readonly index: number }
  | {
      readonly op: "Update";
      readonly row: RecordRow;
      readonly record: StoredRecord;
      readonly labels: string;
      readonly index: number;
    }
  | { readonly op: "Delete"; readonly row: RecordRow };

/** Returns whether TTL, or letter case of a name, differ. */
const differs = (row: RecordRow, { owner, ttl, value }: StoredRecord): boolean =>
  row.ttl !== ttl || row.owner !== owner || row.value !== value;

/** Records between two yields. */
const recordsTogether = 200;

/** Returns the changes from `present` to `desired`, with yields. With `keep` nothing is deleted. Takes linear time. */
export function* findDifferences(
  present: readonly RecordRow[],
  desired: readonly DesiredRecord[],
  { keep = false } = {},
): Generator<void, Difference[]> {
  const rows = new Map<string, RecordRow>();
  for (const [index, row] of present.entries()) {
    if (index % recordsTogether === 0) yield;
    rows.set(recordKey(row), row);
  }
  const differences: Difference[] = [];
  for (const [index, { record, labels }] of desired.entries()) {
    if (index % recordsTogether === 0) yield;
    const key = recordKey(record);
    const row = rows.get(key);
    rows.delete(key);
    if (row === undefined) differences.push({ op: "Create", record, labels: labels ?? "{}", index });
    else if (differs(row, record) || (labels !== null && labels !== row.labels))
      differences.push({ op: "Update", row, record, labels: labels ?? row.labels, index });
  }
  if (!keep) for (const row of rows.values()) differences.push({ op: "Delete", row });
  return differences;
}
