/**
 * Where Kysely meets a database. A session is one way to run SQL (the reader, or one write transaction); Kysely is only
 * told how to compile and where to send the text. Its own driver and transaction machinery stay unused, for a commit is
 * shared by many writers here; the prepared queries of `db.ts` find the session again behind the Kysely object.
 */

import type { CompiledQuery, DatabaseConnection, Dialect, Driver, QueryResult } from "kysely";
import { DefaultQueryExecutor, Kysely } from "kysely";
import type { Tables } from "./schema.ts";

export type Kind = "sqlite" | "postgres";

/** A row as a plain object; integers are numbers on both databases, blobs are `Uint8Array`. */
export type Row = Record<string, unknown>;

/** A table that rows are only added to: see `journal.ts`. */
export interface Journal {
  readonly table: string;
  /** Of one row, in the order of its values. */
  readonly columns: readonly string[];
  /** Statements made so far. */
  readonly texts: Map<string, string>;
}

/** Runs SQL. `name` says that the text is worth keeping prepared on a database that is told so by name. */
export interface Session {
  readonly kind: Kind;
  all(sql: string, values: readonly unknown[], name?: string): Promise<Row[]>;
  first(sql: string, values: readonly unknown[], name?: string): Promise<Row | undefined>;
  /** Resolves to the number of rows inserted, updated or deleted. */
  run(sql: string, values: readonly unknown[], name?: string): Promise<number>;
  /** Runs the INSERT of one row, without `RETURNING`, and resolves to the `id` it got. */
  insert(sql: string, values: readonly unknown[], name?: string): Promise<number>;
  /** Hands over the values of a row that is written right before the commit. Throws where there is none to come. */
  append(journal: Journal, values: readonly unknown[]): void;
  /** Writes now what was handed over by now, by this transaction and by those that share its commit. */
  flush(): Promise<void>;
  /** For Kysely, which does not know whether its text returns rows. */
  execute(sql: string, values: readonly unknown[]): Promise<{ rows: Row[]; changes: number }>;
  /** Several statements without values, as in a migration. */
  script(sql: string): Promise<void>;
}

const sessionKey = Symbol("session");

/** What `connect` makes: a Kysely that carries its session. */
type Connected = Kysely<Tables> & { readonly [sessionKey]: Session };

/** The session behind a `Reader` or `Tx`. */
export function sessionOf(db: Kysely<Tables>): Session {
  const session = (db as Partial<Connected>)[sessionKey];
  if (session === undefined) throw new Error("this Kysely object does not come from a Store");
  return session;
}

/** `append` and `flush` of a session that only reads. */
export function refuseAppend(): never {
  throw new Error("rows are put into a journal by a write");
}

const refused = async (): Promise<never> => {
  throw new Error("transactions are made by store.write()");
};

/** A Kysely does nothing with its driver here but begin transactions of its own, and it shall not. */
const driver: Driver = {
  init: async () => {},
  acquireConnection: refused,
  beginTransaction: refused,
  commitTransaction: refused,
  rollbackTransaction: refused,
  releaseConnection: async () => {},
  destroy: async () => {},
};

/** Gives sessions of one dialect a Kysely face. What does not change from session to session is made once. */
export function createFace(dialect: Dialect): (session: Session) => Kysely<Tables> {
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
        throw new Error("a stream would hold its transaction open: read page by page");
      },
    };
    const executor = new DefaultQueryExecutor(compiler, adapter, { provideConnection: (use) => use(connection) });
    return Object.assign(new Kysely<Tables>({ config, driver, executor, dialect }), { [sessionKey]: session });
  };
}
