/**
 * Group commit for SQLite: writes queued in one turn of the event loop, and in the turns right after it, share one `BEGIN … COMMIT`,
 * so that they share its wait for the disk. No write resolves or rejects before the commit is durable: even the error of a part may
 * depend on rows of another part.
 *
 * Most parts succeed, and most that fail have not written yet. So a group runs without savepoints, which would make SQLite keep the
 * former pages of every statement until the end. If a part fails after it wrote, the group is rolled back and runs again with a
 * savepoint for each part.
 *
 * Parts run one after the other. They await only the database, which responds within the turn, so a group takes one turn. A part that
 * awaits something else delays the writers behind it; the service logs a warning.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import { setImmediate as nextTurn } from "node:timers";
import type { Kysely } from "kysely";
import type { Log } from "../base/log.ts";
import type { Tx } from "./db.ts";
import { StorageError } from "./db.ts";
import type { Health } from "./health.ts";
import { type Entry, statementsOf } from "./journal.ts";
import type { Tables } from "./schema.ts";
import type { Journal, Row, Session } from "./session.ts";

/** Most parts in one commit, so that reads and sockets are served under any load. */
const largestGroup = 512;

/** Most turns that a commit waits for more writers. */
const mostTurns = 16;

/** One synchronous connection. Each call runs one text to its end. */
export interface Connection {
  all(sql: string, values: readonly unknown[]): Row[];
  first(sql: string, values: readonly unknown[]): Row | undefined;
  run(sql: string, values: readonly unknown[]): number;
  insert(sql: string, values: readonly unknown[]): number;
  execute(sql: string, values: readonly unknown[]): { rows: Row[]; changes: number };
  script(sql: string): void;
  /** Returns whether a transaction is open: a full disk may end one without a statement. */
  inTransaction(): boolean;
  close(): void;
}

interface Part {
  readonly work: (tx: Tx) => Promise<unknown>;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/** Result of a part. */
interface Outcome {
  /** Resolves or rejects the caller's promise. */
  readonly finish: () => void;
  /** The part failed after it wrote. */
  readonly mustUndo: boolean;
}

const isRead = (sql: string): boolean => /^\s*select\b/i.test(sql);

/** Writes the journal entries and empties the list. */
function writeEntries(connection: Connection, entries: Entry[]): void {
  for (const { sql, values } of statementsOf(entries, "sqlite")) connection.run(sql, values);
  entries.length = 0;
}

/** Session of one part, valid while the part runs. After the first error all statements fail, as on PostgreSQL. */
class PartSession implements Session {
  readonly kind = "sqlite";
  readonly #connection: Connection;
  readonly #earlier: Entry[];
  failure: unknown = undefined;
  ended = false;
  /** It ran a statement that may have changed rows, or queued journal rows. */
  wrote = false;
  readonly entries: Entry[] = [];

  /** `earlier`: unwritten journal entries of earlier parts. */
  constructor(connection: Connection, earlier: Entry[]) {
    this.#connection = connection;
    this.#earlier = earlier;
  }

