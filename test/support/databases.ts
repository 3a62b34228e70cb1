/**
 * Fresh databases for tests, migrated and open. PostgreSQL is a throw-away server reachable by a unix socket only, so that
 * nothing on the machine can collide with it or be touched by it: the first test file of a run that needs it starts it,
 * the others share it, and a guard process stops it when the run is over, however that ended.
 */

import type { SpawnOptions } from "node:child_process";
import { spawn, spawnSync } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import {
  accessSync,
  chownSync,
  constants,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statfsSync,
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

export type Kind = Store["kind"];

/** Every test of something that stores loops over these. */
export const databases: readonly Kind[] = ["sqlite", "postgres"];

export interface Database {
  readonly kind: Kind;
  /** A file's path, or a URL. */
  readonly address: string;
  readonly store: Store;
  /** Opens it once more, as a restarted or second service does; SQLite allows one at a time. */
  open(): Promise<Store>;
  /** Closes every store on it that is still open and removes the database. */
  close(): Promise<void>;
}

/** A database of its own with the newest schema and no rows; `migrated: false` leaves out the schema too. */
export async function startDatabase(kind: Kind, { migrated = true } = {}): Promise<Database> {
  const { address, remove } = kind === "sqlite" ? createFile() : await createOnServer(migrated);
  const stores: Store[] = [];
  const open = async (): Promise<Store> => {
    const store = await openStore(kind, address);
    stores.push(store);
    return store;
  };
  const store = await open();
  if (migrated) await migrate(store);
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
const openStore = (kind: Kind, address: string): Promise<Store> =>
  kind === "sqlite" ? openSqlite(address, quiet) : openPostgres(address, quiet);

function createFile(): { address: string; remove(): Promise<void> } {
  // A test that needs a real disk makes its own file.
  const folder = mkdtempSync(join(memory(0) ?? tmpdir(), "brume-test-"));
  return { address: join(folder, "brume.db"), remove: async () => rmSync(folder, { recursive: true, force: true }) };
}

/** The folder of files in memory, where there is one of so many bytes: in containers it may be small. */
function memory(bytes: number): string | null {
  const folder = "/dev/shm";
  try {
    accessSync(folder, constants.W_OK);
    const { blocks, bsize } = statfsSync(folder);
    return blocks * bsize >= bytes ? folder : null;
  } catch {
    return null;
  }
}

async function createOnServer(migrated: boolean): Promise<{ address: string; remove(): Promise<void> }> {
  const folder = await startServer();
  const name = `world_${randomBytes(6).toString("hex")}`;
  const template = migrated ? await createTemplate(folder) : "template0";
  await ask(folder, `CREATE DATABASE ${name} TEMPLATE ${template}`);
  return { address: urlOf(folder, name), remove: () => ask(folder, `DROP DATABASE ${name} WITH (FORCE)`) };
}

const urlOf = (folder: string, name: string): string => `postgresql://postgres@/${name}?host=${folder}`;

async function ask(folder: string, ...statements: string[]): Promise<void> {
  const client = new pg.Client({ connectionString: urlOf(folder, "postgres") });
  await client.connect();
  try {
    for (const statement of statements) await client.query(statement);
  } finally {
    await client.end();
  }
}

let template: Promise<string> | undefined;

/** Migrates once per run: worlds are copies. Its name says which migrations it has, for they change while one works on them. */
function createTemplate(folder: string): Promise<string> {
  template ??= (async () => {
    const migrations = await readMigrations();
    const checksums = migrations.map(({ checksum }) => checksum).join();
    const name = `schema_${createHash("sha256").update(checksums).digest("hex").slice(0, 16)}`;
    const client = new pg.Client({ connectionString: urlOf(folder, "postgres") });
    await client.connect();
    try {
      await client.query("SELECT pg_advisory_lock(1)");
      const { rows } = await client.query("SELECT 1 FROM pg_database WHERE datname = $1", [name]);
      if (rows.length === 0) {
        await client.query(`DROP DATABASE IF EXISTS ${name}_new`);
        await client.query(`CREATE DATABASE ${name}_new TEMPLATE template0`);
        const store = await openPostgres(urlOf(folder, `${name}_new`), quiet);
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

/** Bytes that all worlds of a run and their journal fit into, and much else beside them. */
const mostStored = 2 ** 31;

/** Starts the server of this run, or waits for it; resolves to the folder of its socket. */
async function startServer(): Promise<string> {
  // The test runner starts each file as a process, so its own id is what they share; a file run alone is a run.
  const run = process.env["NODE_TEST_CONTEXT"] === undefined ? process.pid : process.ppid;
  const root = process.getuid?.() === 0;
  const folder = join(memory(mostStored) ?? (root ? "/tmp" : tmpdir()), `brume-postgres-${run}`);
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
    if (waited > 60_000) throw new Error(`PostgreSQL for the tests did not start: see ${folder}/log`);
    await sleep(20);
  }
  return folder;
}

/** The folder of `initdb` and `postgres`: on the PATH, or where Debian puts them. */
export function findBinaries(): string {
  const debian = "/usr/lib/postgresql";
  const versions = existsSync(debian) ? readdirSync(debian).sort((a, b) => Number(b) - Number(a)) : [];
  const folders = [
    ...(process.env["PATH"] ?? "").split(delimiter),
    ...versions.map((version) => join(debian, version, "bin")),
  ];
  const found = folders.find((folder) => ["initdb", "postgres"].every((file) => existsSync(join(folder, file))));
  if (found === undefined) throw new Error("PostgreSQL is not installed: scripts/setup does it for npm test");
  return found;
}

/** PostgreSQL refuses to run as root, and wants an account that exists. */
export function findAccount(): { uid?: number; gid?: number } {
  if (process.getuid?.() !== 0) return {};
  for (const line of readFileSync("/etc/passwd", "utf8").split("\n").sort().reverse()) {
    const [name, , uid, gid] = line.split(":");
    if (name === "postgres" || name === "nobody") return { uid: Number(uid), gid: Number(gid) };
  }
  throw new Error("there is no account to run PostgreSQL as: neither postgres nor nobody");
}

/** Runs the server as long as process `run` lives, and leaves nothing behind. */
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
  const isRunning = (): boolean => {
    try {
      return process.kill(run, 0);
    } catch {
      return false;
    }
  };
  for (;;) {
    if (ended) throw new Error(`PostgreSQL ended: ${readFileSync(join(folder, "log"), "utf8")}`);
    const answers = await ask(folder, "SELECT 1").then(
      () => true,
      () => false,
    );
    if (answers) break;
    await sleep(10);
  }
  writeFileSync(join(folder, "ready"), "");
  while (isRunning() && !ended) await sleep(200);
  server.kill("SIGINT");
  while (!ended) await sleep(10);
  rmSync(folder, { recursive: true, force: true });
}

if (import.meta.main) {
  const [folder = "", run] = process.argv.slice(2);
  try {
    await guard(folder, Number(run));
  } catch (error) {
    writeFileSync(join(folder, "failed"), (error as Error).message);
  }
}
