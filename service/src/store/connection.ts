/**
 * What `group.ts` needs of the connection that writes. SQLite runs each statement at once; PostgreSQL receives it in the order of the
 * calls and responds later. So the results are values or promises.
 */
import type { Row } from "./session.ts";

/** A result that is there at once, or later. */
export type Awaitable<T> = T | Promise<T>;

/** One connection. SQLite's runs each text at once; PostgreSQL's sends the texts in their order and resolves later. */
export interface Connection {
  all(sql: string, values: readonly unknown[], name?: string): Awaitable<Row[]>;
  first(sql: string, values: readonly unknown[], name?: string): Awaitable<Row | undefined>;
  run(sql: string, values: readonly unknown[], name?: string): Awaitable<number>;
  insert(sql: string, values: readonly unknown[], name?: string): Awaitable<number>;
  execute(sql: string, values: readonly unknown[]): Awaitable<{ rows: Row[]; changes: number }>;
  script(sql: string): Awaitable<void>;
}

/** The connection of a writer. */
export interface WriteConnection extends Connection {
  begin(): Awaitable<void>;
  /** Rejects unless everything since `begin` is durable, or only stored with `isDurable` false. Runs at once, and may resolve later. */
  commit(isDurable: boolean): Awaitable<void>;
  rollback(): Awaitable<void>;
  /** Acquires the lock `key` until the commit. */
  lock(key: string): Awaitable<void>;
  /** Returns whether a transaction is open: a full disk may end one without a statement. */
  inTransaction(): boolean;
}
