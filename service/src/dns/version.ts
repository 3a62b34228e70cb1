/** What each serial of a domain changed: kept with the change, shown as history, and walked backwards to restore an earlier state. */
import { formatDate } from "@brume/api/common.ts";
import type { DnsRecord, Version } from "@brume/api/dns.ts";
import { countFitting } from "../http/list.ts";
import type { Reader, Tx } from "../store/db.ts";
import { showRow } from "./model/show.ts";
import * as table from "./table.ts";

/** One record before and after; null: it was not there. */
export interface VersionChange {
  readonly op: "Create" | "Update" | "Delete";
  readonly before: table.RecordRow | null;
  readonly after: table.RecordRow | null;
}

/** What of a record is kept for later: what it said, and what it is known by. */
export type PastRecord = Pick<table.RecordRow, "id" | "type" | "owner" | "ttl" | "value" | "created" | "labels">;

interface PastChange {
  readonly op: VersionChange["op"];
  readonly before: PastRecord | null;
  readonly after: PastRecord | null;
}

const pastOf = (row: table.RecordRow | null): PastRecord | null => {
  if (row === null) return null;
  const { id, type, owner, ttl, value, created, labels } = row;
  return { id, type, owner, ttl, value, created, labels };
};

export function appendVersion(
  tx: Tx,
  domain: Pick<table.DomainRow, "id" | "serial">,
  changes: readonly VersionChange[],
  by: { readonly token: number; readonly request: string; readonly now: number },
): void {
  const past: PastChange[] = changes.map(({ op, before, after }) => ({
    op,
    before: pastOf(before),
    after: pastOf(after),
  }));
  table.putVersion(tx, {
    domain_id: domain.id,
    serial: domain.serial,
    date: by.now,
    token_id: by.token,
    request_id: by.request,
    changes: JSON.stringify(past),
  });
}

/** A version as it is kept. */
export interface PastVersion extends Omit<table.VersionRow, "changes"> {
  readonly changes: readonly PastChange[];
}

/** A version may be of any size, so rows are read at once only as far as they are small: in bytes, and in number. */
const pieceBytes = 1_000_000;
const pieceRows = 100;

/** Below serial `top`, newest first. `sees` hides what a restricted token may not see: for it, that has not happened. */
export async function* readVersions(
  db: Reader,
  domain: number,
  top = Number.MAX_SAFE_INTEGER,
  sees?: (record: PastRecord) => boolean,
): AsyncGenerator<PastVersion, void> {
  for (let before = top; ; ) {
    const sizes = await table.listVersionSizes.all(db, { domain, before, limit: pieceRows });
    if (sizes.length === 0) return;
    const limit = countFitting(sizes, pieceBytes, ({ size }) => size);
    for (const row of await table.listVersions.all(db, { domain, before, limit })) {
      before = row.serial;
      const all = JSON.parse(row.changes) as PastChange[];
      const changes = sees ? all.filter((change) => isSeen(change, sees)) : all;
      if (changes.length > 0 || sees === undefined) yield { ...row, changes };
    }
  }
}

const isSeen = ({ before, after }: PastChange, sees: (record: PastRecord) => boolean): boolean =>
  (before === null || sees(before)) && (after === null || sees(after));

export function showVersion(row: PastVersion, domain: table.DomainRow): Version {
  const show = (record: PastRecord | null): DnsRecord | null =>
    record === null ? null : showRow({ ...record, domain_id: domain.id, serial: 0 }, domain, domain.serial);
  return {
    Serial: row.serial,
    Date: formatDate(row.date),
    TokenID: row.token_id,
    RequestID: row.request_id,
    Changes: row.changes.map(({ op, before, after }) => ({ Op: op, Before: show(before), After: show(after) })),
  };
}

/**
 * How the records that were changed after `serial` stood at it: by id, null for those that were not there yet. Undefined when that
 * serial is not kept (any more).
 */
export async function stateAt(
  db: Reader,
  domain: number,
  serial: number,
): Promise<Map<number, PastRecord | null> | undefined> {
  const state = new Map<number, PastRecord | null>();
  for await (const version of readVersions(db, domain)) {
    if (version.serial === serial) return state;
    if (version.serial < serial) return undefined;
    for (const { before, after } of [...version.changes].reverse()) {
      const id = before?.id ?? after?.id;
      if (id !== undefined) state.set(id, before);
    }
  }
  return undefined;
}
