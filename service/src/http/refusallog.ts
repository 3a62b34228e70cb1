/**
 * The audit of requests that were refused (docs/spec.md#audit): what was done commits its own row, what was not has no transaction to go
 * with. The first refusal of a kind is on the disk before its answer leaves, and so are the next few, so that killing the service hides
 * nothing. Those that go on are counted in memory and added to the same row once a second: a client that loops costs neither
 * commits nor rows.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Log } from "../base/log.ts";
import { StorageError, type Store, type Tx } from "../store/db.ts";
import type { AuditRow } from "./handler.ts";

/** The table of the audit. */
export interface AuditTable {
  /** Hands the row over; it is written with the commit. */
  write(tx: Tx, row: AuditRow): Promise<void>;
  /** Writes the row at once; resolves to its id. */
  insert(tx: Tx, row: AuditRow): Promise<number>;
  /** The row stands for so many requests more, the last of which came at `date`. */
  add(tx: Tx, id: number, more: number, date: number): Promise<void>;
}

export interface RefusalLog {
  /** Resolves when the answer may leave. Never rejects. */
  note(row: AuditRow): Promise<void>;
  /** Resolves when what was noted so far is stored, or is known not to be. */
  flush(): Promise<void>;
}

/** One row of the table, and what has been noted for it since it was last written. */
interface Entry {
  readonly row: AuditRow;
  id: number | null;
  more: number;
  last: number;
  /** Repeats that waited for the disk. */
  awaited: number;
}

const minute = 60_000;
/** A row takes repeats until there were none for so many milliseconds, or it is so old. */
const longestGap = 10 * minute;
const longestRow = 60 * minute;
/** Repeats of a kind that are on the disk before their answer leaves; a minute without any begins the count anew. */
const mostAwaited = 20;
/** New rows a minute for one token or one address, and for all unknown tokens together. Beyond it rows are coarser. */
const mostRows = { source: 30, unknown: 300 };
/** Kinds known at once, and rows kept while the database cannot store. */
const mostEntries = 5000;
const mostDirty = 10_000;
/** Milliseconds between writes of counts, and between tries while the database cannot store. */
const pause = 1000;
/** Milliseconds that an answer waits for a database that does not answer. */
const patience = 1000;
/** Rows of one transaction. */
const batch = 500;

/** Who asks, as far as that can be told: a token, or the network of an address. */
const sourceOf = ({ caller, address }: AuditRow): string =>
  caller === null ? `? ${networkOf(address)}` : `${caller.projectId} ${caller.tokenId}`;

/** IPv6 comes in blocks of /64. */
const networkOf = (address: string): string =>
  address.includes("::") || !address.includes(":") ? address : address.split(":").slice(0, 4).join(":");

export function createRefusalLog(store: Store, audit: AuditTable, log: Log): RefusalLog {
  const entries = new Map<string, Entry>();
  const dirty = new Set<Entry>();
  const sources = new Map<string, number>();
  let windowStart = 0;
  let lost = 0;
  let writing: Promise<void> | null = null;
  let next: Promise<void> | null = null;
  let timer: NodeJS.Timeout | null = null;

  /** Whether the source may have another row of its own in this minute. */
  function hasRoom(source: string, most: number, now: number): boolean {
    if (now - windowStart >= minute || now < windowStart) {
      windowStart = now;
      sources.clear();
    }
    const used = sources.get(source) ?? 0;
    if (used >= most) return false;
    sources.set(source, used + 1);
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
    // The one that was begun first; what is noted for it is written all the same.
    if (entries.size >= mostEntries) entries.delete(entries.keys().next().value as string);
    entries.set(key, entry);
    return entry;
  }

  /** The entry that the row counts for; `isNew`: it is the first of it. */
  function place(row: AuditRow): { entry: Entry; isNew: boolean } {
    const source = sourceOf(row);
    const kind = `${row.operation} ${row.status}`;
    const exact = `${source} ${row.address} ${kind} ${row.resource} ${row.resourceId}`;
    const now = row.date;
    const known = findEntry(exact, now);
    if (known !== undefined) return { entry: known, isNew: false };
    const isUnknown = row.caller === null;
    if (isUnknown && !hasRoom("?", mostRows.unknown, now)) return coarse(`? ${kind}`, { ...row, address: "" });
    if (hasRoom(source, mostRows.source, now)) return { entry: open(exact, row), isNew: true };
    return coarse(`${source} ${kind}`, row);
  }

  function coarse(key: string, row: AuditRow): { entry: Entry; isNew: boolean } {
    const entry = findEntry(key, row.date);
    if (entry !== undefined) return { entry, isNew: false };
    return { entry: open(key, { ...row, resource: null, resourceId: null }), isNew: true };
  }

  async function writeSome(): Promise<void> {
    const some = [...dirty].slice(0, batch).map((entry) => ({ entry, more: entry.more, last: entry.last }));
    if (some.length === 0) return;
    let ids: number[];
    try {
      ids = await store.write(async (tx) => {
        const written: number[] = [];
        for (const { entry, more, last } of some) {
          const id = entry.id ?? (await audit.insert(tx, entry.row));
          if (more > 0) await audit.add(tx, id, more, last);
          written.push(id);
        }
        return written;
      });
    } catch (error) {
      if (error instanceof StorageError) throw error;
      log("error", "Refused requests are missing from the audit.", { rows: some.length, error });
      for (const { entry } of some) dirty.delete(entry);
      return;
    }
    for (const [index, { entry, more }] of some.entries()) {
      entry.id = ids[index] ?? null;
      entry.more -= more;
      if (entry.more === 0) dirty.delete(entry);
    }
  }

  async function writeAll(): Promise<void> {
    // What is counted meanwhile has time until the next write.
    for (let left = dirty.size; left > 0; left -= batch) await writeSome();
    if (lost > 0) log("error", "Refused requests are missing from the audit: there were too many.", { rows: lost });
    lost = 0;
  }

  /** Resolves when everything noted before this call is stored. */
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
    // What could not be stored stays, and is tried again.
    await flush().catch(() => {});
    if (dirty.size > 0) later();
  }

  function later(): void {
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
      later();
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
