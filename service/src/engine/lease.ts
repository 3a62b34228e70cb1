/**
 * Leases of task rows: a worker claims a row, renews its lease and writes to the row. A claim moves `due_at` to the end of the lease,
 * so the row of a dead worker becomes due by itself. Every write names the lease and has no effect if another claim has replaced it.
 * So a row has one worker, and a worker that was stalled for too long can no longer write.
 */
import { type Expression, type SqlBool, sql } from "kysely";
import type { Reader, Store, Tx } from "../store/db.ts";
import { allowLoss, prepare, prepareList } from "../store/db.ts";
import { hideCommit, notifyTopic } from "./commit.ts";
import { isIn } from "./task.ts";
import type { Row } from "./view.ts";

/** Thrown when another claim has replaced the lease: the transaction must roll back. */
export class LostLease extends Error {
  override readonly name = "LostLease";
}

/** Which tasks `claim` takes, for whom and until when. */
export interface Claim {
  /** Names of the flows and reconcilers to claim. Rows with other names belong to other releases. */
  readonly names: readonly string[];
  /** Most rows to claim. */
  readonly limit: number;
  /** Name of the lease, never used before. */
  readonly lease: string;
  /** Milliseconds since 1970. */
  readonly now: number;
  /** End of the lease, in milliseconds since 1970. */
  readonly until: number;
}

/** The tasks of one class: those of a reconciler with a limit of its own, or all others. */
export interface DueTasks {
  /** Claims up to `limit` due rows, the longest waiting first, and returns them. */
  claim(store: Store, claim: Claim): Promise<Row[]>;
  /** Returns the row that is due next, and when (milliseconds since 1970); undefined if none is. */
  next(db: Reader, names: readonly string[]): Promise<{ name: string; due_at: number } | undefined>;
}

/**
 * Prepares the queries on the tasks of one class. `only`: the reconciler; null: all but `limited`, the reconcilers with a limit. The names
 * are literals, for which the planner can use a partial index: otherwise it passes over thousands of rows that wait for a limited one.
 */
export function createDueTasks(only: string | null, limited: readonly string[]): DueTasks {
  const isOfClass = (column: "name" | "due.name"): Expression<SqlBool> =>
    only === null
      ? sql.join([sql`true`, ...limited.map((name) => sql`${sql.ref(column)} <> ${sql.lit(name)}`)], sql` and `)
      : sql<SqlBool>`${sql.ref(column)} = ${sql.lit(only)}`;
  const claimDue = prepareClaim(isOfClass("due.name"));
  const firstDue = prepareNext(isOfClass("name"));
  return {
    claim: (store, { names, limit, lease, now, until }) =>
      store.write(async (tx) => {
        const rows = await claimDue.all(tx, { limit, lease, now, until }, names);
        // What a step of a flow does has an undo, so its beginning must be known after a power cut.
        if (rows.every(({ state }) => state === "Keeping")) {
          hideCommit(tx);
          allowLoss(tx);
        }
        return rows;
      }),
    next: (db, names) => firstDue.first(db, {}, names),
  };
}

const prepareClaim = (isOfClass: Expression<SqlBool>) =>
  prepareList<Pick<Claim, "limit" | "lease" | "now" | "until">, string>()((db, p, names) => {
    const now = sql<number>`cast(${p("now")} as bigint)`;
    return (
      db
        .updateTable("task")
        .set((row) => ({
          lease: p("lease"),
          due_at: p("until"),
          begun_at: row.fn.coalesce("begun_at", now),
          // Time in which the row was due without a worker (the service was down) does not count for its limits.
          step_until: row("step_until", "+", row(now, "-", row.ref("due_at"))),
          deadline_at: row("deadline_at", "+", row(now, "-", row.ref("due_at"))),
        }))
        .where("id", "in", (from) =>
          from
            .selectFrom("task as due")
            .select("due.id")
            .where("due.due_at", "<=", p("now"))
            .where(isOfClass)
            .where("due.name", "in", names)
            .orderBy("due.due_at")
            .limit(p("limit"))
            // Concurrent claims skip the rows that this one is claiming. The compiler for SQLite, which has one writer, omits it.
            .forUpdate()
            .skipLocked(),
        )
        // Repeated, because the row may have changed before its lock was acquired.
        .where("due_at", "<=", p("now"))
        .returningAll()
    );
  });

/** Ends all leases. Only for an engine that is alone on the database: all other holders are dead. */
export async function endLeases(tx: Tx, now: number): Promise<void> {
  const held = tx.updateTable("task").set({ due_at: now, lease: null }).where("lease", "is not", null);
  // An expired lease is due already; its `due_at` stays, because `claim` counts from it.
  await held.where("due_at", ">", now).execute();
}

const prepareNext = (isOfClass: Expression<SqlBool>) =>
  prepareList<object, string>()((db, _, names) =>
    db
      .selectFrom("task")
      .select(["name", "due_at"])
      .$narrowType<{ due_at: number }>()
      .where("due_at", "is not", null)
      .where(isOfClass)
      .where("name", "in", names)
      .orderBy("due_at")
      .limit(1),
  );

