/**
 * SQLite through `node:sqlite`, which only this module and `checkpoint.ts` import, because its interface may still change. All calls are
 * synchronous and without transactions: `group.ts` decides which writes are committed together.
 *
 * The write-ahead log is synced after each commit in another thread (`walcommit.ts`), and the read-only connection sees committed state
 * without waiting. Rows are fetched as arrays and converted here, which is faster than the objects of `node:sqlite` and returns plain objects.
 */

import { closeSync, existsSync, openSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import type { SQLInputValue, StatementSync } from "node:sqlite";
import { DatabaseSync } from "node:sqlite";
import { pathToFileURL } from "node:url";
import type { SelectModifierNode } from "kysely";
import { SqliteAdapter, SqliteIntrospector, SqliteQueryCompiler } from "kysely";
import type { Log } from "../base/log.ts";
import type { WriteConnection } from "./connection.ts";
import type { Snapshot, Store } from "./db.ts";
import { StorageError } from "./db.ts";
import { createWriter } from "./group.ts";
import { createHealth, type Health } from "./health.ts";
import type { Row, Session } from "./session.ts";
import { createQueryFactory, readOnly, sessionOf } from "./session.ts";
import { checkpointLimit, createWalCommits, type Sync } from "./walcommit.ts";

/** A synchronous connection. */
export interface SqliteConnection extends WriteConnection {
  begin(): void;
  commit(): void;
  all(sql: string, values: readonly unknown[]): Row[];
  first(sql: string, values: readonly unknown[]): Row | undefined;
  run(sql: string, values: readonly unknown[]): number;
  insert(sql: string, values: readonly unknown[]): number;
  execute(sql: string, values: readonly unknown[]): { rows: Row[]; changes: number };
  script(sql: string): void;
  close(): void;
}

interface Statement {
  readonly run: StatementSync;
  /** Column names; none when the text returns no rows. */
  readonly columns: readonly string[];
}

/** File name of the database in the data folder. */
export const databaseName = "brume.db";

/** Prepared statements kept per connection: more than the hot queries; the limit matters for lists of varying length. */
const keptStatements = 500;

/** Primary result codes of errors of the storage, not of the statement: https://www.sqlite.org/rescode.html */
const storageCodes = new Set([3, 5, 6, 7, 8, 10, 11, 13, 14, 15, 26]);
const readOnlyCode = 8;
/** Free pages that the file keeps for new rows. */
const keptPages = 512;
/** Most pages that one vacuum returns to the file system. */
const slicePages = 512;
/** Milliseconds after the start before the search for damage, which reads the whole file. */
const checkDelay = 3_000;
/** Milliseconds between two vacuums. */
const vacuumPeriod = 1_000;

const busyCode = 5;
const corruptCode = 11;
const fullCode = 13;
const notDatabaseCode = 26;

const primaryCode = (error: unknown): number | undefined => {
  const code = (error as { errcode?: unknown } | null)?.errcode;
  return typeof code === "number" ? code & 0xff : undefined;
};

interface ConnectOptions {
  readonly readOnly: boolean;
  /** Keeps the index of the WAL in memory, because a full disk has no space for its file. Excludes other processes. */
  readonly inMemory?: boolean;
}

/** Opens one connection. Creates a missing file unless `readOnly`. Throws `StorageError` if the storage fails. */
export function connect(file: string, { readOnly, inMemory = false }: ConnectOptions): SqliteConnection {
  const explain = (error: unknown): unknown => {
    const code = primaryCode(error);
    if (code === undefined || !storageCodes.has(code) || (readOnly && code === readOnlyCode)) return error;
    const isDamage = code === corruptCode || code === notDatabaseCode;
    const isFull = code === fullCode;
    const what = isDamage ? `${file} is damaged` : isFull ? `the disk of ${file} is full` : file;
    return new StorageError(`SQLite: ${what} (${(error as Error).message})`, { cause: error, isDamage, isFull });
  };
  const guarded = <T>(act: () => T): T => {
    try {
      return act();
    } catch (error) {
      throw explain(error);
    }
  };

  const address = inMemory ? new URL(`${pathToFileURL(file).href}?vfs=unix-excl`) : file;
  const database = guarded(() => new DatabaseSync(address, { readOnly, timeout: 5000 }));
  const statements = new Map<string, Statement>();
  const statement = (sql: string): Statement => {
    const known = statements.get(sql);
    if (known !== undefined) return known;
    const run = database.prepare(sql, { returnArrays: true });
    const prepared = { run, columns: run.columns().map((column) => column.name) };
    if (statements.size >= keptStatements) statements.delete(statements.keys().next().value as string);
    statements.set(sql, prepared);
    return prepared;
  };

  const name = (columns: readonly string[], values: readonly unknown[]): Row => {
    const row: Row = {};
    for (let i = 0; i < columns.length; i++) row[columns[i] as string] = values[i];
    return row;
  };
  const fetchAll = ({ run, columns }: Statement, values: readonly unknown[]): Row[] => {
    const rows = run.all(...(values as SQLInputValue[])) as unknown[];
    for (let i = 0; i < rows.length; i++) rows[i] = name(columns, rows[i] as unknown[]);
    return rows as Row[];
  };

  const run = (sql: string, values: readonly unknown[]): number =>
    guarded(() => Number(statement(sql).run.run(...(values as SQLInputValue[])).changes));

  return {
    begin: () => void run("BEGIN IMMEDIATE", []),
    commit: () => void run("COMMIT", []),
    rollback: () => void run("ROLLBACK", []),
    // There is only one writer.
    lock: () => {},
    all: (sql, values) => guarded(() => fetchAll(statement(sql), values)),
    first: (sql, values) =>
      guarded(() => {
        const { run, columns } = statement(sql);
        const found = run.get(...(values as SQLInputValue[])) as unknown[] | undefined;
        return found === undefined ? undefined : name(columns, found);
      }),
    run,
    // With `RETURNING`, SQLite would build a table in memory for each row.
    insert: (sql, values) =>
      guarded(() => Number(statement(sql).run.run(...(values as SQLInputValue[])).lastInsertRowid)),
    execute: (sql, values) =>
      guarded(() => {
        const found = statement(sql);
        if (found.columns.length > 0) return { rows: fetchAll(found, values), changes: 0 };
        return { rows: [], changes: Number(found.run.run(...(values as SQLInputValue[])).changes) };
      }),
    script: (sql) =>
      guarded(() => {
        statements.clear();
        database.exec(sql);
      }),
    inTransaction: () => database.isTransaction,
    close: () => database.close(),
  };
}

/**
 * Locks `file` for this process, because two services on one database or data folder would both run its tasks. The lock is that of
 * SQLite on an empty database `FILE.lock`: the operating system releases it with the process, and backups of the real file still
 * work. Throws if another process holds it; the message names that process. `what` describes the file in this message, `other` the process,
 * and `advice` what to do.
 */
export function lockFile(
  file: string,
  what: string,
  other = "Brume service",
  advice = "stop that one first, or give this one a folder of its own",
): { close(): void } {
  const held = connect(createPrivate(`${file}.lock`), { readOnly: false });
  const note = `${file}.holder`;
  try {
    held.script("PRAGMA busy_timeout = 0; PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE");
  } catch (error) {
    held.close();
    if (!(error instanceof StorageError) || primaryCode(error.cause) !== busyCode) throw error;
    throw new Error(`the ${what} is in use by another ${other} (${readNote(note)}): ${advice}`, { cause: error });
  }
  try {
    // The note is only for people. On a full disk there is none, rather than that of another process.
    rmSync(note, { force: true });
    writeFileSync(note, `host ${hostname()}, pid ${process.pid}, since ${new Date().toISOString().slice(0, 19)}Z`, {
      mode: 0o600,
    });
  } catch {
    // Only the lock matters.
  }
  return held;
}

function readNote(note: string): string {
  try {
    return readFileSync(note, "utf8").trim() || "unknown process";
  } catch {
    return "unknown process";
  }
}

/** Creates a missing file with mode 600. Never opens an existing one: closing it would release SQLite's locks on it. */
function createPrivate(file: string): string {
  if (!existsSync(file)) closeSync(openSync(file, "a", 0o600));
  return file;
}

/** Omits `FOR UPDATE SKIP LOCKED`: SQLite has no such syntax, and its one writer needs no row locks. */
class QueryCompiler extends SqliteQueryCompiler {
  protected override visitSelectModifier(node: SelectModifierNode): void {
    if (node.modifier === "Distinct" || node.rawModifier !== undefined) super.visitSelectModifier(node);
  }
}

const queries = createQueryFactory({
  createDriver: () => {
    throw new Error("sessions run the SQL");
  },
  createQueryCompiler: () => new QueryCompiler(),
  createAdapter: () => new SqliteAdapter(),
  createIntrospector: (db) => new SqliteIntrospector(db),
});

/** Settings of the SQLite store. */
export interface SqliteOptions {
  readonly log: Log;
  /** Searches for damage in the background. */
  readonly check?: boolean;
  /** Writes the log to the disk; a substitute in tests. */
  readonly sync?: Sync;
}

/**
 * Opens the database in `file`, and creates it if it is missing; its folder must exist.
 * Rejects when another process has the database open for writing, and with `StorageError` when it cannot be used.
 */
export async function openSqlite(file: string, { log, check = false, sync }: SqliteOptions): Promise<Store> {
  // The log and the lock are beside the file itself, also if `file` is a link, even one whose target does not exist yet.
  const path = realpathSync(createPrivate(file));
  const held = lockFile(path, `database ${path}`);
  try {
    const open = (inMemory: boolean) => {
      const writing = connect(path, { readOnly: false, inMemory });
      try {
        // Only on an empty file: on another one this writes, and a full disk has no space for it.
        if (writing.first("PRAGMA page_count", [])?.["page_count"] === 0)
          writing.script("PRAGMA auto_vacuum = INCREMENTAL");
        writing.script(`
          PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA foreign_keys = ON; PRAGMA trusted_schema = OFF;
          PRAGMA journal_size_limit = 67108864; PRAGMA wal_autocheckpoint = ${checkpointLimit}; PRAGMA cache_size = -8000`);
        const mode = writing.first("PRAGMA journal_mode", []);
        if (mode?.["journal_mode"] !== "wal") throw new StorageError(`${file}: this file system does not allow WAL`);
        const reading = connect(path, { readOnly: true, inMemory });
        reading.script("PRAGMA cache_size = -16000; PRAGMA trusted_schema = OFF");
        reading.first("select count(*) from sqlite_schema", []);
        return { writing, reading, isShared: !inMemory };
      } catch (error) {
        writing.close();
        throw error;
      }
    };
    const openFull = (error: unknown) => {
      if (!(error instanceof StorageError) || error.isDamage) throw error;
      const opened = open(true);
      log(
        "error",
        `${error.message}. The database is opened with its WAL index in memory: no backup is possible until the next start.`,
      );
      return opened;
    };
    let opened: ReturnType<typeof open>;
    try {
      opened = open(false);
    } catch (error) {
      opened = openFull(error);
    }
    const { writing, reading, isShared } = opened;
    const commits = createWalCommits({ file: path, writing, reading, log, hasWorker: isShared, sync });
    await commits.start();
    const committing: WriteConnection = { ...writing, begin: commits.begin, commit: commits.commit };
    const health = createHealth(path, log, { makeSpace: commits.makeSpace });
    /** Other failures of a snapshot, as too many open files, do not affect writes. */
    const noteDamage = (error: unknown): unknown =>
      error instanceof StorageError && error.isDamage ? health.note(error) : error;
    const checking = setTimeout(() => check && void health.check(), checkDelay);
    checking.unref();
    const writer = createWriter({ kind: "sqlite", connected: (use) => use(committing), queries, log, health });
    const vacuum = setInterval(() => {
      try {
        const free = Number(reading.first("PRAGMA freelist_count", [])?.["freelist_count"] ?? 0);
        if (free <= keptPages || health.blocked() !== null || health.unavailable() !== null) return;
      } catch (error) {
        health.note(error);
        return;
      }
      writer.write((tx) => sessionOf(tx).script(`PRAGMA incremental_vacuum(${slicePages})`)).catch(health.note);
    }, vacuumPeriod);
    vacuum.unref();
    const end = async (): Promise<void> => {
      clearInterval(vacuum);
      clearTimeout(checking);
      await health.close();
      await writer.close();
      await commits.close();
      for (const connection of [reading, writing, held]) connection.close();
    };
    let closing: Promise<void> | undefined;
    const close = (): Promise<void> => (closing ??= end());
    return {
      kind: "sqlite",
      processes: "one",
      foreignWrites: commits.uncertain,
      alone: true,
      read: queries(readSession(reading, health.note)),
      write: writer.write,
      async snapshot() {
        await commits.synced();
        return openSqliteSnapshot(path, noteDamage);
      },
      unavailable: health.unavailable,
      blocked: health.blocked,
      close,
    };
  } catch (error) {
    held.close();
    throw error;
  }
}

const asIs = (error: unknown): unknown => error;

/** Opens a snapshot of the committed state, also while a service writes. `note` is called with each error, and returns it. */
export async function openSqliteSnapshot(file: string, note: Health["note"] = asIs): Promise<Snapshot> {
  let connection: SqliteConnection | undefined;
  try {
    connection = connect(file, { readOnly: true });
    // SQLite chooses the moment at the first read.
    connection.script("BEGIN; SELECT count(*) FROM sqlite_schema");
  } catch (error) {
    connection?.close();
    throw note(error);
  }
  const opened = connection;
  return { read: queries(readSession(opened, note)), close: async () => opened.close() };
}

function readSession(connection: SqliteConnection, note: Health["note"]): Session {
  const noting = async <T>(read: () => T): Promise<T> => {
    try {
      return read();
    } catch (error) {
      throw note(error);
    }
  };
  return {
    kind: "sqlite",
    all: (sql, values) => noting(() => connection.all(sql, values)),
    first: (sql, values) => noting(() => connection.first(sql, values)),
    run: (sql, values) => noting(() => connection.run(sql, values)),
    insert: (sql, values) => noting(() => connection.insert(sql, values)),
    ...readOnly,
    execute: (sql, values) => noting(() => connection.execute(sql, values)),
    script: (sql) => noting(() => connection.script(sql)),
  };
}
