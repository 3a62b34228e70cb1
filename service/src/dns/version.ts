/** What each serial of a domain changed: kept with the change, shown as history, and walked backwards to restore an earlier state. */

import { formatDate } from "@brume/api/common.ts";
import type { DnsRecord, Version } from "@brume/api/dns.ts";
import type { Reader, Tx } from "../store/db.ts";
import type { DomainName } from "./name.ts";
import { showRow } from "./show.ts";
import * as table from "./table.ts";

/** One record before and after; null: it was not there. */
export interface Change {
  readonly op: "Create" | "Update" | "Delete";
  readonly before: table.RecordRow | null;
  readonly after: table.RecordRow | null;
}

export async function keepVersion(
  tx: Tx,
  domain: Pick<table.DomainRow, "id" | "serial">,
  changes: readonly Change[],
  by: { readonly token: number; readonly request: string; readonly now: number },
): Promise<void> {
  await table.insertVersion.run(tx, {
    domain_id: domain.id,
    serial: domain.serial,
    date: by.now,
    token_id: by.token,
    request_id: by.request,
    changes: JSON.stringify(changes),
  });
}

export const readChanges = (row: table.VersionRow): Change[] => JSON.parse(row.changes) as Change[];

/** `sees` hides from a restricted token what it may not see. */
export function showVersion(
  row: table.VersionRow,
  domain: DomainName,
  sees: (record: table.RecordRow) => boolean,
): Version {
  const show = (record: table.RecordRow | null): DnsRecord | null =>
    record === null ? null : showRow(record, domain, Number.MAX_SAFE_INTEGER);
  return {
    Serial: row.serial,
    Date: formatDate(row.date),
    TokenID: row.token_id,
    RequestID: row.request_id,
    Changes: readChanges(row)
      .filter(({ before, after }) => [before, after].every((record) => record === null || sees(record)))
      .map(({ op, before, after }) => ({ Op: op, Before: show(before), After: show(after) })),
  };
}

/**
 * How the records that were changed after `serial` stood at it: by id, null for those that were not there yet. Undefined when that
 * serial is not kept (any more). Reads the versions in pages, newest first.
 */
export async function stateAt(
  db: Reader,
  domain: number,
  serial: number,
): Promise<Map<number, table.RecordRow | null> | undefined> {
  const state = new Map<number, table.RecordRow | null>();
  let before = Number.MAX_SAFE_INTEGER;
  for (;;) {
    const page = await table.listVersions.all(db, { domain, before, limit: 100 });
    for (const version of page) {
      if (version.serial === serial) return state;
      if (version.serial < serial) return undefined;
      for (const { before: old, after } of readChanges(version).reverse()) {
        const id = old?.id ?? after?.id;
        if (id !== undefined) state.set(id, old);
      }
      before = version.serial;
    }
    if (page.length < 100) return undefined;
  }
}
