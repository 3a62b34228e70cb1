/** Shared by backup, export and import: selects and opens the database, and prints messages. */
import { existsSync, mkdirSync, realpathSync } from "node:fs";
import { dirname, join } from "node:path";
import type { ParseArgsOptionsConfig } from "node:util";
import { parseArgs } from "node:util";
import type { Log } from "../service/src/base/log.ts";
import { loadSettings } from "../service/src/config.ts";
import type { Snapshot, Store } from "../service/src/store/db.ts";
import { openPostgres, openPostgresSnapshot } from "../service/src/store/postgres.ts";
import { databaseName, openSqlite, openSqliteSnapshot } from "../service/src/store/sqlite.ts";

const isUrl = (address: string): boolean => /^postgres(ql)?:\/\//.test(address);

/** The selected database: the given one, otherwise the one of the environment, as for the service. */
export interface Location {
  readonly address: string;
  readonly isPostgres: boolean;
  /** As it may be shown: without a password. */
  readonly shown: string;
}

/** Returns the selected database: `given`, else that of `BRUME_DATABASE` or `BRUME_DATA`. */
export function locate(given: string | undefined): Location {
  const { databaseUrl, dataFolder } = loadSettings(process.env);
  const file = join(dataFolder, databaseName);
  // In the folder of two processes it is a link to the file of the control plane.
  const address = given ?? databaseUrl ?? (existsSync(file) ? realpathSync(file) : file);
  const shown = isUrl(address) ? address.replace(/:[^:@/]*@/, ":…@") : address;
  return { address, isPostgres: isUrl(address), shown };
}

/** Throws if the SQLite database to be read does not exist. SQLite's own message would be less clear. */
export function requireFile({ address, isPostgres }: Location): void {
  if (isPostgres || existsSync(address)) return;
  throw new Error(`database ${address} does not exist: name one with --from, or set BRUME_DATA or BRUME_DATABASE`);
}

/** Opens a snapshot of the database for reading. */
export async function openSnapshot(location: Location): Promise<Snapshot> {
  requireFile(location);
  return location.isPostgres ? openPostgresSnapshot(location.address) : openSqliteSnapshot(location.address);
}

/** Opens the database for writing, and creates a SQLite file if it is missing. */
export async function openStore({ address, isPostgres }: Location): Promise<Store> {
  if (isPostgres) return openPostgres(address, { log, exclusive: true, limit: 3_600_000 });
  mkdirSync(dirname(address), { recursive: true, mode: 0o700 });
  return openSqlite(address, { log });
}

const log: Log = (level, message) => {
  if (level !== "info") print(`${level}: ${message}`);
};

/** Returns how the user calls a command: `npm run` in a clone, `brume-admin` of the Debian package. */
export const callOf = (command: string): string =>
  process.env["CALLED_AS"] === undefined ? `npm run ${command} --` : `${process.env["CALLED_AS"]} ${command}`;

export const print = (line: string): void => {
  process.stderr.write(`${line}\n`);
};

/** Prints a progress line that the next one replaces; on a terminal only. */
export const show = (line: string): void => {
  if (process.stderr.isTTY) process.stderr.write(`\r\x1b[K${line}`);
};

/** Formats a size in MB of 10^6 bytes. */
export const megabytes = (bytes: number): string => `${(bytes / 1e6).toFixed(1)} MB`;

type Values = ReturnType<typeof parseArgs>["values"];

/** Parses FILE and the options and runs `work`. Prints the message of an error and sets exit code 1. */
export async function run(
  usage: string,
  options: ParseArgsOptionsConfig,
  work: (file: string, values: Values) => Promise<void>,
): Promise<void> {
  process.exitCode = 1;
  let file: string;
  let values: Values;
  try {
    const parsed = parseArgs({ allowPositionals: true, options });
    if (parsed.positionals.length !== 1) throw new Error("exactly one FILE is required");
    file = parsed.positionals[0] as string;
    values = parsed.values;
  } catch (error) {
    print(`${(error as Error).message}\n\n${usage}`);
    return;
  }
  try {
    await work(file, values);
    process.exitCode = 0;
  } catch (error) {
    show("");
    print((error as Error).message);
  }
}
