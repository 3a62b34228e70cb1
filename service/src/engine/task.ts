/**
 * Task rows as features use them: start a flow, request a reconcile, wake, cancel, read. Changes run in the caller's transaction, so
 * that desired state, task and event are stored atomically.
 */

import type { Expression, ExpressionBuilder, SqlBool } from "kysely";
import { sql } from "kysely";
import type { Reader, Tx } from "../store/db.ts";
import { lock, type Parameter, prepare } from "../store/db.ts";
import type { Tables } from "../store/schema.ts";
import { notifyTopic } from "./commit.ts";
import type { Flow, Reconciler } from "./flow.ts";
import type { Row, StepRecord, Subject, Task, TaskError } from "./view.ts";
import { progressOf, viewOf } from "./view.ts";

export type { StepRecord, Subject, Task, TaskError } from "./view.ts";

/**
 * Waits for a task: `Engine.ended`. Resolves when the flow has ended or, with the `wake` of a `ReconcileRequest`, when a run that saw
 * the request succeeded. Also resolves when the task does not exist, `signal` aborts or the engine stops; the caller then reads the row.
 */
export type Ended = (
  task: number,
  options?: { readonly wake?: number; readonly signal?: AbortSignal },
) => Promise<void>;

/** What to wait for: a flow's task, or with `wake` a requested run of a reconciler. */
export interface Awaiting {
  readonly task: number;
  readonly wake?: number;
}

/** Resolves when all of these have ended, at the latest after `ms` milliseconds. */
export async function endedWithin(ended: Ended, all: readonly Awaiting[], ms: number): Promise<void> {
  if (ms <= 0 || all.length === 0) return;
  const over = new AbortController();
  const timer = setTimeout(() => over.abort(), ms);
  const { signal } = over;
  try {
    await Promise.all(all.map(({ task, wake }) => ended(task, { signal, ...(wake !== undefined && { wake }) })));
  } finally {
    clearTimeout(timer);
  }
}

/** Returns the condition `state = …` with the value as a literal: the planner uses a partial index only for literals. */
export function isIn(state: Row["state"]): Expression<SqlBool> {
  return sql<SqlBool>`state = ${sql.lit(state)}`;
}

/** Returns the key of the lock (`lock` in `store/db.ts`) that serializes changes to the queue of flows of one subject. */
export function queueLock(subject: string, id: number): string {
  return `task ${subject} ${id}`;
}

/** The task that `start` inserts. */
export interface Start<Input, Facts> {
  /** Id of the object that the flow works on. */
  readonly subject: number;
  readonly project: number;
  /** JSON value without secrets. */
  readonly input: Input;
  /** Milliseconds since 1970. */
  readonly now: number;
  readonly facts?: Partial<Facts>;
  /** Names of the steps to run. Default: all. An empty list creates a task that is already `Completed`. */
  readonly steps?: readonly string[];
  /** Goes to the head of the subject's queue. */
  readonly urgent?: boolean;
  /** No other flow of the subject can exist, because this transaction created the subject. */
  readonly isFirst?: boolean;
  /** First steps that the caller's transaction has already done: name and detail. They are undone like the others. */
  readonly done?: Readonly<Record<string, string>>;
}

const findRunning = prepare<{ subject: string; id: number }>()((db, p) =>
  db
    .selectFrom("task")
    .select("id")
    .where("subject", "=", p("subject"))
    .where("subject_id", "=", p("id"))
    .where(isIn("InProgress")),
);

type NewRow = Pick<
  Row,
  | "name"
  | "subject"
  | "subject_id"
  | "project_id"
  | "state"
  | "step"
  | "progress"
  | "steps"
  | "input"
  | "facts"
  | "start_date"
  | "end_date"
  | "due_at"
  | "step_until"
  | "deadline_at"
  | "is_urgent"
>;

const insertTask = prepare<NewRow>()((db, p) =>
  db
    .insertInto("task")
    .values({
      name: p("name"),
      subject: p("subject"),
      subject_id: p("subject_id"),
      project_id: p("project_id"),
      state: p("state"),
      step: p("step"),
      progress: p("progress"),
      steps: p("steps"),
      input: p("input"),
      facts: p("facts"),
      start_date: p("start_date"),
      end_date: p("end_date"),
      due_at: p("due_at"),
      step_until: p("step_until"),
      deadline_at: p("deadline_at"),
      is_urgent: p("is_urgent"),
      announced_at: p("start_date"),
      tries: 0,
      wake: 0,
      served: 0,
    })
    .returningAll(),
);

/**
 * Starts a flow: `InProgress` if no other flow of the subject runs, else `Postponed` at the end of its queue. To refuse a busy
 * subject or a full queue, call `queue` first in the same transaction. Throws if `steps` or `done` do not fit the flow.
 */
