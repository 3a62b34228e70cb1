/**
 * Common interface of both databases. Features write Kysely queries against `Tables` and do not depend on SQLite or PostgreSQL.
 * Implementations of `Store` handle the differences (group commit, locks, prepared statements).
 */
import { createHash } from "node:crypto";
import type { Compilable, DeleteResult, Expression, InsertResult, Kysely, Selectable, UpdateResult } from "kysely";
import { sql } from "kysely";
import type { Log } from "../base/log.ts";
import { statementsOf } from "./journal.ts";
import type { Tables } from "./schema.ts";
import type { DatabaseKind, Journal, Row } from "./session.ts";
import { sessionOf } from "./session.ts";

/** Query builder for reads. It sees only committed state and never waits for a writer. */
export type Reader = Kysely<Tables>;

/** A running write transaction. Code inside it must await only the database. */
export type Tx = Kysely<Tables> & { readonly isWrite: true };

/** How many processes can write to a database. */
export type Processes = "one" | "many";

/** An open database. */
export interface Store {
  readonly kind: DatabaseKind;
  /**
   * Number of processes that can write to this database while it is open here. `one`: only this process, so its own commits are all
   * changes. `many`: others can commit without notification, so changes must also be found by polling.
   */
  readonly processes: Processes;
  /**
   * Returns a number that changes when another process may have written, or null while one may write at any time. A value that was read
   * from the database may be cached while this number stays the same and this process does not commit.
   */
  foreignWrites(): number | null;
  /** True if no other service uses this database: every lease that another service holds belongs to a dead one. */
  readonly alone: boolean;
  readonly read: Reader;
  /**
   * Runs `work` in a write transaction and resolves with its result after the commit is durable. An error of `work` rolls back the
   * transaction and is thrown again. Other writers may share the commit (group commit), but never see or undo each other's changes.
   * `work` may run again (after a deadlock, or when another write of the group fails), so it must change only the database. A failed
   * statement fails the whole transaction, even if it is caught: use `ON CONFLICT` where a conflict is expected. Rejects with
   * `StorageError` when the database cannot store (disk full, connection lost). With `batched`, a part of the work may be done together
   * with that of other writes: `work` then gets its output.
   */
  write<T, O = never>(work: (tx: Tx, output?: O) => Promise<T>, batched?: Batched<O>): Promise<T>;
  /** Opens a consistent view of the committed state, for reads that take many turns. The caller closes it soon: it keeps old pages. */
  snapshot(): Promise<Snapshot>;
  /** Returns why the database cannot be used now, as far as known; null if it can. */
  unavailable(): string | null;
  /** Returns why the last write could not be stored while reads still work; null if it was stored. */
  blocked(): string | null;
  /** Refuses new writes, finishes the accepted ones, and closes the database. */
  close(): Promise<void>;
}

/**
 * Work that many writes of one commit do together, because each statement that is awaited costs PostgreSQL a round trip: with a batch the
 * number of round trips does not grow with that of the writes. No effect on SQLite, which responds within the call.
 */
export interface Batch<I, O> {
  /**
   * Does the work of the inputs, which have the order of their writes, and returns an output for each. Undefined: it has done nothing
   * for this one, whose write does all its work itself, after those of the batch. If it rejects, or a write of the batch fails after it
   * wrote, nothing of it is stored and each write does its work itself.
   */
  run(tx: Tx, inputs: readonly I[]): Promise<readonly (O | undefined)[]>;
}

/** A batch with the input of one write. */
export interface Batched<O> {
  readonly batch: Batch<never, O>;
  readonly input: unknown;
}

/** Adds the input of one write to a batch. */
export const inBatch = <I, O>(batch: Batch<I, O>, input: I): Batched<O> => ({ batch, input });

/** A consistent view of a database at one moment, until it is closed. */
export interface Snapshot {
  readonly read: Reader;
  close(): Promise<void>;
}

/** The database cannot work now: disk full, input/output error, connection lost. The request itself is valid. */
export class StorageError extends Error {
  override readonly name = "StorageError";
  /** True if a page of the file is permanently unreadable. Other pages are not affected. */
  readonly isDamage: boolean;
  /** True if the disk of the database is full: reads still work. */
  readonly isFull: boolean;

  constructor(
    message: string,
    options: { readonly cause?: unknown; readonly isDamage?: boolean; readonly isFull?: boolean } = {},
  ) {
    super(message, { cause: options.cause });
    this.isDamage = options.isDamage ?? false;
    this.isFull = options.isFull ?? false;
  }
}

/**
 * Acquires the lock `key` until the commit: later statements wait for it. Call it before reading rows that must not change, and acquire
 * several locks always in the same order. No effect on SQLite, which has one writer.
 */
