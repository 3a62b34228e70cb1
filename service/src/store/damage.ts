/** Worker thread of `health.ts`: receives the path of a SQLite file and posts the names of tables with unreadable pages. */
import { parentPort, workerData } from "node:worker_threads";
import { connect } from "./sqlite.ts";

function damagedTables(file: string): string[] {
  const connection = connect(file, { readOnly: true });
  const tables = connection.all("select name from sqlite_schema where type = 'table' order by name", []);
  const damaged = tables
    .map((row) => String(row["name"]))
    .filter((name) => {
      try {
        const [found] = connection.all(`pragma quick_check("${name}")`, []);
        return found?.["quick_check"] !== "ok";
      } catch {
        return true;
      }
    });
  connection.close();
  return damaged;
}

try {
  parentPort?.postMessage(damagedTables(workerData as string));
} catch {
  // The list of tables itself is unreadable.
  parentPort?.postMessage(["sqlite_schema"]);
}
