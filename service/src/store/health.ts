/**
 * How a SQLite database does: whether it can be written, and whether it is damaged. It says so once when that changes, however many
 * requests fail meanwhile.
 */
import { Worker } from "node:worker_threads";
import type { Log } from "../base/log.ts";
import { StorageError } from "./db.ts";

export interface Health {
  /** Null: it is well. Else what is wrong and what to do. */
  unavailable(): string | null;
  /** Why the last write failed; null: it did not. */
  blocked(): string | null;
  /** Hands the error on. */
  note(error: unknown): unknown;
  worked(): void;
  /** Reads all tables in a thread of its own, and notes those that are damaged. */
  check(): Promise<void>;
}

export function createHealth(file: string, log: Log): Health {
  let blocked: string | null = null;
  let damage: string | null = null;
  let checking: Promise<void> | null = null;

  const tell = (text: string): void => {
    if (text === damage) return;
    damage = text;
    log("error", text);
  };
  const advice =
    'What can be read is served. Stop the service and restore a backup: "Backup and restore" in docs/operate.md';

  async function look(): Promise<void> {
    const tables = await findDamage(file);
    if (tables.length === 0) return;
    const names = `table${tables.length === 1 ? "" : "s"} ${tables.join(", ")}`;
    tell(`damaged: ${names} in ${file}. ${advice}.`);
  }
  const check = (): Promise<void> =>
    (checking ??= look().catch((error: unknown) => {
      log("warn", `${file} could not be checked for damage`, { error });
    }));

  return {
    unavailable: () => damage,
    blocked: () => blocked,
    note(error) {
      if (!(error instanceof StorageError)) return error;
      if (error.isDamage) {
        if (damage === null) {
          tell(`damaged: ${file}. ${advice}.`);
          checking = null;
        }
        void check();
      } else if (blocked !== error.message) {
        blocked = error.message;
        log("error", `Nothing can be stored: ${blocked}. Reads and the name server go on.`);
      }
      return error;
    },
    worked() {
      if (blocked === null) return;
      blocked = null;
      log("info", "Changes can be stored again.");
    },
    check,
  };
}

/** The names of tables with pages that cannot be read. */
function findDamage(file: string): Promise<string[]> {
  const worker = new Worker(new URL("./damage.ts", import.meta.url), { workerData: file });
  worker.unref();
  return new Promise((resolve, reject) => {
    worker.once("message", resolve);
    worker.once("error", reject);
  });
}
