/**
 * Loses the network between a service and PostgreSQL in the middle of a commit, in a network namespace of its own, and starts another
 * service. Prints as JSON whether that could start, and the sessions of the first one that still have a transaction.
 */
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { sql } from "kysely";
import pg from "pg";
import { StorageError } from "../../service/src/store/db.ts";
import { openPostgres } from "../../service/src/store/postgres.ts";
import { startPostgres } from "../support/postgresserver.ts";

/** Opens the store as a service does. On the same host it would not wait for the lock of a living process: see `startElsewhere`. */
const open = (url: string) => openPostgres(url, { log: () => {}, exclusive: true });
const [lost, urlOfSecond] = process.argv.slice(2);
if (urlOfSecond !== undefined) {
  await (await open(urlOfSecond)).close();
  process.exit();
}

/** Resolves to whether a service on another host can start. */
async function startElsewhere(url: string): Promise<boolean> {
  const program = 'hostname elsewhere && exec "$0" "$@"';
  const own = [process.execPath, import.meta.filename, "second", url];
  const child = spawn("unshare", ["--uts", "sh", "-c", program, ...own], { stdio: "inherit" });
  const [code] = (await once(child, "exit")) as [number | null];
  return code === 0;
}

const drop = (what: string): void =>
  void execFileSync("nft", [`add rule inet lost packets meta l4proto tcp ${what} drop`]);

execFileSync("nft", ["add table inet lost; add chain inet lost packets { type filter hook input priority 0; }"]);
const server = await startPostgres(["-c", "listen_addresses=127.0.0.1", "-c", "fsync=off"]);
const observer = new pg.Client({ connectionString: server.url });
await observer.connect();
await observer.query("create table written (n int)");
const first = await open("postgresql://postgres@127.0.0.1:5432/postgres");
if (lost === "lock") {
  // The response to a check of the lock is lost, and then the connection.
  drop("tcp sport 5432");
  await sleep(1200);
  drop("");
} else {
  const writing = first.write(async (tx) => {
    await sql`insert into written values (1)`.execute(tx);
    drop("");
  });
  const reason = await writing.then(
    () => null,
    (error: unknown) => error,
  );
  if (!(reason instanceof StorageError)) throw new Error("the commit did not fail", { cause: reason });
}
const hasStarted = await startElsewhere(server.url);
const { rows } = await observer.query<{ query: string }>(
  "select query from pg_stat_activity where state like 'idle in transaction%'",
);
process.stdout.write(JSON.stringify({ hasStarted, open: rows.map(({ query }) => query) }));
await observer.end();
await server.close();
process.exit();
