/** Requested changes of records. */
import type { RecordRow } from "../table.ts";
import type { StoredRecord } from "./record.ts";

/** Position of a change in the request, for the pointers of errors. */
interface RequestPosition {
  /** The element of a changeset, `/Changes/17`, or "". */
  readonly at: string;
  /** The field that an error names, relative to `at`. */
  readonly pointer: string;
}

/** A requested change of one record. `labels` is JSON. */
export type RecordChange = RequestPosition &
  (
    | { readonly op: "Create"; readonly record: StoredRecord; readonly labels: string }
    | { readonly op: "Update"; readonly row: RecordRow; readonly record: StoredRecord; readonly labels: string }
    | { readonly op: "Delete"; readonly row: RecordRow }
  );
