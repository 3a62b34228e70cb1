/**
 * Appends an event when the data disk becomes low, and when it has recovered. The last reported state is read from the events, so a
 * restart repeats none. An event that cannot be stored is retried with the next state.
 */
import { append } from "../engine/event.ts";
import type { Store, Tx } from "../store/db.ts";
import type { DiskState } from "./diskspace.ts";

/** Reports the state of the data disk as events. */
export interface DiskEvents {
  /** Appends an event if the state differs from the last reported one. `now` is in ms since 1970. Rejects if it cannot be stored. */
  report(state: DiskState | null, now: number): Promise<void>;
}

/** There is one data disk. */
const disk = { resource: "disk", id: 1 } as const;

/** Creates the reporter of disk events. */
export function createDiskEvents(store: Store): DiskEvents {
  let reported: boolean | null = null;

  async function readReported(): Promise<boolean> {
    const row = await store.read
      .selectFrom("event")
      .select("type")
      .where("resource", "=", disk.resource)
      .where("resource_id", "=", disk.id)
      .orderBy("id", "desc")
      .limit(1)
      .executeTakeFirst();
    return row?.type === "disk.low";
  }

  async function save(tx: Tx, { isLow, folder, free, size, low }: DiskState, date: number): Promise<void> {
    // The event belongs to no project; the administrators of the first one receive it.
    const first = await tx
      .selectFrom("project")
      .select((e) => e.fn.min("id").as("id"))
      .executeTakeFirst();
    const data = JSON.stringify({ Folder: folder, Free: free, Size: size, Low: low });
    const type = isLow ? "disk.low" : "disk.recovered";
    await append(tx, [{ ...disk, type, date, project: first?.id ?? 1, data }]);
  }

  return {
    async report(state, now) {
      if (state === null) return;
      reported ??= await readReported();
      if (state.isLow === reported) return;
      await store.write((tx) => save(tx, state, now));
      reported = state.isLow;
    },
  };
}
