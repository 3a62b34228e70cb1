/**
 * Commits of SQLite without waiting for the disk in the main thread. `COMMIT` only writes to the log (WAL) in memory of the operating
 * system; a thread of libuv then syncs the log, and the commit counts when that has ended. Until then the reading connection keeps the
 * state before, so no response shows what a power cut can still remove. Moving the log into the database (checkpoint) also syncs, and
 * runs in a worker.
 *
 * This is as durable as `synchronous=FULL`, in which SQLite syncs the log itself. `NORMAL` still orders log and database on the disk:
 * https://www.sqlite.org/pragma.html#pragma_synchronous
 */
import { closeSync, fdatasync, openSync } from "node:fs";
import { dirname } from "node:path";
import { promisify } from "node:util";
import { Worker } from "node:worker_threads";
import { syncPathNow } from "../base/fsync.ts";
import type { Log } from "../base/log.ts";
import { StorageError } from "./db.ts";
import type { Row } from "./session.ts";

/** The part of a connection that commits need. */
interface Connection {
  begin(): void;
  commit(): void;
  first(sql: string, values: readonly unknown[]): Row | undefined;
  run(sql: string, values: readonly unknown[]): number;
  inTransaction(): boolean;
}

/** Writes the data of a file descriptor to the disk. */
export type Sync = (descriptor: number) => Promise<void>;

const syncData: Sync = promisify(fdatasync);

/** Pages in the log from which on it is moved into the database. */
const checkpointPages = 4000;
/** Pages in the log from which on writes wait until all of it is moved, because only then SQLite starts the log again. */
const mostPages = 2 * checkpointPages;
/** Pages at which SQLite does it in the main thread, if the worker could not. */
export const checkpointLimit = 8 * checkpointPages;

/** Commits of one database. */
export interface WalCommits {
  /** Syncs what an earlier process has written: one that was killed may have left a commit in memory of the operating system only. */
  start(): Promise<void>;
  /** Starts a transaction. Rejects with `StorageError` if an earlier commit may be incomplete on the disk and this cannot be repaired. */
  begin(): Promise<void>;
  /** Resolves when the transaction is durable; with `isDurable` false when it is stored. Until then `reading` shows the state before it. */
  commit(isDurable: boolean): Promise<void>;
  /** Resolves when no commit is being synced: all that a new connection can see now is durable, or may be lost. */
  synced(): Promise<void>;
  /**
   * Moves the log into the database in the worker, if it can. The next commit then overwrites the log from its start, so a log that has
   * filled the disk needs no more space. Never rejects.
   */
  makeSpace(): Promise<void>;
  /** Number of rejected commits whose writes may be stored. */
  uncertain(): number;
  /** Resolves when the worker has ended. */
  close(): Promise<void>;
}

/** What commits work with. */
export interface WalCommitOptions {
  readonly file: string;
  /** The only connection that writes, with `synchronous=NORMAL`. */
  readonly writing: Connection;
  /** The connection of all reads outside of transactions. */
  readonly reading: Connection;
  readonly log: Log;
  /** False: the log is moved by the writing connection, because others cannot open the file. */
  readonly hasWorker: boolean;
  readonly sync?: Sync | undefined;
  /** Moves the log of a file into its database as far as no reader needs it. Default: in a worker. */
  readonly runCheckpoint?: (file: string) => Promise<void>;
}

/** Pages in the log, and those of them that are in the database. */
interface LogPages {
  readonly all: number;
  readonly moved: number;
}

