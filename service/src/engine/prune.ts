/**
 * Deletes what is too old or too much, from the oldest end and in small transactions, so that other writers get their turn. Each feature
 * names its tables that grow with use; the operator sets how much of each is kept.
 */
import { sql } from "kysely";
import type { Reader, Store } from "../store/db.ts";
import type { Tables } from "../store/schema.ts";
import { defineReconciler, type Reconciler } from "./flow.ts";
import type { PruneTime } from "./prunetime.ts";

/** What is kept: whatever is beyond one of the two goes. */
export interface Cap {
  readonly days: number;
  readonly count: number;
}

/** A table, or some of its rows, that grows with use. */
export interface Prunable<Name extends string = string> {
  /** In the setting. */
  readonly name: Name;
  readonly table: keyof Tables;
  /** Columns of its primary key. */
  readonly key: readonly string[];
  /** The column that says how old a row is, in milliseconds unless `unit` says of how many milliseconds. */
  readonly date: string;
  readonly unit?: number;
  /** SQL: only such rows. */
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
/** Lets requests in between. */
const nextTurn = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));
/** Index entries passed over in one read. */
const counted = 5_000;

/** Resolves to how many rows went. `now`: the time that ages are counted up to. */
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
    const done = await store.write((tx) => sql`delete from ${rows} where (${key}) in (${oldest})`.execute(tx));
    const count = Number(done.numAffectedRows ?? 0);
    sum += count;
    return count;
  }
  const isOver = (): boolean => signal?.aborted === true;

  // Looking is free; a transaction is not.
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

/** Counts in reads of a few milliseconds from index entries only, and lets requests in between. 0 when it is called off. */
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

export interface PruneOptions<Name extends string> {
  readonly store: Store;
  readonly time: PruneTime;
  readonly prunables: readonly Prunable<Name>[];
  readonly caps: Readonly<Record<Name, Cap>>;
  /** Milliseconds from one run to the next. */
  readonly period: number;
}

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
