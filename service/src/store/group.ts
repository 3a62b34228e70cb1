/**
 * Group commit: writes queued in one turn of the event loop, and in the turns right behind it, share one `BEGIN … COMMIT`, so
 * that they share its wait for the disk. Nobody is answered before the commit is durable, and not even the error of a part is
 * told before, since it may rest on what another part wrote.
 *
 * Most parts succeed, and most that fail have not written yet; so a group runs without savepoints, below which SQLite would
 * keep the former pages of every statement until the end. When a part fails after it wrote, the group is rolled back and runs
 * once more with a savepoint for each.
 *
 * Parts run one after the other. They await nothing but the database, which answers within the turn, so a group takes one
 * turn; a part that waits for something else only holds up the writers behind it, and is told on.
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

/** Parts in one commit at most, so that reads and sockets get their turn under any load. */
const largestGroup = 512;

/** Turns that a commit waits for more writers at most. */
const mostTurns = 16;

/** One connection. Each call runs one text to its end. */
export interface Connection {
  all(sql: string, values: readonly unknown[]): Row[];
  first(sql: string, values: readonly unknown[]): Row | undefined;
  run(sql: string, values: readonly unknown[]): number;
  insert(sql: string, values: readonly unknown[]): number;
  execute(sql: string, values: readonly unknown[]): { rows: Row[]; changes: number };
  script(sql: string): void;
  /** A full disk may end a transaction without being asked to. */
  inTransaction(): boolean;
  close(): void;
}

interface Part {
  readonly work: (tx: Tx) => Promise<unknown>;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/** How a part ended: what to tell its caller, and whether there is something to undo first. */
interface Outcome {
  readonly tell: () => void;
  readonly mustUndo: boolean;
}

const isRead = (sql: string): boolean => /^\s*select\b/i.test(sql);

/** Writes entries of journals, which are none afterwards. */
function writeEntries(connection: Connection, entries: Entry[]): void {
  for (const { sql, values } of statementsOf(entries, "sqlite")) connection.run(sql, values);
  entries.length = 0;
}

/** One part's way to the connection, as long as the part runs. The first error sticks, as PostgreSQL has it. */
class PartSession implements Session {
  readonly kind = "sqlite";
  readonly #connection: Connection;
  readonly #earlier: Entry[];
  failure: unknown = undefined;
  ended = false;
  /** It ran something that may have changed rows, or handed rows over. */
  wrote = false;
  readonly entries: Entry[] = [];

  /** `earlier`: what the parts before it have handed over and nobody has written yet. */
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

export interface Writer {
  write<T>(work: (tx: Tx) => Promise<T>): Promise<T>;
  /** Refuses new writes and resolves when those before are done. */
  close(): Promise<void>;
}

/** The one writer on `connection`; `face` makes a Kysely of a session. */
export function createWriter(
  connection: Connection,
  face: (session: Session) => Kysely<Tables>,
  log: Log,
  health: Pick<Health, "note" | "worked">,
): Writer {
  const inside = new AsyncLocalStorage<{ ended: boolean }>();
  const queue: Part[] = [];
  let busy: Promise<void> | undefined;
  let closed = false;

  /** Adds to `kept` what the part hands over; without it the part writes that itself. */
  async function runPart({ work, resolve, reject }: Part, kept: Entry[] | null): Promise<Outcome> {
    const session = new PartSession(connection, kept ?? []);
    const tx = Object.assign(face(session), { isWrite: true as const });
    try {
      const value = await work(tx);
      if (session.failure !== undefined) throw session.failure;
      if (kept === null) await session.flush();
      else for (const entry of session.entries) kept.push(entry);
      return { tell: () => resolve(value), mustUndo: false };
    } catch (error) {
      // A full disk or a broken one takes the whole group with it; so does anything that ended the transaction.
      if (error instanceof StorageError || session.failure instanceof StorageError) throw session.failure ?? error;
      if (!connection.inTransaction()) throw new StorageError("SQLite gave up the transaction", { cause: error });
      return { tell: () => reject(error), mustUndo: session.wrote };
    } finally {
      session.ended = true;
    }
  }

  /** False: a part must be undone, and with it all were. */
  async function runTogether(parts: readonly Part[], outcomes: Outcome[]): Promise<boolean> {
    connection.run("BEGIN IMMEDIATE", []);
    const kept: Entry[] = [];
    for (const part of parts) {
      const outcome = await runPart(part, kept);
      outcomes.push(outcome);
      if (!outcome.mustUndo) continue;
      connection.run("ROLLBACK", []);
      return parts.length === 1;
    }
    try {
      writeEntries(connection, kept);
    } catch (error) {
      if (error instanceof StorageError) throw error;
      // Whose row it was shows when each part writes its own.
      rollBack();
      return false;
    }
    connection.run("COMMIT", []);
    return true;
  }

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

  /** After an error that may have ended the transaction or not; what fails here has failed before. */
  function rollBack(): void {
    try {
      if (connection.inTransaction()) connection.run("ROLLBACK", []);
    } catch (error) {
      log("error", "a transaction could not be rolled back", { error });
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
        log("error", "a commit failed, nothing of it is stored", { writes: parts.length, error });
      rollBack();
      return;
    }
    health.worked();
    for (const { tell } of outcomes) tell();
  }

  async function flush(): Promise<void> {
    const parts = queue.splice(0, largestGroup);
    const life = { ended: false };
    const watch = nextTurn(() => {
      if (!life.ended)
        log("warn", "a write transaction waits for something other than the database, and others for it");
    });
    await inside.run(life, runGroup, parts);
    life.ended = true;
    clearImmediate(watch);
  }

  /** Waits for the end of this turn, and for more turns while each brings more writers: a commit costs as much as many of them. */
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
