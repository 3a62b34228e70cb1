/**
 * The audit of rejected requests (docs/spec.md#audit). They have no transaction of their own, so this module writes their rows. The first
 * rejections of a kind are stored before their responses are sent, so a kill of the service hides nothing. Further ones are counted in
 * memory and added to the same row once a second, so a client that loops costs neither commits nor rows.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { networkOf } from "../base/address.ts";
import type { Log } from "../base/log.ts";
import { StorageError, type Store, type Tx } from "../store/db.ts";
import type { AuditRow } from "./handler.ts";

/** The part of the audit table that this module needs. */
export interface AuditTable {
  /** Adds the row to the transaction; it may be written only at the commit. */
  write(tx: Tx, row: AuditRow): Promise<void>;
  /** Writes the row at once. Resolves to its id. */
  insert(tx: Tx, row: AuditRow): Promise<number>;
  /** Adds `more` requests to the count of a row. The last of them arrived at `date` (ms since 1970). */
  add(tx: Tx, id: number, more: number, date: number): Promise<void>;
}

/** The audit of rejected requests. */
export interface RefusalLog {
  /** Records a rejected request. Resolves when its response may be sent. Never rejects. */
  note(row: AuditRow): Promise<void>;
  /** Resolves when all requests recorded so far are stored. Rejects if the database cannot store them. */
  flush(): Promise<void>;
}

/** One row of the table, with the requests that were counted for it since it was last written. */
interface Entry {
  readonly row: AuditRow;
  id: number | null;
  more: number;
  last: number;
  /** Requests whose response waited for the disk. */
  awaited: number;
}

const minute = 60_000;
/** Maximum ms between two requests of one row, and maximum age of a row in ms. */
const longestGap = 10 * minute;
const longestRow = 60 * minute;
/** Requests of a row that are stored before their response is sent. A minute without requests resets the count. */
const mostAwaited = 20;
/** New rows per minute for one token or network of clients, and for all unknown tokens together. Beyond that, rows contain less detail. */
const mostRows = { source: 30, unknown: 300 };
/** Entries in memory, and rows to write while the database is not available. */
const mostEntries = 5000;
const mostDirty = 10_000;
/** Milliseconds between writes of counts, and between attempts while the database is not available. */
const pause = 1000;
/** Milliseconds that a response waits for the database. */
const patience = 1000;
/** Rows of one transaction. */
const batch = 500;

/** Returns the source of a request: its token, or the network of its address. */
const sourceOf = ({ caller, address }: AuditRow): string =>
  caller === null ? `? ${networkOf(address)}` : `${caller.projectId} ${caller.tokenId}`;