  #act<T>(sql: string, act: (connection: Connection) => T): Promise<T> {
    if (this.ended) return Promise.reject(new Error("this transaction has ended: await every statement inside it"));
    if (this.failure !== undefined) {
      const cause = this.failure;
      return Promise.reject(new Error("an earlier statement of this transaction failed", { cause }));
    }
    if (!this.wrote && !isRead(sql)) this.wrote = true;
    try {
      return Promise.resolve(act(this.#connection));
    } catch (error) {
      this.failure = error;
      return Promise.reject(error);
    }
  }

  all(sql: string, values: readonly unknown[]): Promise<Row[]> {
    return this.#act(sql, (connection) => connection.all(sql, values));
  }
  first(sql: string, values: readonly unknown[]): Promise<Row | undefined> {
    return this.#act(sql, (connection) => connection.first(sql, values));
  }
  run(sql: string, values: readonly unknown[]): Promise<number> {
    return this.#act(sql, (connection) => connection.run(sql, values));
  }
  insert(sql: string, values: readonly unknown[]): Promise<number> {
    return this.#act(sql, (connection) => connection.insert(sql, values));
  }
  append(journal: Journal, values: readonly unknown[]): void {
    if (this.ended) throw new Error("this transaction has ended");
    this.wrote = true;
    this.entries.push({ journal, values });
  }
  flush(): Promise<void> {
    return this.#act("flush", (connection) => {
      writeEntries(connection, this.#earlier);
      writeEntries(connection, this.entries);
    });
  }
  execute(sql: string, values: readonly unknown[]): Promise<{ rows: Row[]; changes: number }> {
    return this.#act(sql, (connection) => connection.execute(sql, values));
  }
  script(sql: string): Promise<void> {
    return this.#act(sql, (connection) => connection.script(sql));
  }
}

/** Collects concurrent writes into one commit. */
export interface Writer {
  /** As `Store.write`. */
  write<T>(work: (tx: Tx) => Promise<T>): Promise<T>;
  /** Refuses new writes and resolves when the earlier ones are done. */
  close(): Promise<void>;
}

/** Creates the only writer of `connection`. `queries` creates the Kysely object of a session. */
export function createWriter(
  connection: Connection,
  queries: (session: Session) => Kysely<Tables>,
  log: Log,
  health: Pick<Health, "note" | "worked">,
): Writer {
  const inside = new AsyncLocalStorage<{ ended: boolean }>();
  const queue: Part[] = [];
  let busy: Promise<void> | undefined;
  let closed = false;

  /** Runs a part. Its journal entries are added to `entries`; with null the part writes them itself. */
  async function runPart({ work, resolve, reject }: Part, entries: Entry[] | null): Promise<Outcome> {
    const session = new PartSession(connection, entries ?? []);
    const tx = Object.assign(queries(session), { isWrite: true as const });
    try {
      const value = await work(tx);
      if (session.failure !== undefined) throw session.failure;
      if (entries === null) await session.flush();
      else for (const entry of session.entries) entries.push(entry);
      return { finish: () => resolve(value), mustUndo: false };
    } catch (error) {
      // A full or broken disk fails the whole group, and so does an error that ended the transaction.
      if (error instanceof StorageError || session.failure instanceof StorageError) throw session.failure ?? error;
      if (!connection.inTransaction()) throw new StorageError("SQLite has ended the transaction", { cause: error });
      return { finish: () => reject(error), mustUndo: session.wrote };
    } finally {
      session.ended = true;
    }
  }

  /** Runs the parts without savepoints. Returns false if one failed after it wrote: then all are rolled back. */
  async function runTogether(parts: readonly Part[], outcomes: Outcome[]): Promise<boolean> {
    connection.run("BEGIN IMMEDIATE", []);
    const entries: Entry[] = [];
    for (const part of parts) {
      const outcome = await runPart(part, entries);
      outcomes.push(outcome);
      if (!outcome.mustUndo) continue;
      connection.run("ROLLBACK", []);
      return parts.length === 1;
    }
    try {
      writeEntries(connection, entries);
    } catch (error) {
      if (error instanceof StorageError) throw error;
      // The second run, in which each part writes its own entries, shows which part failed.
      rollBack();
      return false;
    }
    connection.run("COMMIT", []);
    return true;
  }

  /** Runs each part in a savepoint of its own. */
  async function runApart(parts: readonly Part[], outcomes: Outcome[]): Promise<void> {
    connection.run("BEGIN IMMEDIATE", []);
    for (const part of parts) {
      connection.run("SAVEPOINT part", []);
      const outcome = await runPart(part, null);
      outcomes.push(outcome);
      if (outcome.mustUndo) connection.run("ROLLBACK TO part", []);
      connection.run("RELEASE part", []);
    }
    connection.run("COMMIT", []);
  }

  /** Rolls back after an error that may have ended the transaction. A failure here is only logged. */
  function rollBack(): void {
    try {
      if (connection.inTransaction()) connection.run("ROLLBACK", []);
    } catch (error) {
      log("error", "Could not roll back a transaction.", { error });
    }
  }

  async function runGroup(parts: readonly Part[]): Promise<void> {
    const outcomes: Outcome[] = [];
    try {
      if (!(await runTogether(parts, outcomes))) {
        outcomes.length = 0;
        await runApart(parts, outcomes);
      }
    } catch (error) {
      for (const part of parts) part.reject(error);
      if (health.note(error) === error && !(error instanceof StorageError))
        log("error", "A commit failed; none of its writes is stored.", { writes: parts.length, error });
      rollBack();
      return;
    }
    health.worked();
    for (const { finish } of outcomes) finish();
  }

  async function flush(): Promise<void> {
    const parts = queue.splice(0, largestGroup);
    const life = { ended: false };
    const watch = nextTurn(() => {
      if (!life.ended)
        log("warn", "A write transaction awaits something other than the database and blocks all writers.");
    });
    await inside.run(life, runGroup, parts);
    life.ended = true;
    clearImmediate(watch);
  }

  /** Waits for the end of this turn, and for more turns while each adds writers: one commit is as expensive as many writes. */
  async function gather(): Promise<void> {
    for (let turn = 0, before = 0; turn < mostTurns && queue.length > before && queue.length < largestGroup; turn++) {
      before = queue.length;
      await new Promise<void>((resolve) => nextTurn(resolve));
    }
  }

  function schedule(): void {
    busy ??= gather()
      .then(flush)
      .finally(() => {
        busy = undefined;
        if (queue.length > 0) schedule();
      });
  }

  return {
    write<T>(work: (tx: Tx) => Promise<T>): Promise<T> {
      if (closed) return Promise.reject(new Error("the store is closed"));
      if (inside.getStore()?.ended === false) {
        return Promise.reject(new Error("a write inside a write would wait for itself: pass the transaction on"));
      }
      return new Promise<T>((resolve, reject) => {
        queue.push({ work, resolve: resolve as (value: unknown) => void, reject });
        schedule();
      });
    },
    async close() {
      closed = true;
      while (busy !== undefined) await busy;
    },
  };
}
