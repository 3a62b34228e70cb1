/**
 * Session of one part of a group of writes (`group.ts`): it passes statements to the connection while the part runs, queues journal rows,
 * and remembers the first error.
 */
import type { Turn } from "../base/turn.ts";
import type { Awaitable, WriteConnection } from "./connection.ts";
import { type Entry, statementsOf } from "./journal.ts";
import type { DatabaseKind, Journal, Row, Session } from "./session.ts";

const isRead = (sql: string): boolean => /^\s*select\b/i.test(sql);

/** Writes the journal entries and empties the list. The lock keeps the ids of all processes in the order of commits. */
export async function writeEntries(
  kind: DatabaseKind,
  connection: WriteConnection,
  entries: Entry[],
  life: Life,
): Promise<void> {
  if (entries.length === 0) return;
  const statements = statementsOf(entries.splice(0), kind);
  if (kind === "sqlite") {
    for (const { sql, values, name } of statements) {
      await connection.run(sql, values, name);
      if (life.turn.isOver()) {
        life.rested = true;
        await life.turn.next();
      }
    }
    return;
  }
  await Promise.all([
    connection.lock("journal"),
    ...Array.from(statements, ({ sql, values, name }) => connection.run(sql, values, name)),
  ]);
}

/** What the parts of a group share while it runs. */
export interface Life {
  ended: boolean;
  /** A part has given its turn of the event loop away. */
  rested: boolean;
  /** No part runs: the beginning or the commit waits for the disk. */
  atDisk: boolean;
  readonly turn: Turn;
}

/** Session of one part, valid while the part runs. After the first error all statements fail, on both databases. */
export class PartSession implements Session {
  readonly kind: DatabaseKind;
  readonly #connection: WriteConnection;
  readonly #earlier: Entry[];
  /** The last statement that was sent. Earlier ones have ended before it. */
  #last: Promise<unknown> | undefined;
  /** The last one whose result is not needed. */
  #sent: Promise<unknown> | undefined;
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

  /** Resolves when all statements have ended; with `onlyNeeded` those whose result is needed. */
  async settle(onlyNeeded = false): Promise<void> {
    await this.#last?.catch(() => {});
    if (!onlyNeeded) await this.#sent;
  }

  /** Resolves when all statements have ended. Rejects if one failed. */
  async finished(): Promise<void> {
    await this.settle();
    if (this.failure !== undefined) throw this.failure;
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
      await writeEntries(this.kind, connection, this.#earlier, this.#life);
      await writeEntries(this.kind, connection, this.entries, this.#life);
    });
  }
  send(sql: string, values: readonly unknown[], name?: string): void {
    const needed = this.#last;
    this.#sent = this.#act(sql, (connection) => connection.run(sql, values, name)).catch(() => {});
    this.#last = needed;
  }
  lock(key: string): void {
    // Later statements wait for the lock, and fail if it fails.
    this.#act("select", (connection) => connection.lock(key)).catch(() => {});
  }
  rest(): Promise<void> | null {
    if (!this.#life.turn.isOver()) return null;
    this.#life.rested = true;
    return this.#life.turn.next();
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
