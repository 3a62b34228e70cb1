/**
 * Group commit: writes queued in one turn of the event loop, and in the turns right after it, share one `BEGIN … COMMIT`, so that they
 * share its wait for the disk. No write resolves or rejects before the commit is durable: even the error of a part may depend on rows of
 * another part.
 *
 * Most parts succeed, and most that fail have not written yet. So a group runs without savepoints, which would make SQLite keep the
 * former pages of every statement until the end. If a part fails after it wrote, the group is rolled back and runs again with a
 * savepoint for each part.
 *
 * Parts run one after the other. They await only the database. SQLite responds within the turn, so a group takes one turn; there, a part
 * that awaits something else delays the writers behind it, and the service logs a warning. PostgreSQL receives statements in their order
 * without waiting for the results of earlier ones. On SQLite, a group takes about one slice of the event loop: the other parts follow in
 * the next one, and a long part rests between its objects.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import { setImmediate as nextTurn } from "node:timers";
import { setTimeout as sleep } from "node:timers/promises";
import type { Kysely } from "kysely";
import type { Log } from "../base/log.ts";
import { createTurn, type Turn } from "../base/turn.ts";
import type { Awaitable, WriteConnection } from "./connection.ts";
import type { Tx } from "./db.ts";
import { StorageError } from "./db.ts";
import type { Health } from "./health.ts";
import { type Entry, statementsOf } from "./journal.ts";
import type { Tables } from "./schema.ts";
import type { DatabaseKind, Journal, Row, Session } from "./session.ts";

/** Most parts in one commit, so that reads and sockets are served under any load. */
const largestGroup: Readonly<Record<DatabaseKind, number>> = { sqlite: 512, postgres: 128 };

/** Tries of one group. The pause before the second is 5 ms, and doubles each time. */
const tries = 6;

/** Most turns that a commit waits for more writers. */
const mostTurns = 16;

/** The database ended the transaction because of another process, for example in a deadlock: it can succeed when it runs again. */
export class ConflictError extends Error {
  override readonly name = "ConflictError";
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
  /** The commit must be on the disk before it ends. */
  readonly isDurable: boolean;
}

const isRead = (sql: string): boolean => /^\s*select\b/i.test(sql);

/** Writes the journal entries and empties the list. The lock keeps the ids of all processes in the order of commits. */
async function writeEntries(kind: DatabaseKind, connection: WriteConnection, entries: Entry[]): Promise<void> {
  if (entries.length === 0) return;
  const statements = statementsOf(entries.splice(0), kind);
  await Promise.all([
    connection.lock("journal"),
    ...Array.from(statements, ({ sql, values, name }) => connection.run(sql, values, name)),
  ]);
}

/** What the parts of a group share while it runs. */
interface Life {
  ended: boolean;
  /** A part has given its turn of the event loop away. */
  rested: boolean;
  /** No part runs: the beginning or the commit waits for the disk. */
  atDisk: boolean;
  readonly turn: Turn;
}

/** Session of one part, valid while the part runs. After the first error all statements fail, on both databases. */
class PartSession implements Session {
  readonly kind: DatabaseKind;
  readonly #connection: WriteConnection;
  readonly #earlier: Entry[];
  /** The last statement that was sent. Earlier ones have ended before it. */
  #last: Promise<unknown> | undefined;
  failure: unknown = undefined;
  ended = false;
  /** It ran a statement that may have changed rows, or queued journal rows. */
  wrote = false;
  #canLose = false;
  readonly entries: Entry[] = [];

  readonly #life: Life;

  /** `earlier`: unwritten journal entries of earlier parts. */
  constructor(kind: DatabaseKind, connection: WriteConnection, earlier: Entry[], life: Life) {
    this.kind = kind;
    this.#connection = connection;
    this.#earlier = earlier;
    this.#life = life;
  }

