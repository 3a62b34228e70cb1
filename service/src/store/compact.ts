/**
 * Rewrites a SQLite file without free pages and with incremental vacuum, which files of earlier releases lack: only then can
 * `openSqlite` give the space of deleted rows back while the service runs. SQLite does this in one transaction of its write-ahead log,
 * so a crash or a full disk in the middle leaves the file as it was. Nothing can interrupt it, so the time is bounded by the size.
 */
import { statfsSync } from "node:fs";
import { dirname } from "node:path";
import { sql } from "kysely";
import type { Log } from "../base/log.ts";
import type { Reader, Store } from "./db.ts";
import { connect } from "./sqlite.ts";

/** Bytes in use up to which a start does it: less than two seconds on an ordinary disk. */
const mostAtStart = 128e6;
/** Free bytes wanted for each byte in use: a temporary file, the write-ahead log, and as much again. */
const freeFactor = 3;
/** As in `PRAGMA auto_vacuum`. */
const incremental = 2;

/** Bytes in use of a file without incremental vacuum; null: it has that. */
async function usedOf(db: Reader): Promise<number | null> {
  const read = async (name: string): Promise<number> => {
    const { rows } = await sql<Record<string, number>>`pragma ${sql.raw(name)}`.execute(db);
    return Number(rows[0]?.[name]);
  };
  if ((await read("auto_vacuum")) === incremental) return null;
  return ((await read("page_count")) - (await read("freelist_count"))) * (await read("page_size"));
}

/** Rewrites the file, whatever its size. Throws when it is damaged, another process writes to it, or the disk is full. */
export function compact(file: string): void {
  const connection = connect(file, { readOnly: false });
  try {
    const found = connection.all("PRAGMA quick_check(1)", []).map((row) => String(row["quick_check"]));
    if (found.join() !== "ok") throw new Error(`the file is damaged: ${found.join("; ")}`);
    connection.script("PRAGMA auto_vacuum = INCREMENTAL; VACUUM; PRAGMA wal_checkpoint(TRUNCATE)");
  } finally {
    connection.close();
  }
}

/**
 * For a start, when this process has the database open and nothing writes to it yet: rewrites the file if it is of an earlier release,
 * small, and the disk has room. Otherwise logs the command that does it. A failure is logged: the service works with the file as it is.
 */
export async function compactAtStart({ read }: Store, file: string, log: Log, most = mostAtStart): Promise<void> {
  const advice = 'Stop the service and run "npm run compact" once.';
  const keeps = `${file} is of an earlier release and does not give back the space of deleted rows.`;
  try {
    const used = await usedOf(read);
    if (used === null) return;
    const size = `${(used / 1e6).toFixed(0)} MB`;
    if (used > most) return log("warn", `${keeps} It is too large (${size}) to be converted at a start. ${advice}`);
    const { bavail, bsize } = statfsSync(dirname(file));
    if (bavail * bsize < used * freeFactor)
      return log("warn", `${keeps} The disk has too little room to convert it (${size}). ${advice}`);
    compact(file);
    log("info", `${file} was converted: it gives back the space of deleted rows from now on.`);
  } catch (error) {
    log("warn", `${keeps} It could not be converted now. ${advice}`, { error });
  }
}
