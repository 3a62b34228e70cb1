/**
 * The audit of changes that were refused (api section 7.6): what was done commits its own row, what was not has no transaction to
 * go with. Such rows are gathered and written together a moment later, so that no refusal waits for the disk; `flush` is
 * for the end of the process.
 */
import type { Log } from "../base/log.ts";
import { StorageError, type Store, type Tx } from "../store/db.ts";
import type { AuditRow } from "./handler.ts";

export type WriteAudit = (tx: Tx, row: AuditRow) => Promise<void>;

export interface Refusals {
  note(row: AuditRow): void;
  /** Resolves when what was noted so far is stored, or is known not to be. */
  flush(): Promise<void>;
}

/** Rows kept while the database cannot store; the oldest go first. */
const mostKept = 10_000;
/** Milliseconds between tries while it cannot. */
const pause = 1000;
/** Rows of one transaction. */
const batch = 500;

export function createRefusals(store: Store, write: WriteAudit, log: Log): Refusals {
  let rows: AuditRow[] = [];
  let lost = 0;
  let writing: Promise<void> | null = null;
  let timer: NodeJS.Timeout | NodeJS.Immediate | null = null;

  const writeAll = async (): Promise<void> => {
    while (rows.length > 0) {
      const some = rows.splice(0, batch);
      try {
        await store.write(async (tx) => {
          for (const row of some) await write(tx, row);
        });
      } catch (error) {
        if (error instanceof StorageError) {
          rows = [...some, ...rows];
          throw error;
        }
        log("error", "refused changes are missing from the audit", { rows: some.length, error });
      }
    }
    if (lost > 0) log("error", "refused changes are missing from the audit: there were too many", { rows: lost });
    lost = 0;
  };

  const flush = (): Promise<void> => {
    writing ??= writeAll().finally(() => {
      writing = null;
    });
    return writing;
  };

  const later = (ms: number): void => {
    timer ??= setTimeout(() => {
      timer = null;
      flush().then(
        () => rows.length > 0 && later(0),
        () => later(pause),
      );
    }, ms).unref();
  };

  return {
    note(row) {
      if (rows.length >= mostKept) {
        rows.shift();
        lost += 1;
      }
      rows.push(row);
      later(0);
    },
    async flush() {
      while (writing !== null || rows.length > 0) await flush();
    },
  };
}