export async function start<Input, Facts>(
  tx: Tx,
  flow: Flow<Input, Facts>,
  options: Start<Input, Facts>,
): Promise<Task> {
  const { subject, project, input, now, facts = {}, done = {} } = options;
  const steps = flow.steps.filter((step) => options.steps === undefined || options.steps.includes(step.name));
  if (options.steps !== undefined && steps.length < options.steps.length) {
    throw new Error(`flow ${flow.name} does not have all of the steps ${options.steps.join(", ")}`);
  }
  const records = steps.map(({ name }): StepRecord => {
    const detail = done[name];
    if (detail === undefined) return { name, state: "Pending", start: null, end: null, detail: "" };
    return { name, state: "Completed", start: now, end: now, detail };
  });
  const step = steps[Object.keys(done).length];
  if (records.slice(Object.keys(done).length).some((each) => each.state === "Completed")) {
    throw new Error(`steps of ${flow.name} that are already done must be its first steps`);
  }
  const empty = steps.length === 0;
  let busy = false;
  if (options.isFirst !== true) {
    await lock(tx, queueLock(flow.subject, subject));
    busy = !empty && (await findRunning.first(tx, { subject: flow.subject, id: subject })) !== undefined;
  }
  // Times of a waiting task count from 0 (see the migration).
  const from = busy ? 0 : now;
  const row = await insertTask.first(tx, {
    name: flow.name,
    subject: flow.subject,
    subject_id: subject,
    project_id: project,
    state: empty ? "Completed" : busy ? "Postponed" : "InProgress",
    step: step?.name ?? null,
    progress: empty ? 100 : Math.min(99, progressOf(records)),
    steps: JSON.stringify(records),
    input: JSON.stringify(input ?? null),
    facts: JSON.stringify(facts),
    start_date: now,
    end_date: empty ? now : null,
    due_at: empty || busy ? null : now,
    step_until: flow.persistent ? null : from + (step?.time ?? flow.time),
    deadline_at: flow.persistent ? null : from + flow.deadline,
    is_urgent: Number(options.urgent ?? false),
  });
  if (row === undefined) throw new Error("the database returned no row");
  const task = viewOf(row);
  await flow.announce?.(tx, task, "created");
  if (empty) await flow.announce?.(tx, task, "ended");
  notifyTopic(tx, "task");
  return task;
}

interface Requested {
  readonly name: string;
  readonly subject: string;
  readonly id: number;
  readonly at: number;
}

const upsertOf = (db: Reader, p: Parameter<Requested>) =>
  db
    .insertInto("task")
    .values({
      name: p("name"),
      subject: p("subject"),
      subject_id: p("id"),
      state: "Keeping",
      progress: 0,
      steps: "[]",
      input: "null",
      facts: "{}",
      start_date: p("at"),
      announced_at: 0,
      due_at: p("at"),
      tries: 0,
      wake: 1,
      served: 0,
    })
    .onConflict((conflict) =>
      conflict
        .columns(["name", "subject_id"])
        .where(isIn("Keeping"))
        .doUpdateSet((row) => ({
          wake: row("task.wake", "+", 1),
          // A leased row stays as it is: its worker sees the raised counter when it releases the lease.
          due_at: row
            .case()
            .when(row.and([row("task.lease", "is", null), row("task.due_at", ">", row.ref("excluded.due_at"))]))
            .then(row.ref("excluded.due_at"))
            .else(row.ref("task.due_at"))
            .end(),
        })),
    );
const upsertReconciler = prepare<Requested>()((db, p) => upsertOf(db, p).returning(["id", "wake"]));
const sendUpsert = prepare<Requested>()(upsertOf);

/** A stored request for a run of a reconciler. `engine.ended(task, { wake })` waits for it. */
export interface ReconcileRequest {
  readonly task: number;
  readonly wake: number;
}

/**
 * Requests a run of the reconciler for the subject, immediately or not before a time in milliseconds since 1970 (to gather quick
 * changes). The first request creates the task row. A reconciler that is running runs once more. One run can serve several requests,
 * because a reconciler reads the complete desired state.
 */
export async function requestReconcile(
  tx: Tx,
  reconciler: Reconciler,
  subject: number,
  options: { readonly notBefore?: number } = {},
): Promise<ReconcileRequest> {
  const at = options.notBefore ?? 0;
  const { name, subject: kind } = reconciler;
  const row = await upsertReconciler.first(tx, { name, subject: kind, id: subject, at });
  if (row === undefined) throw new Error("the database returned no row");
  notifyTopic(tx, "task");
  return { task: row.id, wake: row.wake };
}

/** Requests a run of the reconciler for the subject, immediately. For callers that do not wait for it: it awaits no result. */
export function sendReconcile(tx: Tx, { name, subject: kind }: Reconciler, subject: number): void {
  sendUpsert.send(tx, { name, subject: kind, id: subject, at: 0 });
  notifyTopic(tx, "task");
}

/**
 * Requests a run of the reconciler for all subjects whose ids the query returns, immediately. One statement, because a start requests it
 * for thousands.
 */
