/**
 * PostgreSQL through `pg`: for installations with several hosts, or with an existing server. Readers have a pool of connections that
 * cannot write. All writes of the process share one connection and its commits (`group.ts`); statements are sent without waiting for the
 * results of earlier ones (https://node-postgres.com/features/pipelining). Transactions are READ COMMITTED. A group that the server
 * aborted because of a deadlock with another process runs again.
 */
import { PostgresAdapter, PostgresIntrospector, PostgresQueryCompiler } from "kysely";
import type { PoolClient, QueryResult } from "pg";
import pg from "pg";
import type { Log } from "../base/log.ts";
import type { WriteConnection } from "./connection.ts";
import type { Snapshot, Store } from "./db.ts";
import { StorageError } from "./db.ts";
import { ConflictError, createWriter } from "./group.ts";
import { createGuard, cut, keepalives, withDeadline } from "./guard.ts";
import type { Row, Session } from "./session.ts";
import { createQueryFactory, refuseAppend } from "./session.ts";
import { keepStatistics } from "./statistics.ts";

const queries = createQueryFactory({
  createDriver: () => {
    throw new Error("sessions run the SQL");
  },
  createQueryCompiler: () => new PostgresQueryCompiler(),
  createAdapter: () => new PostgresAdapter(),
  createIntrospector: (db) => new PostgresIntrospector(db),
});

type Parser = (text: string) => unknown;

/** Parsers for the same results as on SQLite: numbers for 64-bit integers, sums and booleans. */
const parsers = new Map<number, Parser>([
  [pg.types.builtins.BOOL, (text) => (text === "t" ? 1 : 0)],
  [pg.types.builtins.INT8, (text) => exact(text)],
  [pg.types.builtins.NUMERIC, (text) => (text.includes(".") ? Number(text) : exact(text))],
  [pg.types.builtins.BYTEA, (text) => new Uint8Array(Buffer.from(text.slice(2), "hex"))],
]);

function exact(text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value)) throw new RangeError(`${text} is not a safe integer`);
  return value;
}

const types: pg.CustomTypesConfig = {
  getTypeParser: (oid, format) => parsers.get(oid) ?? (pg.types.getTypeParser(oid, format) as Parser),
};

/** serialization_failure, deadlock_detected: https://www.postgresql.org/docs/current/errcodes-appendix.html */
const retryable = new Set(["40001", "40P01"]);

/** SQLSTATE classes of errors of the server, not of the statement, and codes of socket errors. */
const storageState = /^(08|53|57|58|XX|25006|55P03)/;
const socketCode = /^(E[A-Z]+|ERR_SOCKET.*)$/;

const stateOf = (error: unknown): string => {
  const code = (error as { code?: unknown } | null)?.code;
  return typeof code === "string" ? code : "";
};

/** Errors of `pg` itself about a lost connection have no code. */
const lost = /^(Connection terminated|timeout (expired|exceeded)|Client has encountered a connection error)/;

function explain(error: unknown): unknown {
  if (error instanceof StorageError) return error;
  const state = stateOf(error);
  const message = error instanceof Error ? error.message : "";
  if (retryable.has(state)) return new ConflictError(`PostgreSQL: ${message}`, { cause: error });
  if (!storageState.test(state) && !socketCode.test(state) && !lost.test(message)) return error;
  return new StorageError(`PostgreSQL: ${message || state}`, { cause: error });
}

type RunQuery = (sql: string, values: readonly unknown[], name?: string) => Promise<QueryResult<Row>>;

type Statements = Pick<WriteConnection, "all" | "first" | "run" | "insert" | "execute">;

