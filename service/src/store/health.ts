/**
 * State of a SQLite database: whether it can be written, and whether it is damaged. A change of the state is logged once, not once per
 * failed request.
 */
import { statfs } from "node:fs/promises";
import { dirname } from "node:path";
import { Worker } from "node:worker_threads";
import type { Log } from "../base/log.ts";
import { within } from "../base/within.ts";
import { StorageError } from "./db.ts";

/** Known damage of a SQLite file, and the outcome of its last write. */
export interface Health {
  /** Returns the damage and what to do about it; null if none is known. */
  unavailable(): string | null;
  /** Returns why the last write failed; null if it succeeded. */
  blocked(): string | null;
  /** Records a `StorageError`. Returns the error. */
  note(error: unknown): unknown;
  /** Records a successful write. */
  worked(): void;
  /** Checks all tables in a thread of its own, and records damaged ones. */
  check(): Promise<void>;
  /**
   * Ends a check that is in progress: while its thread has the file open, SQLite does not empty the log when the service closes the file.
   * The check of one table cannot be interrupted; waits at most two seconds for it.
   */
  close(): Promise<void>;
}

/** Milliseconds without a failed write after which the database counts as writable: on a full disk small writes still succeed. */
const calm = 10_000;
/** Milliseconds that `close` waits at most. */
const endLimit = 2000;

/** Milliseconds from one try to make space to the next. */
const spacePeriod = 1000;
/** Milliseconds between two measurements of the free space of a full disk. */
const measurePeriod = 500;
/** Bytes that must have been freed before a full disk counts as writable without a write. */
const enoughSpace = 2 ** 23;

/** What a test of the state replaces, and what makes space. */
export interface HealthOptions {
  /** Returns monotonic milliseconds. */
  readonly steady?: () => number;
  /** Makes space on a full disk, if it can. Never rejects. */
  readonly makeSpace?: () => Promise<void>;
  /** Resolves to the free bytes of the disk. */
  readonly freeSpace?: () => Promise<number>;
}

/** Creates the state of the database in `file`. */
export function createHealth(file: string, log: Log, options: HealthOptions = {}): Health {
  const { steady = () => performance.now(), makeSpace, freeSpace = () => measureFree(file) } = options;
  let blocked: string | null = null;
  let failedAt = 0;
  let triedAt = Number.NEGATIVE_INFINITY;
  let measuring: NodeJS.Timeout | undefined;
  let damage: string | null = null;
  let checking: Promise<void> | null = null;
  let thread: Worker | null = null;
  let isClosed = false;

  const setDamage = (text: string): void => {
    if (text === damage) return;
    damage = text;
    log("error", text);
  };
  const advice =
    'Undamaged tables are still served. Stop the service and restore a backup: "Backup and restore" in docs/operate.md';

  async function checkTables(): Promise<void> {
    thread = new Worker(new URL("./damage.ts", import.meta.url), { workerData: file });
    const tables = await readTables(thread).finally(() => (thread = null));
    if (tables.length === 0) return;
    const names = `table${tables.length === 1 ? "" : "s"} ${tables.join(", ")}`;
    setDamage(`damaged: ${names} in ${file}. ${advice}.`);
  }
  const check = (): Promise<void> =>
    (checking ??= checkTables().catch((error: unknown) => {
      checking = null;
      if (!isClosed) log("warn", `Could not check ${file} for damage.`, { error });
    }));

  function setWritable(): void {
    blocked = null;
    clearInterval(measuring);
    measuring = undefined;
    log("info", "Changes can be stored again.");
  }

  function tryToMakeSpace(): void {
    if (makeSpace === undefined || isClosed || steady() - triedAt < spacePeriod) return;
    triedAt = steady();
    void makeSpace();
  }

  /** Measures the disk until space was freed, which no write may show for long. */
  function awaitSpace(): void {
    if (measuring !== undefined || isClosed) return;
    let least = Number.POSITIVE_INFINITY;
    const measure = async (): Promise<void> => {
      const free = await freeSpace().catch(() => null);
      if (free === null) return;
      least = Math.min(least, free);
      if (free - least >= enoughSpace && measuring === timer) setWritable();
    };
    const timer = setInterval(() => void measure(), measurePeriod);
    timer.unref();
    measuring = timer;
    void measure();
  }

  return {
    unavailable: () => damage,
    blocked: () => blocked,
    note(error) {
      if (!(error instanceof StorageError)) return error;
      if (error.isDamage) {
        if (damage === null) {
          setDamage(`damaged: ${file}. ${advice}.`);
          // A check that is in progress names the tables.
          if (thread === null) checking = null;
        }
        if (!isClosed) void check();
      } else {
        failedAt = steady();
        tryToMakeSpace();
        if (error.isFull) awaitSpace();
        if (blocked === error.message) return error;
        blocked = error.message;
        log("error", `Nothing can be stored: ${blocked}. Reads and the name server still work.`);
      }
      return error;
    },
    worked() {
      if (blocked === null || steady() - failedAt < calm) return;
      setWritable();
    },
    check,
    async close() {
      isClosed = true;
      clearInterval(measuring);
      if (thread !== null) await within(thread.terminate(), endLimit, undefined);
    },
  };
}

async function measureFree(file: string): Promise<number> {
  const { bavail, bsize } = await statfs(dirname(file));
  return bavail * bsize;
}

/** Returns the names of tables with unreadable pages, which the thread posts. Rejects when it ends without. */
function readTables(thread: Worker): Promise<string[]> {
  thread.unref();
  return new Promise((resolve, reject) => {
    thread.once("message", resolve);
    thread.once("error", reject);
    thread.once("exit", () => reject(new Error("the check ended early")));
  });
}