export async function requestReconcileOfAll(
  tx: Tx,
  { name, subject }: Reconciler,
  subjects: Expression<{ id: number }>,
): Promise<void> {
  await sql`insert into task (name, subject, subject_id, state, progress, steps, input, facts, start_date, announced_at,
      due_at, tries, wake, served)
    select ${name}, ${subject}, subjects.id, 'Keeping', 0, '[]', 'null', '{}', 0, 0, 0, 0, 1, 0
    from (${subjects}) as subjects where true order by subjects.id
    on conflict (name, subject_id) where state = 'Keeping' do update set wake = task.wake + 1,
      due_at = case when task.lease is null and task.due_at > 0 then 0 else task.due_at end`.execute(tx);
  notifyTopic(tx, "task");
}

/** Runs the step of a waiting task now (after a `Wait`, or in the pause after a failed try). No effect on a task that does not wait. */
export async function wake(tx: Tx, task: number, now: number): Promise<void> {
  await tx
    .updateTable("task")
    .set((row) => ({ wake: row("wake", "+", 1), due_at: dueUnlessHeld(row, now) }))
    .where("id", "=", task)
    .where("due_at", "is not", null)
    .execute();
  notifyTopic(tx, "task");
}

/** Leaves `due_at` of a leased row: its worker sees the raised counter when it releases the lease. */
function dueUnlessHeld(row: ExpressionBuilder<Tables, "task">, now: number): Expression<number | null> {
  const free = row.and([row("lease", "is", null), row("due_at", ">", now)]);
  return row.case().when(free).then(sql<number>`cast(${now} as bigint)`).else(row.ref("due_at")).end();
}

/** Restricts `cancel` to some of the subject's flows. */
export interface Only {
  /** Only the task with this id. */
  readonly task?: number;
  /** Only waiting flows: the running one continues. */
  readonly waiting?: boolean;
}

/**
 * Cancels the flows of a subject. Waiting flows end immediately and are returned in order, so that the caller can append their events.
 * The running flow is interrupted, undone and then `Canceled`. A persistent flow, and one that is already being undone, continues.
 */
export async function cancel(
  tx: Tx,
  subject: Subject,
  why: Omit<TaskError, "step">,
  now: number,
  only: Only = {},
): Promise<Task[]> {
  await lock(tx, queueLock(subject.kind, subject.id));
  const error = JSON.stringify({ ...why, step: null } satisfies TaskError);
  const { task } = only;
  const ofSubject = tx
    .updateTable("task")
    .where("subject", "=", subject.kind)
    .where("subject_id", "=", subject.id)
    .$if(task !== undefined, (query) => query.where("id", "=", task ?? 0));
  const waiting = await ofSubject
    .set({ state: "Canceled", error, end_date: now })
    .where(isIn("Postponed"))
    .returningAll()
    .execute();
  if (only.waiting !== true)
    await ofSubject
      .set((row) => ({ cancel: error, wake: row("wake", "+", 1), due_at: dueUnlessHeld(row, now) }))
      .where(isIn("InProgress"))
      .where("ending", "is", null)
      .execute();
  notifyTopic(tx, "cancel");
  for (const row of waiting) {
    // The caller reverts the steps that were done in the transaction of the start.
    const records = JSON.parse(row.steps) as StepRecord[];
    if (!records.some(({ state }) => state === "Completed")) continue;
    row.steps = JSON.stringify(
      records.map((each) => (each.state === "Completed" ? { ...each, state: "Undone", end: now } : each)),
    );
    await tx.updateTable("task").set({ steps: row.steps }).where("id", "=", row.id).execute();
  }
  return waiting.map(viewOf).sort((one, other) => one.id - other.id);
}

/** Returns the running and the waiting flows of a subject, in order. Inside a transaction the queue is locked until the commit. */
export async function queue(db: Reader | Tx, subject: Subject): Promise<Task[]> {
  if ("isWrite" in db) await lock(db, queueLock(subject.kind, subject.id));
  return (await listQueue.all(db, { subject: subject.kind, id: subject.id })).map(viewOf);
}

const listQueue = prepare<{ subject: string; id: number }>()((db, p) =>
  db
    .selectFrom("task")
    .selectAll()
    .where("subject", "=", p("subject"))
    .where("subject_id", "=", p("id"))
    .where(sql<SqlBool>`state in ('InProgress', 'Postponed')`)
    .orderBy("state")
    .orderBy("is_urgent", "desc")
    .orderBy("id"),
);

const findTask = prepare<{ id: number }>()((db, p) =>
  db.selectFrom("task").selectAll().where("id", "=", p("id")).where("state", "!=", "Keeping"),
);

/** Returns a flow's task, or undefined. */
export async function find(db: Reader, id: number): Promise<Task | undefined> {
  const row = await findTask.first(db, { id });
  return row && viewOf(row);
}

/** Returns up to `limit` flows of a subject, newest first. */
export async function list(db: Reader, subject: Subject, limit: number): Promise<Task[]> {
  const rows = await db
    .selectFrom("task")
    .selectAll()
    .where("subject", "=", subject.kind)
    .where("subject_id", "=", subject.id)
    .where("state", "!=", "Keeping")
    .orderBy("id", "desc")
    .limit(limit)
    .execute();
  return rows.map(viewOf);
}
