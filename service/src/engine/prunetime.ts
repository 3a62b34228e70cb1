/**
 * The time that ages are counted up to. The clock of a machine can jump years ahead, and nothing may be deleted as too old for that:
 * this time never passes the clock, and moves at most twice as fast as time really passes while the service runs. So after an hour
 * of a wrong clock rows are deleted an hour early at most, and after a long rest the service catches up in as long. It is a row,
 * since a restart in the middle of the error must not forget.
 */
import { type Clock, steadyOf } from "../base/clock.ts";
import type { Store, Tx } from "../store/db.ts";

export interface PruneTime {
  /** Milliseconds since 1970. */
  read(): Promise<number>;
  save(): Promise<void>;
}

interface Moment {
  readonly date: number;
  readonly steady: number;
}

export function createPruneTime(store: Store, clock: Clock): PruneTime {
  let last: Moment | null = null;

  async function load(): Promise<Moment> {
    const steady = steadyOf(clock);
    const stored = await store.read.selectFrom("prune_time").select("date").where("id", "=", 1).executeTakeFirst();
    const newest = async () =>
      store.read.selectFrom("event").select("date").orderBy("id", "desc").limit(1).executeTakeFirst();
    // A database from before has no row yet, but the dates of what happened.
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
