/**
 * Group commit: writes queued in one turn of the event loop, and in the turns right after it, share one `BEGIN … COMMIT`, so that they
 * share its wait for the disk. No write resolves or rejects before the commit is durable: even the error of a part may depend on rows of
 * another part.
 *
 * Most parts succeed, and most that fail have not written yet. So a group runs without savepoints, which would make SQLite keep the
 * former pages of every statement until the end. If a part fails after it wrote, the group is rolled back and runs again with a
 * savepoint for each part.
 *
 * Parts run one after the other, except those of a batch (`db.ts`). They await only the database. SQLite responds within the turn, so a
 * group takes one turn; there, a part that awaits something else delays the writers behind it, and the service logs a warning. PostgreSQL
 * receives statements in their order without waiting for the results of earlier ones, and a group while the former one is committed. On
 * SQLite, a group takes about one slice of the event loop: the other parts follow in the next one, and a long part rests between its
 * objects.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import { setImmediate as nextTurn } from "node:timers";
import { setTimeout as sleep } from "node:timers/promises";
import type { Kysely } from "kysely";
import type { Log } from "../base/log.ts";
import { createTurn } from "../base/turn.ts";
import type { WriteConnection } from "./connection.ts";
import type { Batched, Store, Tx } from "./db.ts";
import { StorageError } from "./db.ts";
import type { Health } from "./health.ts";
import type { Entry } from "./journal.ts";
import { createLane, type Passage } from "./lane.ts";
import { type Life, PartSession, writeEntries } from "./part.ts";
import type { Tables } from "./schema.ts";
import type { DatabaseKind, Session } from "./session.ts";

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
  readonly work: (tx: Tx, output?: unknown) => Promise<unknown>;
  readonly batched: Batched<unknown> | undefined;
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
  /** Resolves when its statements have ended, and rejects if one failed. */
  readonly finished: () => Promise<void>;
}

/** Parts of a group in the order in which they run. */
interface Order {
  /** Parts with their outputs of a batch: they run at the same time, because they read nothing that another one writes. */
  readonly together: ReadonlyMap<Part, unknown>;
  readonly others: readonly Part[];
  /** Resolve when the statements of the batches have ended, and reject if one failed. */
  readonly finished: readonly (() => Promise<void>)[];
}

/** Collects concurrent writes into one commit. */
export interface Writer {
  /** As `Store.write`. */
  readonly write: Store["write"];
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
  const lane = createLane();
  const groups = new Set<Promise<void>>();
  let starting: Promise<void> | undefined;
  /** Number of parts in `groups`. */
  let underWay = 0;
  let closed = false;

  const createTx = (session: PartSession): Tx => Object.assign(queries(session), { isWrite: true as const });

