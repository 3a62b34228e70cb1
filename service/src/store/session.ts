/**
 * Connects Kysely to a database. A session runs SQL for the reader or for one write transaction. Kysely only compiles queries; its
 * driver and its transactions are not used, because many writers share a commit here. The prepared queries of `db.ts` get the session
 * of a Kysely object with `sessionOf`.
 */

import type { CompiledQuery, DatabaseConnection, Dialect, Driver, QueryResult } from "kysely";
import { DefaultQueryExecutor, Kysely } from "kysely";
import type { Tables } from "./schema.ts";

/** The database program of a store. */
export type DatabaseKind = "sqlite" | "postgres";

/** A row as a plain object; integers are numbers on both databases, blobs are `Uint8Array`. */
export type Row = Record<string, unknown>;

/** An append-only table: see `journal.ts`. */
export interface Journal {
  readonly table: string;
  /** Columns of a row, in the order of its values. */
  readonly columns: readonly string[];
  /** Cache of INSERT statements by kind of database and number of rows. */
  readonly texts: Map<string, string>;
}

/** Runs SQL. With a `name`, PostgreSQL keeps the statement prepared under it. */
export interface Session {
  readonly kind: DatabaseKind;
  all(sql: string, values: readonly unknown[], name?: string): Promise<Row[]>;
  first(sql: string, values: readonly unknown[], name?: string): Promise<Row | undefined>;
  /** Resolves to the number of rows inserted, updated or deleted. */
  run(sql: string, values: readonly unknown[], name?: string): Promise<number>;
  /** Runs an INSERT of one row, without `RETURNING`, and resolves to its `id`. */
  insert(sql: string, values: readonly unknown[], name?: string): Promise<number>;
  /** Runs a statement whose result is not needed: the commit fails if it fails. On PostgreSQL this saves a round trip. */
  send(sql: string, values: readonly unknown[], name?: string): void;
  /** Queues the values of a row to be written right before the commit. Throws in a session that only reads. */
  append(journal: Journal, values: readonly unknown[]): void;
  /** Writes all queued rows now, of this transaction and of those that share its commit. */
  flush(): Promise<void>;
  /** Acquires the lock `key` until the commit. Statements that are sent later wait for it. */
  lock(key: string): void;
  /** Lets the event loop serve reads if the transaction has run for a slice; null: it has not. Other writes wait. */
  rest(): Promise<void> | null;
  /** Lets the commit end before its rows are on the disk: a power cut may undo it. Other transactions of the commit may still need the disk. */
  allowLoss(): void;
  /** Runs a text of Kysely, which does not know whether it returns rows. */
  execute(sql: string, values: readonly unknown[]): Promise<{ rows: Row[]; changes: number }>;
  /** Runs several statements without values, as in a migration. */
  script(sql: string): Promise<void>;
}

const sessionKey = Symbol("session");

/** A Kysely object with its session. */
type Connected = Kysely<Tables> & { readonly [sessionKey]: Session };

/** Returns the session of a `Reader` or `Tx`. Throws for another Kysely object. */
export function sessionOf(db: Kysely<Tables>): Session {
  const session = (db as Partial<Connected>)[sessionKey];
  if (session === undefined) throw new Error("this Kysely object does not come from a Store");
  return session;
}

/** Throws, instead of what only a write transaction can do. */
export function refuseAppend(): never {
  throw new Error("rows can be appended to a journal, and locks acquired, only in a write transaction");
}

/** The functions of a session that one that only reads refuses. */
export const readOnly = {
  send: refuseAppend,
  append: refuseAppend,
  flush: refuseAppend,
  lock: refuseAppend,
  rest: refuseAppend,
  allowLoss: refuseAppend,
} as const;

const refused = async (): Promise<never> => {
  throw new Error("start transactions with store.write()");
};

/** Driver for Kysely that refuses transactions: they start with `Store.write`. */
const driver: Driver = {
  init: async () => {},
  acquireConnection: refused,
  beginTransaction: refused,
  commitTransaction: refused,
  rollbackTransaction: refused,
  releaseConnection: async () => {},
  destroy: async () => {},
};

/** Returns a function that creates a Kysely object for a session of this dialect. Compiler and adapter are created only once. */
export function createQueryFactory(dialect: Dialect): (session: Session) => Kysely<Tables> {
  const compiler = dialect.createQueryCompiler();
  const adapter = dialect.createAdapter();
  const config = { dialect };
  return (session) => {
    const connection: DatabaseConnection = {
      async executeQuery<R>(query: CompiledQuery): Promise<QueryResult<R>> {
        const { rows, changes } = await session.execute(query.sql, query.parameters);
        return { rows: rows as R[], numAffectedRows: BigInt(changes) };
      },
      streamQuery: () => {
        throw new Error("streams are not supported, because they keep a transaction open: read page by page");
      },
    };
    const executor = new DefaultQueryExecutor(compiler, adapter, { provideConnection: (use) => use(connection) });
    return Object.assign(new Kysely<Tables>({ config, driver, executor, dialect }), { [sessionKey]: session });
  };
}
