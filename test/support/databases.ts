/**
 * New databases for tests, migrated and open. PostgreSQL is a temporary server that listens on a Unix socket only, so it cannot collide
 * with other programs. The first test file of a run that needs it starts it, and the others share it. A guard process stops it after the
 * run, even if the run is killed.
 */

import type { SpawnOptions } from "node:child_process";
import { spawn, spawnSync } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import {
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import pg from "pg";
import type { Store } from "../../service/src/store/db.ts";
import { migrate, readMigrations } from "../../service/src/store/migrate.ts";
import { openPostgres } from "../../service/src/store/postgres.ts";
import { openSqlite } from "../../service/src/store/sqlite.ts";
import { memoryFolder } from "./memoryfolder.ts";
import { triesAll } from "./random.ts";

export type Kind = Store["kind"];

/** Tests of stored data loop over these. */
export const databases: readonly Kind[] = ["sqlite", "postgres"];

/**
 * SQLite, and with `TEST_RUNS=all` PostgreSQL too. Tests of drivers, of simulated time, and of many processes loop over these, if other tests
 * run their SQL on both.
 */
export const sqliteFirst: readonly Kind[] = triesAll ? databases : ["sqlite"];

/** A database of one test. */
export interface Database {
  readonly kind: Kind;
  /** Path of the SQLite file, or URL of the PostgreSQL database. */
  readonly address: string;
  readonly store: Store;
  /** Opens another store, as a restarted or second service does. SQLite allows one at a time. */
  open(): Promise<Store>;
  /** Closes all its stores and removes the database. */
  close(): Promise<void>;
}

/** Creates an empty database with the newest schema; with `migrated: false` without any schema. */
export async function startDatabase(kind: Kind, { migrated = true } = {}): Promise<Database> {
  const { address, remove } = kind === "sqlite" ? await createFile(migrated) : await createOnServer(migrated);
  const stores: Store[] = [];
  const open = async (): Promise<Store> => {
    const store = await openStore(kind, address);
    stores.push(store);
    return store;
  };
  const store = await open();
  return {
    kind,
    address,
    store,
    open,
    async close() {
      await Promise.all(stores.map((opened) => opened.close()));
      await remove();
    },
  };
}

const quiet = { log: () => {} };
/** A statement may take long on a busy host. */
const longLimits = { ...quiet, limit: 120_000 };
const openStore = (kind: Kind, address: string): Promise<Store> =>
  kind === "sqlite" ? openSqlite(address, quiet) : openPostgres(address, longLimits);

async function createFile(migrated: boolean): Promise<{ address: string; remove(): Promise<void> }> {
  // In memory; a test that needs a real disk creates its own file.
  const parent = memoryFolder(0) ?? tmpdir();
  removeLeft(parent);
  const folder = mkdtempSync(join(parent, `brume-test-${process.pid}-`));
  const address = join(folder, "brume.db");
  if (migrated) writeFileSync(address, await createMigratedFile());
  return { address, remove: async () => rmSync(folder, { recursive: true, force: true }) };
}

let hasRemoved = false;

/** Removes the folders of killed tests, once per process: their names contain the PID. */
function removeLeft(parent: string): void {
  if (hasRemoved) return;
  hasRemoved = true;
  for (const name of readdirSync(parent)) {
    const [, pid] = /^brume-test-(\d+)-/.exec(name) ?? [];
    if (pid !== undefined && !isRunning(Number(pid))) rmSync(join(parent, name), { recursive: true, force: true });
  }
}

/** Returns whether a process exists, also one of another user. */
function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

let migratedFile: Promise<Buffer> | undefined;

/** Returns the content of a migrated SQLite file. It is created once per process, because migrations take longer than most tests. */
function createMigratedFile(): Promise<Buffer> {
  migratedFile ??= (async () => {
    const { address, remove } = await createFile(false);
    try {
      const store = await openSqlite(address, quiet);
      await migrate(store);
      await store.close();
      return readFileSync(address);
    } finally {
      await remove();
    }
  })();
  return migratedFile;
}

async function createOnServer(migrated: boolean): Promise<{ address: string; remove(): Promise<void> }> {
  const folder = await startServer();
  const name = `test_${randomBytes(6).toString("hex")}`;
  const template = migrated ? await createTemplate(folder) : "template0";
  await execute(folder, `CREATE DATABASE ${name} TEMPLATE ${template} ${strategyOf(folder)}`);
  return { address: urlOf(folder, name), remove: () => execute(folder, `DROP DATABASE ${name} WITH (FORCE)`) };
}

/** Returns how a template is copied. A copy of its files, which PostgreSQL 14 makes by itself, costs a quarter of what 15 does. */
function strategyOf(folder: string): string {
  const version = Number(readFileSync(join(folder, "data/PG_VERSION"), "utf8"));
  return version < 15 ? "" : "STRATEGY FILE_COPY";
}

const urlOf = (folder: string, name: string): string => `postgresql://postgres@/${name}?host=${folder}`;

let administration: pg.Pool | undefined;

/** Executes a statement on a connection that this process keeps, because a new one costs more than a new database. */
async function execute(folder: string, statement: string): Promise<void> {
  administration ??= new pg.Pool({
    connectionString: urlOf(folder, "postgres"),
    max: 1,
    idleTimeoutMillis: 0,
    allowExitOnIdle: true,
  });
  await administration.query(statement);
}

async function connect(folder: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: urlOf(folder, "postgres") });
  await client.connect();
  return client;
}

let template: Promise<string> | undefined;

