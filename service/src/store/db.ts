/**
 * The one face of both databases. Features write Kysely against `Tables` and know neither SQLite nor PostgreSQL:
 * what differs (group commit, locks, prepared text) is decided behind `Store`.
 */
import { createHash } from "node:crypto";
import type { Compilable, DeleteResult, Expression, InsertResult, Kysely, Selectable, UpdateResult } from "kysely";
import { sql } from "kysely";
import type { Tables } from "./schema.ts";
import type { Journal, Kind, Row } from "./session.ts";
import { sessionOf } from "./session.ts";

/** Reads committed state only; never waits for a writer. */
export type Reader = Kysely<Tables>;

/** A running write transaction. Nothing but the database may be awaited inside one. */
export type Tx = Kysely<Tables> & { readonly isWrite: true };

export type Processes = "one" | "many";

export interface Store {
  readonly kind: Kind;
  /**
   * How many processes can write to this database while it is open here. `one`: only this one, so what is kept in memory is exact
   * until the next commit of this store. `many`: others can commit at any moment without a sign, so look again and keep nothing.
   */
  readonly processes: Processes;
  /** No other service has this database: what is held in it by one that is not this one is held by a dead one. */
  readonly alone: boolean;
  readonly read: Reader;
  /**
   * Runs `work` in a write transaction and resolves with its result after the commit is durable; what `work` throws
   * undoes all of it and is thrown on. Other writers may share the commit (group commit), but never see or undo each other's part.
   * `work` may run again (after a deadlock, or when a write beside it had to be undone), so it changes nothing but the database. A statement that failed
   * fails the whole transaction, caught or not: say `ON CONFLICT` where a conflict is expected. Rejects with
   * `StorageError` when the database cannot store (disk full, connection lost).
   */
  write<T>(work: (tx: Tx) => Promise<T>): Promise<T>;
  /** Why it cannot be used now, as far as that is known; null: it can. */
  trouble(): string | null;
  /** Why the last write could not be stored, while reads go on; null: it could. */
  blocked(): string | null;
  /** Refuses new writes, finishes those it took, and lets go of the database. */
  close(): Promise<void>;
}

/** One moment of a database, for as long as it is open: every read sees the same. */
export interface Snapshot {
  readonly read: Reader;
  close(): Promise<void>;
}

/** The database cannot work now: disk full, input/output error, connection lost. Nothing is wrong with the request. */
export class StorageError extends Error {
  override readonly name = "StorageError";
  /** A page of the file cannot be read, and never will; other pages can. */
  readonly isDamage: boolean;

  constructor(message: string, options: { readonly cause?: unknown; readonly isDamage?: boolean } = {}) {
    super(message, { cause: options.cause });
    this.isDamage = options.isDamage ?? false;
  }
}

/**
 * Makes writers that give the same key wait for each other until they commit. Take it before reading what must not
 * change, and several always in the same order. SQLite has one writer anyway.
 */
export async function lock(tx: Tx, key: string): Promise<void> {
  const session = sessionOf(tx);
  if (session.kind === "sqlite") return;
  await session.all("select pg_advisory_xact_lock(hashtextextended($1, 0))", [key], "lock");
}

/** A parameter's place in a query that is compiled before its values are known. */
class Place {
  readonly name: string;
  constructor(name: string) {
    this.name = name;
  }
}

type Parameter<P> = <K extends keyof P & string>(name: K) => Expression<P[K]>;

/** Reads give rows; changes without `RETURNING` give the number of rows changed, and `insert` the `id` of its one new row. */
export type Prepared<P, O> = [O] extends [InsertResult]
  ? { run(db: Tx, parameters: P): Promise<number>; insert(db: Tx, parameters: P): Promise<number> }
  : [O] extends [UpdateResult | DeleteResult]
    ? { run(db: Tx, parameters: P): Promise<number> }
    : { all(db: Reader, parameters: P): Promise<O[]>; first(db: Reader, parameters: P): Promise<O | undefined> };

interface Plan {
  readonly sql: string;
  readonly name: string;
  /** Per parameter of the text: a place to fill, or a constant that the query was built with. */
  readonly values: readonly unknown[];
}

