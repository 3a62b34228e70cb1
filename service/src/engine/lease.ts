/**
 * How a worker takes a row, keeps it and writes to it. Taking it moves `due_at` to the end of the lease, so that a row whose
 * worker died comes due by itself; every write names the lease and is nothing when another claim has replaced it. Together:
 * a row has one worker, and one that was stalled for too long is not heard any more.
 */
import { sql } from "kysely";
import type { Reader, Store, Tx } from "../store/db.ts";
import { prepare } from "../store/db.ts";
import { notifyTopic, skipFreshness } from "./commit.ts";
import { isIn } from "./task.ts";
import type { Row } from "./view.ts";

/** The claim was replaced: nothing of the transaction may be stored. */
export class LostLease extends Error {
  override readonly name = "LostLease";
}

export interface Claim {
  /** Names of flows and reconcilers this program has; other rows are left to other programs. */
  readonly names: readonly string[];
  readonly limit: number;
  /** A name never used before. */
  readonly lease: string;
  readonly now: number;
  readonly until: number;
}

/** Takes up to `limit` rows that are due, those that wait longest first. */
export async function claim(store: Store, { names, limit, lease, now, until }: Claim): Promise<Row[]> {
  return store.write(async (tx) => {
    const rows = await tx
      .updateTable("task")
      .set((row) => ({
        lease,
        due_at: until,
        begun_at: row.fn.coalesce("begun_at", sql<number>`cast(${now} as bigint)`),
        // What nobody worked on while it was due (the service was down) is not held against the task.
        step_until: row("step_until", "+", row(row.val(now), "-", row.ref("due_at"))),
        deadline_at: row("deadline_at", "+", row(row.val(now), "-", row.ref("due_at"))),
      }))
      .where("id", "in", (from) =>
        from
          .selectFrom("task as due")
          .select("due.id")
          .where("due.due_at", "<=", now)
          .where("due.name", "in", names)
          .orderBy("due.due_at")
          .limit(limit)
          // Other claimers go around the rows that this one is taking. SQLite has one writer.
          .$if(store.kind === "postgres", (query) => query.forUpdate().skipLocked()),
      )
      // Said again for the row as it is when its lock is had.
      .where("due_at", "<=", now)
      .returningAll()
      .execute();
    if (rows.every(({ state }) => state === "Keeping")) skipFreshness(tx);
    return rows;
  });
}

/** Ends all leases. Only for an engine that has the database for itself: whoever held them is dead. */
export async function endLeases(tx: Tx, now: number): Promise<void> {
  const held = tx.updateTable("task").set({ due_at: now, lease: null }).where("lease", "is not", null);
  // One that has run out is due by itself, and since when is worth knowing.
  await held.where("due_at", ">", now).execute();
}

/** What comes due next and when, undefined if nothing ever does. */
export const nextDue = (db: Reader, names: readonly string[]): Promise<{ name: string; due_at: number } | undefined> =>
  db
    .selectFrom("task")
    .select(["name", "due_at"])
    .$narrowType<{ due_at: number }>()
    .where("due_at", "is not", null)
    .where("name", "in", names)
    .orderBy("due_at")
    .limit(1)
    .executeTakeFirst();

const renewLease = prepare<{ id: number; lease: string; until: number }>()((db, p) =>
  db
    .updateTable("task")
    .set({ due_at: p("until") })
    .where("id", "=", p("id"))
    .where("lease", "=", p("lease"))
    .returning("cancel"),
);

/** Gives back why the task shall end, if somebody asked for it. Throws `LostLease`. */
export async function renew(tx: Tx, id: number, lease: string, until: number): Promise<string | null> {
  const row = await renewLease.first(tx, { id, lease, until });
  if (row === undefined) throw new LostLease();
  return row.cancel;
}

/** Which of these tasks shall end, and why. */
export async function findCancels(db: Reader, ids: readonly number[]): Promise<Map<number, string | null>> {
  if (ids.length === 0) return new Map();
  const asked = db.selectFrom("task").select(["id", "cancel"]).where("id", "in", ids).where("cancel", "is not", null);
  return new Map((await asked.execute()).map((row) => [row.id, row.cancel]));
}

/** What a worker may change of its row. */
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
 * Writes to a row under its lease, which `row` names, and gives back what others have asked meanwhile. With `change.lease`
 * null the row is let go, and is due at `now` at the latest if it was woken since `row.wake` was read. Throws `LostLease`.
 */
export async function commit(
  tx: Tx,
  row: Row,
  change: TaskChange,
  now: number,
): Promise<Pick<Row, "wake" | "cancel" | "due_at">> {
  const letsGo = change.lease === null && change.due_at !== null;
  const woken = letsGo ? Math.min(now, change.due_at ?? now) : change.due_at;
  const held = row.lease ?? "";
  const stored = await changeRow.first(tx, { ...change, id: row.id, held, seen: row.wake, woken });
  if (stored === undefined) throw new LostLease();
  if (letsGo) notifyTopic(tx, "task");
  return stored;
}

const deleteRow = prepare<{ id: number; lease: string; wake: number }>()((db, p) =>
  db.deleteFrom("task").where("id", "=", p("id")).where("lease", "=", p("lease")).where("wake", "=", p("wake")),
);

/** Deletes a reconciler's row under its lease. False when the row stays: it was nudged since, or is no longer this worker's. */
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

/** Gives the next waiting flow of the subject its turn. Under the lock of its lane, after the one before has ended. */
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
