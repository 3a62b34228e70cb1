/**
 * The time that the ages of rows are measured against. The host's clock can jump years ahead, and no row may be deleted because of
 * that. So this time is never later than the clock, and advances at most twice as fast as the monotonic clock while the service runs.
 * After an hour with a wrong clock, rows are deleted at most one hour early; after a long stop, the service catches up in the same
 * time. It is stored in a row, because a restart must not lose it.
 */
import { type Clock, steadyOf } from "../base/clock.ts";
import type { Store, Tx } from "../store/db.ts";

/** The time against which the age of rows is counted. */
export interface PruneTime {
  /** Returns the time, in milliseconds since 1970. */
  read(): Promise<number>;
  /** Stores the time. */
  save(): Promise<void>;
}

interface Moment {
  readonly date: number;
  readonly steady: number;
}

/** Creates the time of a store; it continues from the stored row. */
export function createPruneTime(store: Store, clock: Clock): PruneTime {
  let last: Moment | null = null;

  async function load(): Promise<Moment> {
    const steady = steadyOf(clock);
    const stored = await store.read.selectFrom("prune_time").select("date").where("id", "=", 1).executeTakeFirst();
    const newest = async () =>
      store.read.selectFrom("event").select("date").orderBy("id", "desc").limit(1).executeTakeFirst();
    // A database of an older release has no row yet; its newest event gives a time.
    const date = (stored ?? (await newest()))?.date ?? clock.now();
    return { date: stored === undefined ? Math.min(date, clock.now()) : date, steady };
  }

  async function move(): Promise<number> {
    const from = last ?? (await load());
    const now = clock.now();
    const steady = steadyOf(clock);
    const date = Math.max(from.date, Math.min(now, from.date + 2 * Math.max(0, steady - from.steady)));
    last = { date, steady };
    return Math.floor(Math.min(date, now));
  }

  const write = async (tx: Tx, date: number): Promise<void> => {
    await tx
      .insertInto("prune_time")
      .values({ id: 1, date })
      .onConflict((conflict) => conflict.column("id").doUpdateSet({ date }))
      .execute();
  };

  return {
    read: move,
    async save() {
      await move();
      if (last === null) return;
      // A steady clock counts fractions of a millisecond; the column holds whole ones.
      const date = Math.floor(last.date);
      await store.write((tx) => write(tx, date));
    },
  };
}