/** Returns the statements of a connection or session; `runQuery` sends them. */
const createStatements = (runQuery: RunQuery) =>
  ({
    all: async (sql, values, name) => (await runQuery(sql, values, name)).rows,
    first: async (sql, values, name) => (await runQuery(sql, values, name)).rows[0],
    run: async (sql, values, name) => (await runQuery(sql, values, name)).rowCount ?? 0,
    async insert(sql, values, name) {
      const { rows } = await runQuery(`${sql} returning "id"`, values, name && `${name}-id`);
      return rows[0]?.["id"] as number;
    },
    async execute(sql, values) {
      const { rows, rowCount } = await runQuery(sql, values);
      return { rows, changes: rowCount ?? 0 };
    },
  }) satisfies Statements;

const createReadSession = (runQuery: RunQuery): Session => ({
  kind: "postgres",
  ...createStatements(runQuery),
  send: refuseAppend,
  append: refuseAppend,
  flush: refuseAppend,
  lock: refuseAppend,
  rest: refuseAppend,
  allowLoss: refuseAppend,
  script: refuseAppend,
});

const query = (sql: string, values: readonly unknown[], name?: string): pg.QueryConfig<unknown[]> =>
  name === undefined ? { text: sql, values: values as unknown[] } : { name, text: sql, values: values as unknown[] };

/** Milliseconds for one statement. */
const statementTime = 5_000;
/** Milliseconds for a migration. */
const scriptTime = 3_600_000;

/** Returns a class of clients with a time limit for connecting. The pool's own limit would also apply to waiting for a free connection. */
const clientWith = (limit: number): typeof pg.Client =>
  class extends pg.Client {
    constructor(options?: pg.ClientConfig) {
      super({ ...options, connectionTimeoutMillis: limit });
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
  const readers = new pg.Pool({ ...options, options: `-c default_transaction_read_only=on ${keepalives}` });
  const writers = new pg.Pool({ ...options, max: 1, pipeline: true, options: keepalives });
  const clients = new Set<PoolClient>();
  for (const pool of [readers, writers]) {
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
    await Promise.all([readers.end(), writers.end()]);
    throw explain(error);
  });
  /** Number of commits without a response: their writes may be stored although they were rejected. */
  let uncertain = 0;
  let closing: Promise<void> | undefined;

  /** Takes a connection from the pool. */
  async function open(pool: pg.Pool): Promise<{ readonly client: PoolClient; release(): void }> {
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
      release() {
        client.off("error", onError);
        client.release(broken);
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
      return await using(readers, (client) => withDeadline(client, limit, client.query<Row>(query(sql, values, name))));
    } catch (error) {
      throw explain(error);
    }
  };

  /** Returns the connection of the writer. */
  function createWriteConnection(client: PoolClient): WriteConnection {
    let isOpen = false;
    const send = async (work: Promise<QueryResult<Row>>, ms = limit): Promise<QueryResult<Row>> => {
      try {
        return await withDeadline(client, ms, work);
      } catch (error) {
        throw explain(error);
      }
    };
    const runQuery: RunQuery = (sql, values, name) => send(client.query<Row>(query(sql, values, name)));
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
        await send(client.query(sql), scriptTime);
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
        script: (sql) =>
          using(readers, async (client) => void (await withDeadline(client, scriptTime, client.query(sql)))),
        log,
      })
    : null;

  function close(): Promise<void> {
    closing ??= (async () => {
      await statistics?.close();
      await writer.close();
      await Promise.all([readers.end(), writers.end()]);
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
    snapshot: () => openPostgresSnapshot(url),
    unavailable: () => guard.unavailable()?.message ?? null,
    blocked: () => null,
    close,
  };
}

/** Opens a snapshot of the committed state, also while services write. */
export async function openPostgresSnapshot(url: string): Promise<Snapshot> {
  const client = new pg.Client({
    connectionString: url,
    types,
    application_name: "brume",
    connectionTimeoutMillis: 5000,
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
  // The snapshot is taken at the first query, not at `begin`.
  await runQuery("begin isolation level repeatable read read only; select 1", []);
  return { read: queries(createReadSession(runQuery)), close: () => client.end() };
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
