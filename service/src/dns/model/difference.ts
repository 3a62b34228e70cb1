/** What must be created, updated and deleted so that some records become others. Records are the same when type, owner and value are. */

import type { RecordRow } from "../table.ts";
import { recordKey, type StoredRecord } from "./record.ts";

export interface Wanted {
  readonly record: StoredRecord;
  /** JSON; null: as it is, or none. */
  readonly labels: string | null;
}

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

/** Differs in its time, or in the letter case of a name. */
const isOther = (row: RecordRow, { owner, ttl, value }: StoredRecord): boolean =>
  row.ttl !== ttl || row.owner !== owner || row.value !== value;

/** From `present` to `wanted`; `index` is the place in `wanted`. With `keep` nothing is deleted. Linear in both. */
export function compareRecords(
  present: readonly RecordRow[],
  wanted: readonly Wanted[],
  { keep = false } = {},
): Difference[] {
  const rows = new Map(present.map((row) => [recordKey(row), row]));
  const differences: Difference[] = [];
  wanted.forEach(({ record, labels }, index) => {
    const key = recordKey(record);
    const row = rows.get(key);
    rows.delete(key);
    if (row === undefined) differences.push({ op: "Create", record, labels: labels ?? "{}", index });
    else if (isOther(row, record) || (labels !== null && labels !== row.labels))
      differences.push({ op: "Update", row, record, labels: labels ?? row.labels, index });
  });
  if (!keep) for (const row of rows.values()) differences.push({ op: "Delete", row });
  return differences;
}
