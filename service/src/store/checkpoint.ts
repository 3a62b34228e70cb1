/**
 * Worker thread of `walcommit.ts`: receives the path of a SQLite file, moves its log into the database as far as no reader needs it, and
 * ends. It loads nothing else, because it starts for every few thousand pages.
 */
import { DatabaseSync } from "node:sqlite";
import { workerData } from "node:worker_threads";

const database = new DatabaseSync(workerData as string);
try {
  database.exec("PRAGMA synchronous = NORMAL; PRAGMA wal_checkpoint(PASSIVE)");
} finally {
  database.close();
}
