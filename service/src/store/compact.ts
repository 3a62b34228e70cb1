/**
 * Rewrites a SQLite file without free pages and with incremental vacuum. Files of earlier releases lack the latter, and `openSqlite`
 * needs it to free the space of deleted rows while the service runs. SQLite rewrites the file in one transaction of its write-ahead
 * log, so a crash or a full disk leaves it unchanged. The rewrite cannot be interrupted, so a start limits the size.
 */
import { statfsSync } from "node:fs";
import { dirname } from "node:path";
import { sql } from "kysely";
import type { Log } from "../base/log.ts";
import type { Reader, Store } from "./db.ts";
import { connect } from "./sqlite.ts";

/** Bytes in use up to which a start rewrites the file: less than two seconds on an ordinary disk. */
const mostAtStart = 128e6;
/** Free bytes required per byte in use: for a temporary file, the write-ahead log, and a reserve of the same size. */
const freeFactor = 3;
/** Value of `PRAGMA auto_vacuum`. */
const incremental = 2;

/** Returns the bytes in use of a file without incremental vacuum, or null if it has incremental vacuum. */
async function usedOf(db: Reader): Promise<number | null> {
  const read = async (name: string): Promise<number> => {
    const { rows } = await sql<Record<string, number>>`pragma ${sql.raw(name)}`.execute(db);
    return Number(rows[0]?.[name]);
  };
  if ((await read("auto_vacuum")) === incremental) return null;
  return ((await read("page_count")) - (await read("freelist_count"))) * (await read("page_size"));
}

/** Rewrites a file of any size. Throws when it is damaged, another process writes to it, or the disk is full. */
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
 * Rewrites the file at a start, before anything writes to it, if an earlier release created it, it is small, and the disk has space.
 * Otherwise logs the command for it. Never throws: a failure is logged, and the service works with the unchanged file.
 */
export async function compactAtStart({ read }: Store, file: string, log: Log, most = mostAtStart): Promise<void> {
  const advice = 'Stop the service and run "npm run compact" (of the Debian package: "brume-admin compact") once.';
  const problem = `An earlier release created ${file}, so the space of deleted rows is not freed.`;
  try {
    const used = await usedOf(read);
    if (used === null) return;
    const size = `${(used / 1e6).toFixed(0)} MB`;
    if (used > most)
      return log("warn", `${problem} The file is too large (${size}) to convert it at a start. ${advice}`);
    const { bavail, bsize } = statfsSync(dirname(file));
    if (bavail * bsize < used * freeFactor)
      return log("warn", `${problem} The disk has too little space to convert it (${size}). ${advice}`);
    compact(file);
    log("info", `Converted ${file}: the space of deleted rows is freed from now on.`);
  } catch (error) {
    log("warn", `${problem} It could not be converted. ${advice}`, { error });
  }
}