  /**
   * Runs a part. Its journal entries are added to `entries`, and statements whose results it does not need may still run; with null the
   * part writes its entries itself, and all its statements have ended.
   */
  async function runPart(
    connection: WriteConnection,
    { work, resolve, reject }: Part,
    entries: Entry[] | null,
    life: Life,
    output?: unknown,
  ): Promise<Outcome> {
    const session = new PartSession(kind, connection, entries ?? [], life);
    const finished = () => session.finished();
    try {
      const value = await work(createTx(session), output);
      await session.settle(entries !== null);
      if (session.failure !== undefined) throw session.failure;
      if (entries === null) await session.flush();
      else for (const entry of session.entries) entries.push(entry);
      return { finish: () => resolve(value), mustUndo: false, isDurable: session.isDurable(), finished };
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
        // The batch of a part has written for it.
        mustUndo: output !== undefined || session.wrote || (kind === "postgres" && failure !== undefined),
        isDurable: false,
        finished,
      };
    } finally {
      session.ended = true;
    }
  }

  /** Runs the batches of the parts. Their journal entries are added to `entries`. Returns null if one failed. */
  async function runBatches(
    connection: WriteConnection,
    parts: readonly Part[],
    entries: Entry[],
    life: Life,
  ): Promise<Order | null> {
    const together = new Map<Part, unknown>();
    const finished: (() => Promise<void>)[] = [];
    for (const [batched, some] of Map.groupBy(parts, (part) => part.batched?.batch)) {
      if (batched === undefined) continue;
      const session = new PartSession(kind, connection, entries, life);
      const inputs = some.map((part) => part.batched?.input as never);
      try {
        const outputs = await batched.run(createTx(session), inputs);
        await session.settle(true);
        if (session.failure !== undefined) throw session.failure;
        for (const [index, part] of some.entries())
          if (outputs[index] !== undefined) together.set(part, outputs[index]);
      } catch (error) {
        await session.settle();
        const cause = session.failure ?? error;
        if (cause instanceof StorageError || cause instanceof ConflictError) throw cause;
        log("error", "A batch of writes failed; each of them runs by itself.", { writes: some.length, error });
        return null;
      } finally {
        session.ended = true;
      }
      for (const entry of session.entries) entries.push(entry);
      finished.push(() => session.finished());
    }
    return { together, others: parts.filter((part) => !together.has(part)), finished };
  }

  /**
   * Runs the parts without savepoints. On SQLite, only those that fit into the turn. Returns null if one failed after it wrote: then all
   * are rolled back.
   */
  async function runTogether(
    connection: WriteConnection,
    parts: readonly Part[],
    life: Life,
    passage: Passage,
  ): Promise<Outcome[] | null> {
    const outcomes: Outcome[] = [];
    life.atDisk = true;
    await connection.begin();
    life.atDisk = false;
    const entries: Entry[] = [];
    const order =
      kind === "postgres"
        ? await runBatches(connection, parts, entries, life)
        : { together: new Map<Part, unknown>(), others: parts, finished: [] };
    if (order === null) {
      await connection.rollback();
      return null;
    }
    const { together, others, finished } = order;
    const own = Array.from(together, () => [] as Entry[]);
    outcomes.push(
      ...(await Promise.all(
        Array.from(together, ([part, output], index) => runPart(connection, part, own[index] ?? [], life, output)),
      )),
    );
    entries.push(...own.flat());
    const undo = async (): Promise<Outcome[] | null> => {
      await connection.rollback();
      return parts.length === 1 ? outcomes : null;
    };
    if (outcomes.some(({ mustUndo }) => mustUndo)) return undo();
    for (const part of others) {
      const outcome = await runPart(connection, part, entries, life);
      outcomes.push(outcome);
      if (outcome.mustUndo) return undo();
      if (kind === "sqlite" && life.turn.isOver()) break;
    }
    // A part of a batch has written, even if it wrote nothing itself.
    const isDurable = together.size > 0 || outcomes.some((outcome) => outcome.isDurable);
    const writing = Promise.all([
      writeEntries(kind, connection, entries, life),
      ...finished.map((each) => each()),
      ...outcomes.map((outcome) => outcome.finished()),
    ]);
    // PostgreSQL gets the commit together with the entries, and refuses it if one of them fails.
    const committing = kind === "postgres" ? Promise.resolve(connection.commit(isDurable)) : null;
    const committed = committing?.catch(() => {});
    if (committing !== null) passage.sent();
    try {
      await writing;
    } catch (error) {
      await committed;
      if (error instanceof StorageError || error instanceof ConflictError) throw error;
      // The second run, in which each part writes its own entries, shows which part failed.
      await rollBack(connection);
      return null;
    }
    life.atDisk = true;
    await (committing ?? connection.commit(isDurable));
    return outcomes;
  }

  /** Runs each part in a savepoint of its own. */
  async function runApart(connection: WriteConnection, parts: readonly Part[], life: Life): Promise<Outcome[]> {
    const outcomes: Outcome[] = [];
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
    return outcomes;
  }

  /** Rolls back after an error that may have ended the transaction. A failure here is only logged. */
  async function rollBack(connection: WriteConnection): Promise<void> {
    try {
      if (connection.inTransaction()) await connection.rollback();
    } catch (error) {
      if (!(error instanceof StorageError)) log("error", "Could not roll back a transaction.", { error });
    }
  }

  async function runGroup(parts: readonly Part[], life: Life): Promise<void> {
    let isApart = false;
    for (let tried = 1; ; ) {
      const passage = await lane.enter();
      try {
        const outcomes = await connected((connection) =>
          (isApart ? runApart(connection, parts, life) : runTogether(connection, parts, life, passage)).catch(
            async (error: unknown) => {
              await rollBack(connection);
              throw error;
            },
          ),
        );
        if (outcomes === null) {
          isApart = true;
          continue;
        }
        await passage.inOrder();
        health?.worked();
        queue.unshift(...parts.slice(outcomes.length));
        for (const { finish } of outcomes) finish();
        return;
      } catch (error) {
        if (error instanceof ConflictError && tried < tries) {
          passage.end();
          await sleep(5 * 2 ** (tried - 1));
          tried += 1;
          continue;
        }
        for (const part of parts) part.reject(error);
        health?.note(error);
        if (!(error instanceof StorageError))
          log("error", "A commit failed; none of its writes is stored.", { writes: parts.length, error });
        return;
      } finally {
        passage.end();
      }
    }
  }

  async function flush(parts: readonly Part[]): Promise<void> {
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

  /**
   * Waits for the end of this turn, and for more turns while each adds writers: one commit is as expensive as many writes. While an
   * earlier commit is under way, half of all writes are enough, so that the service and the database work at the same time.
   */
  async function gather(): Promise<void> {
    const most = largestGroup[kind];
    const isEnough = () => queue.length >= most || (underWay > 0 && queue.length >= underWay);
    for (let turn = 0, before = 0; turn < mostTurns && queue.length > before && !isEnough(); turn++) {
      before = queue.length;
      await new Promise<void>((resolve) => nextTurn(resolve));
    }
  }

  async function startGroup(): Promise<void> {
    await lane.ready();
    await gather();
    const parts = queue.splice(0, largestGroup[kind]);
    underWay += parts.length;
    const running = flush(parts).finally(() => {
      underWay -= parts.length;
      groups.delete(running);
      schedule();
    });
    groups.add(running);
  }

  function schedule(): void {
    if (queue.length === 0) return;
    starting ??= startGroup().finally(() => {
      starting = undefined;
      schedule();
    });
  }

  return {
    write<T, O>(work: (tx: Tx, output?: O) => Promise<T>, batched?: Batched<O>): Promise<T> {
      if (closed) return Promise.reject(new Error("the store is closed"));
      if (inside.getStore()?.ended === false) {
        return Promise.reject(new Error("a write inside a write would wait for itself: pass the transaction on"));
      }
      return new Promise<T>((resolve, reject) => {
        queue.push({ work: work as Part["work"], batched, resolve: resolve as (value: unknown) => void, reject });
        schedule();
      });
    },
    async close() {
      closed = true;
      while (starting !== undefined || groups.size > 0) await Promise.all([starting, ...groups]);
    },
  };
}