export async function lock(tx: Tx, key: string): Promise<void> {
  sessionOf(tx).lock(key);
}

/**
 * Lets the event loop serve reads in the middle of a transaction that changes many objects: call it after each of them. It waits only if
 * the transaction has run for some milliseconds. Other writes wait for the transaction in any case.
 */
export async function rest(tx: Tx): Promise<void> {
  await sessionOf(tx).rest();
}

/**
 * Lets the commit of this transaction end before it is on the disk. Only for changes that the service makes again after a power cut, and
 * that no response contains: leases, times of the next run, samples. No effect on PostgreSQL.
 */
export const allowLoss = (tx: Tx): void => sessionOf(tx).allowLoss();

/** Runs work of a transaction that yields where it can be interrupted, and rests there. */
export async function runResting<T>(tx: Tx, work: Generator<void, T>): Promise<T> {
  const session = sessionOf(tx);
  for (;;) {
    const { done, value } = work.next();
    if (done === true) return value;
    // A promise for each of ten thousand yields would take as long as the work.
    const resting = session.rest();
    if (resting !== null) await resting;
  }
}

/** Placeholder of a parameter in a query that is compiled before its values are known. */
class Placeholder {
  readonly name: string;
  constructor(name: string) {
    this.name = name;
  }
}

/** Returns the parameter of a prepared query with this name. */
export type Parameter<P> = <K extends keyof P & string>(name: K) => Expression<P[K]>;

/**
 * A compiled query. `all` and `first` return rows, `run` the number of changed rows, and `insert` the `id` of the one new row. `send` awaits
 * no result: the commit fails if the statement fails.
 */
export type Prepared<P, O> = [O] extends [InsertResult]
  ? {
      run(db: Tx, parameters: P): Promise<number>;
      insert(db: Tx, parameters: P): Promise<number>;
      send(db: Tx, parameters: P): void;
    }
  : [O] extends [UpdateResult | DeleteResult]
    ? { run(db: Tx, parameters: P): Promise<number>; send(db: Tx, parameters: P): void }
    : { all(db: Reader, parameters: P): Promise<O[]>; first(db: Reader, parameters: P): Promise<O | undefined> };

interface Plan {
  readonly sql: string;
  readonly name: string;
  /** For each parameter of the text a `Placeholder`, or a constant of the query. */
  readonly values: readonly unknown[];
}

/** Returns a function that queues a row of `table` for the end of its transaction: see `journal.ts`. */
export function journal<Name extends keyof Tables>(
  table: Name,
  columns: readonly (Exclude<keyof Tables[Name], "id"> & string)[],
): (tx: Tx, row: Omit<Selectable<Tables[Name]>, "id">) => void {
  const target: Journal = { table, columns, texts: new Map() };
  return (tx, row) => {
    const values = columns.map((column) => (row as Record<string, unknown>)[column]);
    sessionOf(tx).append(target, values);
  };
}

/**
 * Writes all queued journal rows now, including those of other writers of the same commit. For a write that reads a journal table. Call
 * it before queueing own rows: writing them here would hold PostgreSQL's journal lock for too long.
 */
export const flushJournals = (tx: Tx): Promise<void> => sessionOf(tx).flush();

/** Makes the next id of this table greater than `least`. No effect if it is already. */
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

/** Returns `count` new ids of this table, in ascending order, for rows that are inserted with their ids. */
export async function reserveIds(tx: Tx, table: keyof Tables, count: number): Promise<number[]> {
  const session = sessionOf(tx);
  if (session.kind === "postgres") {
    const sql = `SELECT nextval(pg_get_serial_sequence('${table}', 'id')) AS id FROM generate_series(1, $1::int)`;
    return (await session.all(sql, [count], `${table}-ids`)).map(({ id }) => id as number);
  }
  const step = () =>
    session.first("UPDATE sqlite_sequence SET seq = seq + ? WHERE name = ? RETURNING seq", [count, table]);
  let last = await step();
  if (last === undefined) {
    // The table has had no row yet.
    await skipIds(tx, table, 0);
    last = await step();
  }
  return Array.from({ length: count }, (_, index) => Number(last?.["seq"]) - count + 1 + index);
}

/**
 * Returns a function that resolves to `count` new ids, for a write that may still be refused. PostgreSQL gets the statement now, together
 * with reads, which saves a round trip. SQLite gets it with the call, because a refused write that has changed a row costs all writes of
 * its commit a second run.
 */
export function reserveEarly(tx: Tx, table: keyof Tables, count: number): () => Promise<number[]> {
  if (sessionOf(tx).kind === "sqlite") return () => reserveIds(tx, table, count);
  const ids = reserveIds(tx, table, count);
  // A failure also fails the transaction.
  ids.catch(() => {});
  return () => ids;
}

