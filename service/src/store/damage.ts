/** Worker thread of `health.ts`: receives the path of a SQLite file and posts the names of tables with unreadable pages. */
import { parentPort, workerData } from "node:worker_threads";
import { StorageError } from "./db.ts";
import { connect, type SqliteConnection } from "./sqlite.ts";

/** Returns the result of `read`, or `damaged` when it meets a damaged page. Throws all other errors. */
function unlessDamaged<T>(read: () => T, damaged: T): T {
  try {
    return read();
  } catch (error) {
    if (error instanceof StorageError && error.isDamage) return damaged;
    throw error;
  }
}

const isDamaged = (connection: SqliteConnection, table: string): boolean =>
  connection.all(`pragma quick_check("${table}")`, [])[0]?.["quick_check"] !== "ok";

function damagedTables(file: string): string[] {
  const connection = connect(file, { readOnly: true });
  try {
    const tables = connection.all("select name from sqlite_schema where type = 'table' order by name", []);
    return tables
      .map((row) => String(row["name"]))
      .filter((name) => unlessDamaged(() => isDamaged(connection, name), true));
  } finally {
    connection.close();
  }
}

// The list of tables itself may be unreadable.
parentPort?.postMessage(unlessDamaged(() => damagedTables(workerData as string), ["sqlite_schema"]));