/** Creates the migrated template database, once per run; tests get copies. Its name contains a hash of the migrations, which change during development. */
function createTemplate(folder: string): Promise<string> {
  template ??= (async () => {
    const migrations = await readMigrations();
    const checksums = migrations.map(({ checksum }) => checksum).join();
    const name = `schema_${createHash("sha256").update(checksums).digest("hex").slice(0, 16)}`;
    const client = await connect(folder);
    try {
      await client.query("SELECT pg_advisory_lock(1)");
      const { rows } = await client.query("SELECT 1 FROM pg_database WHERE datname = $1", [name]);
      if (rows.length === 0) {
        await client.query(`DROP DATABASE IF EXISTS ${name}_new`);
        await client.query(`CREATE DATABASE ${name}_new TEMPLATE template0`);
        const store = await openPostgres(urlOf(folder, `${name}_new`), longLimits);
        try {
          await migrate(store, migrations);
        } finally {
          await store.close();
        }
        await client.query(`ALTER DATABASE ${name}_new RENAME TO ${name}`);
      }
    } finally {
      await client.end();
    }
    return name;
  })();
  return template;
}

/** Bytes that are enough for all databases of a run and their write-ahead log. */
const mostStored = 2 ** 31;

/** Starts the server of this run, or waits until another file has; resolves to the folder of its socket. */
async function startServer(): Promise<string> {
  // The test runner starts each file as a child process, so all files share its process id. A file that runs alone uses its own.
  const run = process.env["NODE_TEST_CONTEXT"] === undefined ? process.pid : process.ppid;
  const root = process.getuid?.() === 0;
  const folder = join(memoryFolder(mostStored) ?? (root ? "/tmp" : tmpdir()), `brume-postgres-${run}`);
  let first = true;
  try {
    mkdirSync(folder, { mode: 0o755 });
  } catch {
    first = false;
  }
  if (first) {
    const guard = [fileURLToPath(import.meta.url), folder, String(run)];
    spawn(process.execPath, guard, { detached: true, stdio: "ignore" }).unref();
  }
  for (let waited = 0; !existsSync(join(folder, "ready")); waited += 20) {
    const failed = join(folder, "failed");
    if (existsSync(failed)) throw new Error(readFileSync(failed, "utf8"));
    if (waited > 150_000) throw new Error(`PostgreSQL for the tests did not start: see ${folder}/log`);
    await sleep(20);
  }
  return folder;
}

/** Returns the folder of `initdb` and `postgres`, from the PATH or from Debian's location. Throws if they are not installed. */
export function findBinaries(): string {
  const debian = "/usr/lib/postgresql";
  const versions = existsSync(debian) ? readdirSync(debian).sort((a, b) => Number(b) - Number(a)) : [];
  const folders = [
    ...(process.env["PATH"] ?? "").split(delimiter),
    ...versions.map((version) => join(debian, version, "bin")),
  ];
  const found = folders.find((folder) => ["initdb", "postgres"].every((file) => existsSync(join(folder, file))));
  if (found === undefined) throw new Error("PostgreSQL is not installed: run scripts/setup");
  return found;
}

/** Returns the account for PostgreSQL, which refuses to run as root. Throws if neither `postgres` nor `nobody` exists. */
export function findAccount(): { uid?: number; gid?: number } {
  if (process.getuid?.() !== 0) return {};
  for (const line of readFileSync("/etc/passwd", "utf8").split("\n").sort().reverse()) {
    const [name, , uid, gid] = line.split(":");
    if (name === "postgres" || name === "nobody") return { uid: Number(uid), gid: Number(gid) };
  }
  throw new Error("no account to run PostgreSQL: neither postgres nor nobody exists");
}

/** Runs the server while process `run` exists, then stops it and removes its folder. */
async function guard(folder: string, run: number): Promise<void> {
  const binaries = findBinaries();
  const account = findAccount();
  const { uid, gid } = account;
  if (uid !== undefined && gid !== undefined) chownSync(folder, uid, gid);
  const log = openSync(join(folder, "log"), "a");
  const env = { PATH: "/usr/bin:/bin", LC_ALL: "C", LD_LIBRARY_PATH: process.env["LD_LIBRARY_PATH"] };
  const options: SpawnOptions = { ...account, env, cwd: folder, stdio: ["ignore", log, log] };
  const data = join(folder, "data");
  const init = ["-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"];
  const { status } = spawnSync(join(binaries, "initdb"), init, options);
  if (status !== 0) throw new Error(`initdb failed: ${readFileSync(join(folder, "log"), "utf8")}`);

  const settings = ["fsync=off", "synchronous_commit=off", "full_page_writes=off", "max_connections=300"];
  settings.push("deadlock_timeout=100ms", "shared_buffers=64MB", "autovacuum=off", "max_wal_size=256MB");
  const server = spawn(
    join(binaries, "postgres"),
    ["-D", data, "-h", "", "-k", folder, ...settings.flatMap((setting) => ["-c", setting])],
    options,
  );
  let ended = false;
  server.once("exit", () => {
    ended = true;
  });
  for (;;) {
    if (ended) throw new Error(`PostgreSQL ended: ${readFileSync(join(folder, "log"), "utf8")}`);
    const client = await connect(folder).catch(() => null);
    if (client !== null) {
      await client.end();
      break;
    }
    await sleep(10);
  }
  writeFileSync(join(folder, "ready"), "");
  while (isRunning(run) && !ended) await sleep(200);
  server.kill("SIGINT");
  while (!ended) await sleep(10);
  rmSync(folder, { recursive: true, force: true });
}

if (import.meta.main) {
  const [folder = "", run] = process.argv.slice(2);
  guard(folder, Number(run)).catch((error: unknown) => writeFileSync(join(folder, "failed"), String(error)));
}