/** Creates the commits of the database in `file`, whose log exists. */
export function createWalCommits(options: WalCommitOptions): WalCommits {
  const { file, writing, reading, log, hasWorker, sync = syncData, runCheckpoint = runInWorker } = options;
  const descriptor = openSync(`${file}-wal`, "r");
  let syncing: Promise<void> | null = null;
  let checkpoint: Promise<void> | null = null;
  /** The last sync failed. The system may have dropped pages of the log, so later commits behind them would be lost. */
  let isTorn = false;
  let uncertain = 0;

  let hasWarned = false;

  const release = (): void => {
    if (reading.inTransaction()) reading.commit();
  };

  /** Moves the whole log into the database, which SQLite syncs itself, and empties it. */
  function replaceLog(): void {
    const result = writing.first("PRAGMA wal_checkpoint(TRUNCATE)", []);
    if (result?.["busy"] !== 0) throw new StorageError(`SQLite: the log of ${file} is not on the disk and is in use`);
    isTorn = false;
  }

  function countPages(): LogPages {
    const row = writing.first("PRAGMA wal_checkpoint(NOOP)", []);
    return { all: Number(row?.["log"]), moved: Number(row?.["checkpointed"]) };
  }

  /** The log when it was last moved; null: it has become short since. */
  let tried: LogPages | null = null;

  /**
   * Returns whether the log should be moved. While a backup or another reader needs the pages behind its state, each try moves none of
   * them, so the next one waits until the log has grown.
   */
  const isWorthMoving = ({ all, moved }: LogPages): boolean =>
    tried === null || all < tried.all || moved !== tried.moved || all >= tried.all + checkpointPages;

  async function tryToMoveLog(): Promise<void> {
    try {
      await runCheckpoint(file);
      hasWarned = false;
    } catch (error) {
      // On a full disk this fails at every try until space is freed.
      if (!hasWarned) log("warn", `Could not move the log of ${file} into the database.`, { error });
      hasWarned = true;
    }
  }

  /** Starts to move the log into the database. Resolves when the worker has ended. */
  const moveLog = (): Promise<void> =>
    (checkpoint ??= tryToMoveLog().finally(() => {
      checkpoint = null;
    }));

  /** Commits, and resolves when the log is on the disk. */
  async function commitSynced(): Promise<void> {
    reading.run("BEGIN", []);
    try {
      reading.first("SELECT 1 FROM sqlite_schema LIMIT 1", []);
      writing.commit();
      syncing = sync(descriptor).catch((cause: unknown) => {
        isTorn = true;
        uncertain += 1;
        throw new StorageError(`SQLite: the log of ${file} was not written (${(cause as Error).message})`, { cause });
      });
      await syncing;
    } finally {
      syncing = null;
      release();
    }
  }

  return {
    async start() {
      try {
        syncPathNow(dirname(file));
        await sync(descriptor);
      } catch (error) {
        isTorn = true;
        log("error", `The log of ${file} was not written to the disk; the next change repeats it.`, { error });
      }
    },
    async begin() {
      if (isTorn) replaceLog();
      if (hasWorker && isTooLong(countPages())) {
        await checkpoint;
        const pages = countPages();
        if (isTooLong(pages) && isWorthMoving(pages)) {
          tried = pages;
          await moveLog();
        }
      }
      writing.begin();
    },
    async commit(isDurable) {
      if (isDurable) await commitSynced();
      else writing.commit();
      if (!hasWorker) return;
      const pages = countPages();
      if (pages.all - pages.moved < checkpointPages) tried = null;
      else if (checkpoint === null && isWorthMoving(pages)) {
        tried = pages;
        void moveLog();
      }
    },
    async synced() {
      while (syncing !== null) await syncing.catch(() => {});
    },
    async makeSpace() {
      if (hasWorker) await moveLog();
    },
    uncertain: () => uncertain,
    async close() {
      await checkpoint;
      closeSync(descriptor);
    },
  };
}

/** SQLite starts a log again only when all of it is in the database. */
const isTooLong = ({ all, moved }: LogPages): boolean => all >= mostPages && all !== moved;

function runInWorker(file: string): Promise<void> {
  const worker = new Worker(new URL("./checkpoint.ts", import.meta.url), { workerData: file, name: "checkpoint" });
  return new Promise((resolve, reject) => {
    worker.once("error", reject);
    worker.once("exit", () => resolve());
  });
}
