/**
 * Statements of PostgreSQL: their compiler, the types of their results, and their errors. A lost connection, a full disk or a stopping
 * server is a `StorageError`.
 */
import { PostgresAdapter, PostgresIntrospector, PostgresQueryCompiler } from "kysely";
import type { QueryResult } from "pg";
import pg from "pg";
import type { WriteConnection } from "./connection.ts";
import type { Snapshot } from "./db.ts";
import { StorageError } from "./db.ts";
import { ConflictError } from "./group.ts";
import { withDeadline } from "./guard.ts";
import type { Row, Session } from "./session.ts";
import { createQueryFactory, readOnly, refuseAppend } from "./session.ts";

/** Creates query builders for sessions on PostgreSQL. */
export const queries = createQueryFactory({
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

/** Parses results as `parsers` requires. */
export const types: pg.CustomTypesConfig = {
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

/** Returns a `StorageError` or `ConflictError` with the cause, if the server or the connection failed, else the error itself. */
export function explain(error: unknown): unknown {
  if (error instanceof StorageError) return error;
  const state = stateOf(error);
  const message = error instanceof Error ? error.message : "";
  if (retryable.has(state)) return new ConflictError(`PostgreSQL: ${message}`, { cause: error });
  if (!storageState.test(state) && !socketCode.test(state) && !lost.test(message)) return error;
  return new StorageError(`PostgreSQL: ${message || state}`, { cause: error });
}

/** Sends a statement, prepared if it has a name. */
export type RunQuery = (sql: string, values: readonly unknown[], name?: string) => Promise<QueryResult<Row>>;

type Statements = Pick<WriteConnection, "all" | "first" | "run" | "insert" | "execute">;

/** Returns the statements of a connection or session; `runQuery` sends them. */
export const createStatements = (runQuery: RunQuery) =>
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

/** Returns the session of a reader; `runQuery` sends its statements. */
export const createReadSession = (runQuery: RunQuery): Session => ({
  kind: "postgres",
  ...createStatements(runQuery),
  ...readOnly,
  script: refuseAppend,
});

/** Returns the configuration of a statement, prepared if it has a name. */
export const query = (sql: string, values: readonly unknown[], name?: string): pg.QueryConfig<unknown[]> =>
  name === undefined ? { text: sql, values: values as unknown[] } : { name, text: sql, values: values as unknown[] };

/** Resolves as `work` does on the client, within `ms` milliseconds. Rejects with the explained error. */
export async function send<T>(client: pg.ClientBase, ms: number, work: Promise<T>): Promise<T> {
  try {
    return await withDeadline(client, ms, work);
  } catch (error) {
    throw explain(error);
  }
}

/** Returns the function that sends statements on the client, each within `ms` milliseconds. */
export const queriesOn =
  (client: pg.ClientBase, ms: number): RunQuery =>
  (sql, values, name) =>
    send(client, ms, client.query<Row>(query(sql, values, name)));

/** Begins a snapshot. `close` ends it, and is called now if it cannot begin. */
export async function beginSnapshot(runQuery: RunQuery, close: () => Promise<void>): Promise<Snapshot> {
  try {
    // The snapshot is taken at the first query, not at `begin`.
    await runQuery("begin isolation level repeatable read read only; select 1", []);
  } catch (error) {
    await close();
    throw error;
  }
  return { read: queries(createReadSession(runQuery)), close };
}
