/** `npm run compact`: rewrites the SQLite database of a stopped service without free space, and with automatic freeing of space. */
import { realpathSync, statSync } from "node:fs";
import { compact } from "../service/src/store/compact.ts";
import { lockFile } from "../service/src/store/sqlite.ts";
import { locate, megabytes, print, requireFile } from "./database.ts";

process.exitCode = 1;
try {
  if (process.argv.length > 2) throw new Error("compact takes no arguments: it rewrites the database of BRUME_DATA");
  const location = locate(undefined);
  if (location.isPostgres) throw new Error(`${location.shown} is PostgreSQL, which frees space automatically`);
  requireFile(location);
  const file = realpathSync(location.address);
  const held = lockFile(file, `database ${file}`);
  try {
    const before = statSync(file).size;
    compact(file);
    print(`${file}: ${megabytes(before)} before, ${megabytes(statSync(file).size)} now.`);
    process.exitCode = 0;
  } finally {
    held.close();
  }
} catch (error) {
  print((error as Error).message);
}