const renewLease = prepare<{ id: number; lease: string; until: number }>()((db, p) =>
  db
    .updateTable("task")
    .set({ due_at: p("until") })
    .where("id", "=", p("id"))
    .where("lease", "=", p("lease"))
    .returning("cancel"),
);

/** Renews a lease until a time in milliseconds since 1970. Returns the reason of a requested cancellation, or null. Throws `LostLease`. */
export async function renew(tx: Tx, id: number, lease: string, until: number): Promise<string | null> {
  const row = await renewLease.first(tx, { id, lease, until });
  if (row === undefined) throw new LostLease();
  return row.cancel;
}

/** Returns the reasons of requested cancellations of these tasks, by task id. */
export async function findCancels(db: Reader, ids: readonly number[]): Promise<Map<number, string | null>> {
  if (ids.length === 0) return new Map();
  const query = db.selectFrom("task").select(["id", "cancel"]).where("id", "in", ids).where("cancel", "is not", null);
  return new Map((await query.execute()).map((row) => [row.id, row.cancel]));
}

/** The columns of its row that a worker may change. */
export type TaskChange = Pick<
  Row,
  | "state"
  | "step"
  | "ending"
  | "progress"
  | "steps"
  | "facts"
  | "error"
  | "end_date"
  | "begun_at"
  | "announced_at"
  | "due_at"
  | "lease"
  | "tries"
  | "served"
  | "step_until"
  | "deadline_at"
>;

type Held = { readonly id: number; readonly held: string; readonly seen: number; readonly woken: number | null };

const changeRow = prepare<TaskChange & Held>()((db, p) =>
  db
    .updateTable("task")
    .set((row) => ({
      state: p("state"),
      step: p("step"),
      ending: p("ending"),
      progress: p("progress"),
      steps: p("steps"),
      facts: p("facts"),
      error: p("error"),
      end_date: p("end_date"),
      begun_at: p("begun_at"),
      announced_at: p("announced_at"),
      lease: p("lease"),
      tries: p("tries"),
      served: p("served"),
      step_until: p("step_until"),
      deadline_at: p("deadline_at"),
      due_at: row
        .case()
        .when("wake", "=", p("seen"))
        .then(sql<number | null>`cast(${p("due_at")} as bigint)`)
        .else(sql<number | null>`cast(${p("woken")} as bigint)`)
        .end(),
    }))
    .where("id", "=", p("id"))
    .where("lease", "=", p("held"))
    .returning(["wake", "cancel", "due_at"]),
);

/**
 * Writes to a row under its lease (`row.lease`), and returns the columns that others may have changed. A `change.lease` of null
 * releases the row; if it was woken since `row.wake` was read, it is due at `now` at the latest. Throws `LostLease`.
 */
export async function commit(
  tx: Tx,
  row: Row,
  change: TaskChange,
  now: number,
): Promise<Pick<Row, "wake" | "cancel" | "due_at">> {
  const releases = change.lease === null && change.due_at !== null;
  const woken = releases ? Math.min(now, change.due_at ?? now) : change.due_at;
  const held = row.lease ?? "";
  const stored = await changeRow.first(tx, { ...change, id: row.id, held, seen: row.wake, woken });
  if (stored === undefined) throw new LostLease();
  if (releases) notifyTopic(tx, "task");
  return stored;
}

const deleteRow = prepare<{ id: number; lease: string; wake: number }>()((db, p) =>
  db.deleteFrom("task").where("id", "=", p("id")).where("lease", "=", p("lease")).where("wake", "=", p("wake")),
);

/** Deletes a reconciler's row under its lease. Returns false if the row stays: a new request has come, or the lease is lost. */
export async function remove(tx: Tx, row: Row): Promise<boolean> {
  return (await deleteRow.run(tx, { id: row.id, lease: row.lease ?? "", wake: row.wake })) > 0;
}

const findNext = prepare<{ subject: string; id: number }>()((db, p) =>
  db
    .selectFrom("task")
    .select("id")
    .where("subject", "=", p("subject"))
    .where("subject_id", "=", p("id"))
    .where(isIn("Postponed"))
    .orderBy("is_urgent", "desc")
    .orderBy("id")
    .limit(1),
);

/** Starts the next waiting flow of the subject, and returns its row. The caller holds the `queueLock` and has ended the flow before. */
export async function promote(tx: Tx, ended: Row, now: number): Promise<Row | undefined> {
  const next = await findNext.first(tx, { subject: ended.subject, id: ended.subject_id });
  if (next === undefined) return undefined;
  notifyTopic(tx, "task");
  return tx
    .updateTable("task")
    .set((row) => ({
      state: "InProgress",
      due_at: now,
      step_until: row("step_until", "+", now),
      deadline_at: row("deadline_at", "+", now),
    }))
    .where("id", "=", next.id)
    .returningAll()
    .executeTakeFirstOrThrow();
}