/** Returns a function that inserts many rows in few statements. It awaits no result: the commit fails if a statement fails. */
export function insertMany<Name extends keyof Tables>(
  table: Name,
  columns: readonly (keyof Tables[Name] & string)[],
): (tx: Tx, rows: readonly Selectable<Tables[Name]>[]) => void {
  const target: Journal = { table, columns, texts: new Map() };
  return (tx, rows) => {
    const session = sessionOf(tx);
    const entries = rows.map((row) => ({
      journal: target,
      values: columns.map((column) => (row as Record<string, unknown>)[column]),
    }));
    for (const { sql, values, name } of statementsOf(entries, session.kind)) session.send(sql, values, name);
  };
}

/** Returns the name of a prepared statement: equal for equal texts. */
const nameOf = (text: string): string => `q${createHash("sha256").update(text).digest("base64url").slice(0, 22)}`;

/**
 * Prepares a query of a hot path: it is built and compiled once per kind of database, then run with values only.
 *
 *     const findServer = prepare<{ id: number }>()((db, p) => db.selectFrom("server").selectAll().where("id", "=", p("id")));
 *     const server = await findServer.first(store.read, { id: 17 });
 *
 * `build` runs once and must not depend on outer state. Lists (`in`) have no fixed text: use plain Kysely for them.
 */
export function prepare<P extends object>(): <O>(
  build: (db: Reader, p: Parameter<P>) => Compilable<O>,
) => Prepared<P, O> {
  return <O>(build: (db: Reader, p: Parameter<P>) => Compilable<O>) => {
    const compiled: Partial<Record<DatabaseKind, Plan>> = {};
    const compile = (db: Reader): Plan => {
      const query = build(db, (place) => sql.val(new Placeholder(place)) as Expression<never>).compile();
      return { sql: query.sql, name: nameOf(query.sql), values: query.parameters };
    };
    const fill = (plan: Plan, parameters: P): unknown[] =>
      plan.values.map((value) => (value instanceof Placeholder ? parameters[value.name as keyof P] : value));
    // Not `async`, which would wrap the session's promise in another one.
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
      send(db: Tx, parameters: P): void {
        const session = sessionOf(db);
        const plan = (compiled[session.kind] ??= compile(db));
        session.send(plan.sql, fill(plan, parameters), plan.name);
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

/** A `Prepared` query with an `in (…)` of a list, which is the last argument and not empty. */
export interface PreparedList<P, V, O> {
  all(db: Reader, parameters: P, list: readonly V[]): Promise<O[]>;
  first(db: Reader, parameters: P, list: readonly V[]): Promise<O | undefined>;
}

/**
 * As `prepare`, for a query with `in (…)` of a list: it is compiled once for each power of two. `build` gets the values of the list, of
 * which the last is repeated.
 */
export function prepareList<P extends object, V>() {
  return <O>(
    build: (db: Reader, p: Parameter<P>, list: readonly Expression<V>[]) => Compilable<O>,
  ): PreparedList<P, V, O> => {
    type Query = {
      all(db: Reader, parameters: object): Promise<O[]>;
      first(db: Reader, parameters: object): Promise<O | undefined>;
    };
    const byLength = new Map<number, Query>();
    const of = (length: number) => {
      const known = byLength.get(length);
      if (known !== undefined) return known;
      const prepared = prepare<Record<string, V>>()((db, p) => {
        const list = Array.from({ length }, (_, index) => p(`${index}`));
        return build(db, p as unknown as Parameter<P>, list);
      }) as unknown as Query;
      byLength.set(length, prepared);
      return prepared;
    };
    const sizeOf = ({ length }: readonly V[]) => 2 ** Math.ceil(Math.log2(Math.max(1, length)));
    const valuesOf = (list: readonly V[]) =>
      Object.fromEntries(Array.from({ length: sizeOf(list) }, (_, at) => [at, list[at] ?? list.at(-1)]));
    return {
      all: (db, parameters, list) => of(sizeOf(list)).all(db, { ...parameters, ...valuesOf(list) }),
      first: (db, parameters, list) => of(sizeOf(list)).first(db, { ...parameters, ...valuesOf(list) }),
    };
  };
}

/** Returns a log that lowers lines about a `StorageError` to `debug`, because the store logs its failure itself, once. */
export const withoutStorage =
  (log: Log): Log =>
  (level, message, detail) =>
    log(isStorageError(detail) ? "debug" : level, message, detail);

const isStorageError = (detail: object | undefined): boolean =>
  detail !== undefined && "error" in detail && detail.error instanceof StorageError;
