/**
 * Deletes rows that are too old or too many, oldest first and in small transactions, so that other writers can run in between. Each
 * feature names its tables that grow with use; the operator sets the retention of each.
 */
import { sql } from "kysely";
import { prepare, type Reader, type Store, type Tx } from "../store/db.ts";
import type { Tables } from "../store/schema.ts";
import { defineReconciler, type Reconciler } from "./flow.ts";
import type { PruneTime } from "./prunetime.ts";
import type { Subject } from "./view.ts";

/** Retention of a table: a row is deleted if it is older than `days` or beyond the newest `count` rows. */
export interface Cap {
  readonly days: number;
  readonly count: number;
}

/** A table, or some of its rows, that grows with use. */
export interface Prunable<Name extends string = string> {
  /** Name in the setting `BRUME_KEEP`. */
  readonly name: Name;
  readonly table: keyof Tables;
  /** Columns of its primary key. */
  readonly key: readonly string[];
  /** Column with the time of a row since 1970, in units of `unit` milliseconds. */
  readonly date: string;
  /** Default 1. */
  readonly unit?: number;
  /** SQL condition of the rows that are pruned. Default: all. */
  readonly where?: string;
}

/** Flows that have ended. */
export const endedTasks = {
  name: "task",
  table: "task",
  key: ["id"],
  date: "end_date",
  where: "end_date is not null",
} as const satisfies Prunable;

const day = 86_400_000;
/** Rows deleted in one transaction. */
const slice = 500;
/** Maximum pause after a transaction in ms. */
const longestPause = 500;
/** Lets the event loop handle requests. */
const nextTurn = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));
const sleep = (ms: number): Promise<void> => new Promise((resolve) => void setTimeout(resolve, ms));
/** Index entries counted by one query. */
const counted = 5_000;

/** Prunes one table and returns the number of deleted rows. `now`: time that ages are measured against, in milliseconds since 1970. */
export async function prune(
  store: Store,
  prunable: Prunable,
  cap: Cap,
  now: number,
  signal?: AbortSignal,
): Promise<number> {
  const { unit = 1, where = "1 = 1" } = prunable;
  const rows = sql.table(prunable.table);
  const key = sql.join(prunable.key.map((column) => sql.ref(column)));
  const date = sql.ref(prunable.date);
  const some = sql.raw(where);
  const before = Math.floor((now - cap.days * day) / unit);
  let sum = 0;

  async function remove(most: number, condition = sql``): Promise<number> {
    const oldest = sql`select ${key} from ${rows} where ${some} ${condition} order by ${date}, ${key} limit ${sql.lit(most)}`;
    const begun = performance.now();
    const done = await store.write((tx) => sql`delete from ${rows} where (${key}) in (${oldest})`.execute(tx));
    const count = Number(done.numAffectedRows ?? 0);
    sum += count;
    // At most half of the time: PostgreSQL would otherwise be busy with this alone.
    await sleep(Math.min(longestPause, performance.now() - begun));
    return count;
  }
  const isOver = (): boolean => signal?.aborted === true;

  // A read is cheaper than an empty transaction.
  const old = sql`select 1 from ${rows} where ${some} and ${date} < ${before} limit 1`;
  if ((await old.execute(store.read)).rows.length > 0)
    while (!isOver() && (await remove(slice, sql`and ${date} < ${before}`)) === slice);
  let over = isOver() ? 0 : (await countRows(store.read, prunable, isOver)) - cap.count;
  while (over > 0 && !isOver()) {
    const gone = await remove(Math.min(over, slice));
    if (gone === 0) break;
    over -= gone;
  }
  return sum;
}

/** Counts rows from the index, in queries of a few milliseconds with requests in between. Returns 0 if `isOver` becomes true. */
export async function countRows(
  db: Reader,
  { table, date: column, where = "1 = 1" }: Prunable,
  isOver: () => boolean = () => false,
): Promise<number> {
  const [rows, date, some] = [sql.table(table), sql.ref(column), sql.raw(where)];
  let sum = 0;
  let after = Number.MIN_SAFE_INTEGER;
  for (;;) {
    const rest = sql`from ${rows} where ${some} and ${date} > ${after}`;
    const edge = await sql<{ date: number }>`select ${date} as date ${rest} order by ${date} limit 1
      offset ${sql.lit(counted - 1)}`.execute(db);
    const end = edge.rows[0]?.date ?? Number.MAX_SAFE_INTEGER;
    await nextTurn();
    const found = await sql<{ count: number }>`select count(*) as count ${rest} and ${date} <= ${end}`.execute(db);
    sum += Number(found.rows[0]?.count);
    if (edge.rows.length === 0) return sum;
    after = end;
    await nextTurn();
    if (isOver()) return 0;
  }
}

/** What the pruning reconciler needs: the tables, their caps and the clock. */
export interface PruneOptions<Name extends string> {
  readonly store: Store;
  readonly time: PruneTime;
  readonly prunables: readonly Prunable<Name>[];
  readonly caps: Readonly<Record<Name, Cap>>;
  /** Milliseconds from one run to the next. */
  readonly period: number;
}

/** Returns the reconciler that prunes all these tables. */
export function pruneReconciler<Name extends string>(options: PruneOptions<Name>): Reconciler {
  const { store, time, prunables, caps, period } = options;
  return defineReconciler({
    name: "service.prune",
    subject: "service",
    single: true,
    period,
    async run({ signal }) {
      await time.save();
      const now = await time.read();
      for (const prunable of prunables) await prune(store, prunable, caps[prunable.name], now, signal);
    },
  });
}

const deleteOlder = prepare<{ subject: string; id: number; keep: number }>()((db, p) =>
  db
    .deleteFrom("task")
    .where("subject", "=", p("subject"))
    .where("subject_id", "=", p("id"))
    .where("end_date", "is not", null)
    .where("id", "<=", (from) =>
      from
        .selectFrom("task as kept")
        .select("kept.id")
        .where("kept.subject", "=", p("subject"))
        .where("kept.subject_id", "=", p("id"))
        .where("kept.end_date", "is not", null)
        .orderBy("kept.id", "desc")
        .limit(1)
        .offset(p("keep")),
    ),
);

/** Deletes the ended flows of a subject except the newest `keep`. A flow that deletes its subject passes 0 in its `ended`. */
export const forget = (tx: Tx, { kind, id }: Subject, keep: number): void =>
  deleteOlder.send(tx, { subject: kind, id, keep });