  #fail(error: unknown): never {
    const cause = this.failure;
    if (cause !== undefined) throw new Error("an earlier statement of this transaction failed", { cause });
    this.failure = error;
    throw error;
  }

  #act<T>(sql: string, act: (connection: WriteConnection) => Awaitable<T>): Promise<T> {
    if (this.ended) return Promise.reject(new Error("this transaction has ended: await every statement inside it"));
    if (this.failure !== undefined) {
      const cause = this.failure;
      return Promise.reject(new Error("an earlier statement of this transaction failed", { cause }));
    }
    if (!this.wrote && !isRead(sql)) this.wrote = true;
    try {
      const result = act(this.#connection);
      if (!(result instanceof Promise)) return Promise.resolve(result);
      const checked = result.catch((error: unknown) => this.#fail(error));
      this.#last = checked;
      return checked;
    } catch (error) {
      this.failure = error;
      return Promise.reject(error);
    }
  }

  /** Resolves when all statements have ended. */
  async settle(): Promise<void> {
    await this.#last?.catch(() => {});
  }

  all(sql: string, values: readonly unknown[], name?: string): Promise<Row[]> {
    return this.#act(sql, (connection) => connection.all(sql, values, name));
  }
  first(sql: string, values: readonly unknown[], name?: string): Promise<Row | undefined> {
    return this.#act(sql, (connection) => connection.first(sql, values, name));
  }
  run(sql: string, values: readonly unknown[], name?: string): Promise<number> {
    return this.#act(sql, (connection) => connection.run(sql, values, name));
  }
  insert(sql: string, values: readonly unknown[], name?: string): Promise<number> {
    return this.#act(sql, (connection) => connection.insert(sql, values, name));
  }
  append(journal: Journal, values: readonly unknown[]): void {
    if (this.ended) throw new Error("this transaction has ended");
    this.wrote = true;
    this.entries.push({ journal, values });
  }
  flush(): Promise<void> {
    return this.#act("flush", async (connection) => {
      await writeEntries(this.kind, connection, this.#earlier);
      await writeEntries(this.kind, connection, this.entries);
    });
  }
  lock(key: string): void {
    // Later statements wait for the lock, and fail if it fails.
    this.#act("select", (connection) => connection.lock(key)).catch(() => {});
  }
  async rest(): Promise<void> {
    if (!this.#life.turn.isOver()) return;
    this.#life.rested = true;
    await this.#life.turn.next();
  }
  allowLoss(): void {
    this.#canLose = true;
  }
  isDurable(): boolean {
    return this.wrote && !this.#canLose;
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

/** What a writer needs of its database. */
export interface WriterOptions {
  readonly kind: DatabaseKind;
  /** Runs `use` with the only connection that writes. */
  readonly connected: <T>(use: (connection: WriteConnection) => Promise<T>) => Promise<T>;
  /** Creates the Kysely object of a session. */
  readonly queries: (session: Session) => Kysely<Tables>;
  readonly log: Log;
  readonly health?: Pick<Health, "note" | "worked">;
}

/** Creates the writer of a database. */
export function createWriter({ kind, connected, queries, log, health }: WriterOptions): Writer {
  const inside = new AsyncLocalStorage<Life>();
  const queue: Part[] = [];
  let busy: Promise<void> | undefined;
  let closed = false;

  /** Runs a part. Its journal entries are added to `entries`; with null the part writes them itself. */
  async function runPart(
    connection: WriteConnection,
    { work, resolve, reject }: Part,
    entries: Entry[] | null,
    life: Life,
  ): Promise<Outcome> {
    const session = new PartSession(kind, connection, entries ?? [], life);
    const tx = Object.assign(queries(session), { isWrite: true as const });
    try {
      const value = await work(tx);
      await session.settle();
      if (session.failure !== undefined) throw session.failure;
      if (entries === null) await session.flush();
      else for (const entry of session.entries) entries.push(entry);
      return { finish: () => resolve(value), mustUndo: false, isDurable: session.isDurable() };
    } catch (error) {
      await session.settle();
      const { failure } = session;
      // A full or broken disk fails the whole group, and so does an error that ended the transaction.
      if (error instanceof StorageError || failure instanceof StorageError) throw failure ?? error;
      if (failure instanceof ConflictError) throw failure;
      if (!connection.inTransaction())
        throw new StorageError("the database has ended the transaction", { cause: error });
      // On PostgreSQL, a failed statement fails all later statements of its transaction.
      return {
        finish: () => reject(error),
        mustUndo: session.wrote || (kind === "postgres" && failure !== undefined),
        isDurable: false,
      };
    } finally {
      session.ended = true;
    }
  }

  /**
   * Runs the parts without savepoints. On SQLite, only those that fit into the turn. Returns false if one failed after it wrote: then all
   * are rolled back.
   */
  async function runTogether(
    connection: WriteConnection,
    parts: readonly Part[],
    outcomes: Outcome[],
    life: Life,
  ): Promise<boolean> {
    life.atDisk = true;
    await connection.begin();
    life.atDisk = false;
    const entries: Entry[] = [];
    for (const part of parts) {
      const outcome = await runPart(connection, part, entries, life);
      outcomes.push(outcome);
      if (outcome.mustUndo) {
        await connection.rollback();
        return parts.length === 1;
      }
      if (kind === "sqlite" && life.turn.isOver()) break;
    }
    const isDurable = outcomes.some((outcome) => outcome.isDurable);
    const writing = writeEntries(kind, connection, entries);
    // PostgreSQL gets the commit together with the entries, and refuses it if one of them fails.
    const committing = kind === "postgres" ? Promise.resolve(connection.commit(isDurable)) : null;
    const committed = committing?.catch(() => {});
    try {
      await writing;
    } catch (error) {
      await committed;
      if (error instanceof StorageError || error instanceof ConflictError) throw error;
      // The second run, in which each part writes its own entries, shows which part failed.
      await rollBack(connection);
      return false;
    }
    life.atDisk = true;
    await (committing ?? connection.commit(isDurable));
    return true;
  }

  /** Runs each part in a savepoint of its own. */
  async function runApart(
    connection: WriteConnection,
    parts: readonly Part[],
    outcomes: Outcome[],
    life: Life,
  ): Promise<void> {
    life.atDisk = true;
    await connection.begin();
    life.atDisk = false;
    for (const part of parts) {
      await connection.run("SAVEPOINT part", []);
      const outcome = await runPart(connection, part, null, life);
      outcomes.push(outcome);
      if (outcome.mustUndo) await connection.run("ROLLBACK TO part", []);
      await connection.run("RELEASE part", []);
    }
    life.atDisk = true;
    await connection.commit(outcomes.some(({ isDurable }) => isDurable));
  }

  /** Rolls back after an error that may have ended the transaction. A failure here is only logged. */
  async function rollBack(connection: WriteConnection): Promise<void> {
    try {
      if (connection.inTransaction()) await connection.rollback();
    } catch (error) {
      if (!(error instanceof StorageError)) log("error", "Could not roll back a transaction.", { error });
    }
  }

  /** Runs the parts until they are committed. Returns the results of the first ones; the others have not run. */
  const commit = (connection: WriteConnection, parts: readonly Part[], life: Life): Promise<Outcome[]> =>
    (async () => {
      const outcomes: Outcome[] = [];
      if (await runTogether(connection, parts, outcomes, life)) return outcomes;
      outcomes.length = 0;
      await runApart(connection, parts, outcomes, life);
      return outcomes;
    })().catch(async (error: unknown) => {
      await rollBack(connection);
      throw error;
    });

  async function runGroup(parts: readonly Part[], life: Life): Promise<void> {
    for (let tried = 1; ; tried++) {
      try {
        const outcomes = await connected((connection) => commit(connection, parts, life));
        health?.worked();
        queue.unshift(...parts.slice(outcomes.length));
        for (const { finish } of outcomes) finish();
        return;
      } catch (error) {
        if (error instanceof ConflictError && tried < tries) {
          await sleep(5 * 2 ** (tried - 1));
          continue;
        }
        for (const part of parts) part.reject(error);
        health?.note(error);
        if (!(error instanceof StorageError))
          log("error", "A commit failed; none of its writes is stored.", { writes: parts.length, error });
        return;
      }
    }
  }

  async function flush(): Promise<void> {
    const parts = queue.splice(0, largestGroup[kind]);
    const life: Life = { ended: false, rested: false, atDisk: false, turn: createTurn() };
    // PostgreSQL never responds within the turn.
    const watch =
      kind === "sqlite"
        ? nextTurn(() => {
            if (!life.ended && !life.rested && !life.atDisk)
              log("warn", "A write transaction awaits something other than the database and blocks all writers.");
          })
        : undefined;
    await inside.run(life, runGroup, parts, life);
    life.ended = true;
    clearImmediate(watch);
  }

  /** Waits for the end of this turn, and for more turns while each adds writers: one commit is as expensive as many writes. */
  async function gather(): Promise<void> {
    const most = largestGroup[kind];
    for (let turn = 0, before = 0; turn < mostTurns && queue.length > before && queue.length < most; turn++) {
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
