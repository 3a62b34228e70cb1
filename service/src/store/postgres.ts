/**
 * PostgreSQL through `pg`: for installations with several hosts, or with an existing server. Readers have a pool of connections that
 * cannot write. All writes of the process share one connection and its commits (`group.ts`); statements are sent without waiting for the
 * results of earlier ones (https://node-postgres.com/features/pipelining). Transactions are READ COMMITTED. A group that the server
 * aborted because of a deadlock with another process runs again.
 */
import type { PoolClient } from "pg";
import pg from "pg";
import type { Log } from "../base/log.ts";
import type { WriteConnection } from "./connection.ts";
import type { Snapshot, Store } from "./db.ts";
import { StorageError } from "./db.ts";
import { createWriter } from "./group.ts";
import { createGuard, cut, keepalives, withDeadline, writerName } from "./guard.ts";
import type { RunQuery } from "./postgresquery.ts";
import {
  beginSnapshot,
  createReadSession,
  createStatements,
  explain,
  queries,
  queriesOn,
  query,
  send,
  types,
} from "./postgresquery.ts";
import type { Row } from "./session.ts";
import { keepStatistics } from "./statistics.ts";

/** Milliseconds for one statement. */
const statementTime = 5_000;
/** Milliseconds for a migration. */
const scriptTime = 3_600_000;
/** Snapshots that are open at once; further ones wait. */
const mostSnapshots = 8;

/** Returns a class of clients with a time limit for connecting. The pool's own limit would also apply to waiting for a free connection. */
const clientWith = (limit: number): typeof pg.Client =>
  class extends pg.Client {
    constructor(options?: pg.ClientConfig) {
      super({ ...options, connectionTimeoutMillis: limit });
      // The pool has no listener from the connection to the first use, and an error without one would end the process.
      this.on("error", () => {});
    }
  };

/** Settings of the PostgreSQL store. Times in milliseconds. */
export interface PostgresOptions {
  readonly log: Log;
  /** For a service: acquires the lock that only one service can hold, and writes only while it holds it. Default false. */
  readonly exclusive?: boolean;
  /** Milliseconds after which a statement or an attempt to connect fails. Default 5000. */
  readonly limit?: number;
}

/**
 * Opens the database at `url` (`postgresql://user@host/name`; a socket's folder as `?host=/run/postgresql`).
 * Rejects with `StorageError` when it is unreachable, and with another error when it is unsuitable or another service uses it.
 */