/** How a row of one table is handed over, to be written right before the commit: see `journal.ts`. */
export function journal<Name extends keyof Tables>(
  table: Name,
  columns: readonly (Exclude<keyof Tables[Name], "id"> & string)[],
): (tx: Tx, row: Omit<Selectable<Tables[Name]>, "id">) => void {
  const made: Journal = { table, columns, texts: new Map() };
  return (tx, row) => {
    const values = columns.map((column) => (row as Record<string, unknown>)[column]);
    sessionOf(tx).append(made, values);
  };
}

/**
 * Makes rows visible that were handed over to journals before, also by those who share the commit. For a write that reads such a
 * table, and before it hands over rows of its own: those would take PostgreSQL's lock too early.
 */
export const flushJournals = (tx: Tx): Promise<void> => sessionOf(tx).flush();

/** From now on the database counts up the ids of this table from above `least`: as if that many had been given. */
export async function skipIds(tx: Tx, table: keyof Tables, least: number): Promise<void> {
  const session = sessionOf(tx);
  if (session.kind === "postgres") {
    const sequence = `pg_get_serial_sequence('${table}', 'id')`;
    await session.all(
      `SELECT setval(${sequence}, $1) WHERE coalesce(pg_sequence_last_value(${sequence}::regclass), 0) < $1`,
      [least],
    );
    return;
  }
  await session.run("UPDATE sqlite_sequence SET seq = ? WHERE name = ? AND seq < ?", [least, table, least]);
  await session.run(
    "INSERT INTO sqlite_sequence (name, seq) SELECT ?, ? WHERE NOT EXISTS (SELECT 1 FROM sqlite_sequence WHERE name = ?)",
    [table, least, table],
  );
}

/** What a database keeps the prepared text under: the same for the same text. */
const nameOf = (text: string): string => `q${createHash("sha256").update(text).digest("base64url").slice(0, 22)}`;

/**
 * A query of a hot path: built and compiled once per kind of database, then run with values only.
 *
 *     const findServer = prepare<{ id: number }>()((db, p) => db.selectFrom("server").selectAll().where("id", "=", p("id")));
 *     const server = await findServer.first(store.read, { id: 17 });
 *
 * `build` runs once and must not depend on anything outside; lists (`in`) have no fixed text and stay with plain Kysely.
 */
export function prepare<P extends object>(): <O>(
  build: (db: Reader, p: Parameter<P>) => Compilable<O>,
) => Prepared<P, O> {
  return <O>(build: (db: Reader, p: Parameter<P>) => Compilable<O>) => {
    const compiled: Partial<Record<Kind, Plan>> = {};
    const compile = (db: Reader): Plan => {
      const query = build(db, (place) => sql.val(new Place(place)) as Expression<never>).compile();
      return { sql: query.sql, name: nameOf(query.sql), values: query.parameters };
    };
    const fill = (plan: Plan, parameters: P): unknown[] =>
      plan.values.map((value) => (value instanceof Place ? parameters[value.name as keyof P] : value));
    // They hand the session's promise on as it is: `async` would wrap it in another one.
    const prepared = {
      all(db: Reader, parameters: P): Promise<Row[]> {
        const session = sessionOf(db);
        const plan = (compiled[session.kind] ??= compile(db));
        return session.all(plan.sql, fill(plan, parameters), plan.name);
      },
      first(db: Reader, parameters: P): Promise<Row | undefined> {
        const session = sessionOf(db);
        const plan = (compiled[session.kind] ??= compile(db));
        return session.first(plan.sql, fill(plan, parameters), plan.name);
      },
      run(db: Tx, parameters: P): Promise<number> {
        const session = sessionOf(db);
        const plan = (compiled[session.kind] ??= compile(db));
        return session.run(plan.sql, fill(plan, parameters), plan.name);
      },
      insert(db: Tx, parameters: P): Promise<number> {
        const session = sessionOf(db);
        const plan = (compiled[session.kind] ??= compile(db));
        return session.insert(plan.sql, fill(plan, parameters), plan.name);
      },
    };
    return prepared as unknown as Prepared<P, O>;
  };
}
