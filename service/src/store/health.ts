/**
 * State of a SQLite database: whether it can be written, and whether it is damaged. A change of the state is logged once, not once per
 * failed request.
 */
import { Worker } from "node:worker_threads";
import type { Log } from "../base/log.ts";
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
}

/** Milliseconds without a failed write after which the database counts as writable: on a full disk small writes still succeed. */
const calm = 10_000;

/** Creates the state of the database in `file`. `steady` returns monotonic milliseconds. */
export function createHealth(file: string, log: Log, steady = () => performance.now()): Health {
  let blocked: string | null = null;
  let failedAt = 0;
  let damage: string | null = null;
  let checking: Promise<void> | null = null;

  const setDamage = (text: string): void => {
    if (text === damage) return;
    damage = text;
    log("error", text);
  };
  const advice =
    'Undamaged tables are still served. Stop the service and restore a backup: "Backup and restore" in docs/operate.md';

  async function checkTables(): Promise<void> {
    const tables = await findDamage(file);
    if (tables.length === 0) return;
    const names = `table${tables.length === 1 ? "" : "s"} ${tables.join(", ")}`;
    setDamage(`damaged: ${names} in ${file}. ${advice}.`);
  }
  const check = (): Promise<void> =>
    (checking ??= checkTables().catch((error: unknown) => {
      log("warn", `Could not check ${file} for damage.`, { error });
    }));

  return {
    unavailable: () => damage,
    blocked: () => blocked,
    note(error) {
      if (!(error instanceof StorageError)) return error;
      if (error.isDamage) {
        if (damage === null) {
          setDamage(`damaged: ${file}. ${advice}.`);
          checking = null;
        }
        void check();
      } else {
        failedAt = steady();
        if (blocked === error.message) return error;
        blocked = error.message;
        log("error", `Nothing can be stored: ${blocked}. Reads and the name server still work.`);
      }
      return error;
    },
    worked() {
      if (blocked === null || steady() - failedAt < calm) return;
      blocked = null;
      log("info", "Changes can be stored again.");
    },
    check,
  };
}

/** Returns the names of tables with unreadable pages. */
function findDamage(file: string): Promise<string[]> {
  const worker = new Worker(new URL("./damage.ts", import.meta.url), { workerData: file });
  worker.unref();
  return new Promise((resolve, reject) => {
    worker.once("message", resolve);
    worker.once("error", reject);
  });
}