export async function openPostgres(
  url: string,
  { log, exclusive = false, limit = statementTime }: PostgresOptions,
): Promise<Store> {
  const options = {
    connectionString: url,
    types,
    max: 10,
    Client: clientWith(limit),
    application_name: "brume",
    idle_in_transaction_session_timeout: 60_000,
    // A working server cancels a slow statement itself, shortly before we close the connection.
    statement_timeout: limit - 500,
    keepAlive: true,
  };
  const reading = { ...options, options: `-c default_transaction_read_only=on ${keepalives}` };
  const readers = new pg.Pool(reading);
  const snapshots = new pg.Pool({ ...reading, max: mostSnapshots });
  const writers = new pg.Pool({
    ...options,
    max: 1,
    pipeline: true,
    options: keepalives,
    ...(exclusive && { application_name: writerName }),
  });
  const clients = new Set<PoolClient>();
  const pools = [readers, snapshots, writers];
  const endPools = (): Promise<unknown> => Promise.all(pools.map((pool) => pool.end()));
  for (const pool of pools) {
    pool.on("connect", (client) => clients.add(client));
    pool.on("remove", (client) => clients.delete(client));
    pool.on("error", (error) => {
      if (guard.unavailable() === null) log("warn", "An idle connection to PostgreSQL was lost.", { error });
    });
  }
  const guard = await createGuard({
    url,
    exclusive,
    log,
    onLost: () => clients.forEach(cut),
  }).catch(async (error: unknown) => {
    await endPools();
    throw explain(error);
  });
  /** Number of commits without a response: their writes may be stored although they were rejected. */
  let uncertain = 0;
  let closing: Promise<void> | undefined;

  /** Takes a connection from the pool. `release` gives it back, or closes it if it is lost. */
  async function open(pool: pg.Pool): Promise<{ readonly client: PoolClient; release(isLost?: boolean): void }> {
    const connecting = pool.connect();
    let client: PoolClient;
    try {
      client = await guard.during(connecting);
    } catch (error) {
      connecting.then(
        (late) => late.release(),
        () => {},
      );
      throw error;
    }
    let broken = false;
    // Without a listener, the loss of a connection between two statements would end the process.
    const onError = (): void => {
      broken = true;
    };
    client.on("error", onError);
    return {
      client,
      release(isLost = false) {
        client.off("error", onError);
        client.release(broken || isLost);
      },
    };
  }

  /** Runs `work` on a connection of the pool, and releases it. */
  async function using<T>(pool: pg.Pool, work: (client: PoolClient) => Promise<T>): Promise<T> {
    const { client, release } = await open(pool);
    try {
      return await work(client);
    } finally {
      release();
    }
  }

  /** The connection of the writer while a transaction uses it; two may, one behind the other. */
  let writing: { readonly opened: ReturnType<typeof open>; users: number } | null = null;

  /** Runs `work` on the connection of the writer. */
  async function usingWriter<T>(work: (client: PoolClient) => Promise<T>): Promise<T> {
    const mine = (writing ??= { opened: open(writers), users: 0 });
    mine.users += 1;
    let isLost = false;
    try {
      return await work((await mine.opened).client);
    } catch (error) {
      isLost = explain(error) instanceof StorageError;
      throw error;
    } finally {
      mine.users -= 1;
      const isLast = mine.users === 0;
      // After a failure, the next transaction waits for a new connection.
      if (writing === mine && (isLast || isLost)) writing = null;
      if (isLast) mine.opened.then(({ release }) => release()).catch(() => {});
    }
  }

  const runQuery: RunQuery = async (sql, values, name) => {
    try {
      return await using(readers, (client) => queriesOn(client, limit)(sql, values, name));
    } catch (error) {
      throw explain(error);
    }
  };

  async function snapshot(): Promise<Snapshot> {
    const { client, release } = await open(snapshots).catch((error: unknown) => {
      throw explain(error);
    });
    const runQuery = queriesOn(client, limit);
    return beginSnapshot(runQuery, async () => {
      const isLost = await runQuery("rollback", []).then(
        () => false,
        () => true,
      );
      release(isLost);
    });
  }

  /** Returns the connection of the writer. */
  function createWriteConnection(client: PoolClient): WriteConnection {
    let isOpen = false;
    const runQuery = queriesOn(client, limit);
    return {
      ...createStatements(runQuery),
      inTransaction: () => isOpen,
      // Sent with the first statement. It fails only with its connection, and then so do all later statements.
      begin() {
        isOpen = true;
        runQuery("begin isolation level read committed read write", []).catch(() => {});
      },
      async commit() {
        isOpen = false;
        const lost = guard.unavailable();
        if (lost !== null) {
          // The next transaction must not continue this one.
          cut(client);
          throw lost;
        }
        const { command } = await runQuery("commit", []).catch((error: unknown) => {
          uncertain += 1;
          throw error;
        });
        // PostgreSQL responds with ROLLBACK if a statement had failed.
        if (command !== "COMMIT") throw new Error("the transaction was not committed, because a statement failed");
      },
      async rollback() {
        isOpen = false;
        await runQuery("rollback", []);
      },
      async lock(key) {
        // The guard keeps all other writers off the database.
        if (exclusive) return;
        await runQuery("select pg_advisory_xact_lock(hashtextextended($1, 0))", [key], "lock");
      },
      async script(sql) {
        await runQuery("set local statement_timeout = 0", []);
        await send(client, scriptTime, client.query(sql));
      },
    };
  }

  const writer = createWriter({
    kind: "postgres",
    async connected(use) {
      try {
        return await usingWriter((client) => use(createWriteConnection(client)));
      } catch (error) {
        throw explain(error);
      }
    },
    queries,
    log,
  });

  const statistics = exclusive
    ? keepStatistics({
        list: async (sql) => (await runQuery(sql, [])).rows,
        async script(sql) {
          const { client, release } = await open(readers);
          // After a failure, the transaction of the script is still open: no read may continue it.
          let isLost = true;
          try {
            await withDeadline(client, scriptTime, client.query(sql));
            isLost = false;
          } finally {
            release(isLost);
          }
        },
        log,
      })
    : null;

  function close(): Promise<void> {
    closing ??= (async () => {
      await statistics?.close();
      await writer.close();
      await endPools();
      await guard.close();
    })();
    return closing;
  }

  try {
    await inspect(runQuery, log);
  } catch (error) {
    await close();
    throw error;
  }
  return {
    kind: "postgres",
    processes: "many",
    foreignWrites() {
      const acquired = guard.foreignWrites();
      return acquired === null ? null : acquired + uncertain;
    },
    alone: exclusive,
    read: queries(createReadSession(runQuery)),
    write: writer.write,
    snapshot,
    unavailable: () => guard.unavailable()?.message ?? null,
    blocked: () => null,
    close,
  };
}

/** Opens a snapshot of the committed state for a script, also while services write. Its queries may take any time. */
export async function openPostgresSnapshot(url: string): Promise<Snapshot> {
  const client = new pg.Client({
    connectionString: url,
    types,
    application_name: "brume",
    connectionTimeoutMillis: 5000,
    keepAlive: true,
    options: keepalives,
  });
  client.on("error", () => {});
  const runQuery: RunQuery = async (sql, values, name) => {
    try {
      return await client.query<Row>(query(sql, values, name));
    } catch (error) {
      throw explain(error);
    }
  };
  try {
    await client.connect();
  } catch (error) {
    throw explain(error);
  }
  return beginSnapshot(runQuery, () => client.end());
}

/** Throws if the server is unsuitable. Logs settings that make changes less durable. */
async function inspect(runQuery: RunQuery, log: Log): Promise<void> {
  const setting = async (name: string): Promise<unknown> =>
    (await runQuery("select current_setting($1) as value", [name])).rows[0]?.["value"];
  if (Number(await setting("server_version_num")) < 150_000) throw new Error("Brume needs PostgreSQL 15 or newer");
  if ((await setting("server_encoding")) !== "UTF8") throw new Error("Brume needs a database with encoding UTF8");
  for (const name of ["fsync", "synchronous_commit"]) {
    if ((await setting(name)) === "off")
      log("warn", `PostgreSQL runs with ${name} off: a loss of power can lose confirmed changes.`);
  }
}