/** Creates the audit of rejected requests. */
export function createRefusalLog(store: Store, audit: AuditTable, log: Log): RefusalLog {
  const entries = new Map<string, Entry>();
  const dirty = new Set<Entry>();
  const sources = new Map<string, number>();
  let windowStart = 0;
  let lost = 0;
  let writing: Promise<void> | null = null;
  let next: Promise<void> | null = null;
  let timer: NodeJS.Timeout | null = null;

  /** Takes one new row of each source for this minute, up to its limit. Returns false, and takes none, if one has none left. */
  function takeRow(limits: readonly (readonly [source: string, most: number])[], now: number): boolean {
    if (now - windowStart >= minute || now < windowStart) {
      windowStart = now;
      sources.clear();
    }
    const used = (source: string): number => sources.get(source) ?? 0;
    if (limits.some(([source, most]) => used(source) >= most)) return false;
    for (const [source] of limits) sources.set(source, used(source) + 1);
    return true;
  }

  const findEntry = (key: string, now: number): Entry | undefined => {
    const entry = entries.get(key);
    return entry !== undefined && now - entry.last < longestGap && now - entry.row.date < longestRow
      ? entry
      : undefined;
  };

  function open(key: string, row: AuditRow): Entry {
    const entry: Entry = { row, id: null, more: 0, last: row.date, awaited: 0 };
    entries.delete(key);
    // Removes the oldest entry; its counts are still written.
    if (entries.size >= mostEntries) entries.delete(entries.keys().next().value as string);
    entries.set(key, entry);
    return entry;
  }

  /** Returns the entry that counts the request. `isNew`: it is the first request of the entry. */
  function place(row: AuditRow): { entry: Entry; isNew: boolean } {
    const source = sourceOf(row);
    const kind = `${row.operation} ${row.status}`;
    const exact = `${source} ${row.address} ${kind} ${row.resource} ${row.resourceId}`;
    const now = row.date;
    const known = findEntry(exact, now);
    if (known !== undefined) return { entry: known, isNew: false };
    const own = [source, mostRows.source] as const;
    const limits = row.caller === null ? ([own, ["?", mostRows.unknown]] as const) : [own];
    if (takeRow(limits, now)) return { entry: open(exact, row), isNew: true };
    return row.caller === null ? coarse(`? ${kind}`, { ...row, address: "" }) : coarse(`${source} ${kind}`, row);
  }

  function coarse(key: string, row: AuditRow): { entry: Entry; isNew: boolean } {
    const entry = findEntry(key, row.date);
    if (entry !== undefined) return { entry, isNew: false };
    return { entry: open(key, { ...row, resource: null, resourceId: null }), isNew: true };
  }

  async function writeBatch(part: readonly Entry[]): Promise<void> {
    const entriesToWrite = part.map((entry) => ({ entry, more: entry.more, last: entry.last }));
    let ids: number[];
    try {
      ids = await store.write(async (tx) => {
        const written: number[] = [];
        for (const { entry, more, last } of entriesToWrite) {
          const id = entry.id ?? (await audit.insert(tx, entry.row));
          if (more > 0) await audit.add(tx, id, more, last);
          written.push(id);
        }
        return written;
      });
    } catch (error) {
      if (error instanceof StorageError) throw error;
      log("error", "Rejected requests are missing in the audit.", { rows: entriesToWrite.length, error });
      for (const { entry } of entriesToWrite) dirty.delete(entry);
      return;
    }
    for (const [index, { entry, more }] of entriesToWrite.entries()) {
      entry.id = ids[index] ?? null;
      entry.more -= more;
      if (entry.more === 0) dirty.delete(entry);
    }
  }

  async function writeAll(): Promise<void> {
    // Requests that are counted meanwhile are written next time.
    const all = [...dirty];
    for (let at = 0; at < all.length; at += batch) await writeBatch(all.slice(at, at + batch));
    if (lost > 0) log("error", "Rejected requests are missing in the audit: there were too many.", { rows: lost });
    lost = 0;
  }

  /** Resolves when all requests recorded before this call are stored. */
  function flush(): Promise<void> {
    if (writing === null) {
      writing = writeAll().finally(() => {
        writing = null;
      });
      return writing;
    }
    next ??= writing
      .catch(() => {})
      .then(() => {
        next = null;
        return flush();
      });
    return next;
  }

  async function writeLater(): Promise<void> {
    timer = null;
    // Rows that could not be stored stay and are written later.
    await flush().catch(() => {});
    if (dirty.size > 0) schedule();
  }

  function schedule(): void {
    timer ??= setTimeout(() => void writeLater(), pause).unref();
  }

  return {
    async note(row) {
      const { entry, isNew } = place(row);
      if (!isNew) {
        if (row.date - entry.last >= minute) entry.awaited = 0;
        entry.more += 1;
        entry.last = row.date;
      }
      if (!dirty.has(entry) && dirty.size >= mostDirty) {
        lost += 1;
        return;
      }
      dirty.add(entry);
      schedule();
      if (!isNew && entry.awaited >= mostAwaited) return;
      entry.awaited += 1;
      const stored = flush().catch(() => {});
      const waiting = new AbortController();
      await Promise.race([stored, sleep(patience, undefined, { signal: waiting.signal, ref: false }).catch(() => {})]);
      waiting.abort();
    },
    async flush() {
      while (dirty.size > 0) await flush();
    },
  };
}
