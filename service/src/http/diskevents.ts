/**
 * Appends an event when the disk of the data becomes low, and when it no longer is. What was told last is read from the events, so
 * a restart repeats nothing. An event that cannot be stored is tried again with the next state.
 */
import { append } from "../engine/event.ts";
import type { Store, Tx } from "../store/db.ts";
import type { DiskState } from "./diskspace.ts";

export interface DiskNews {
  tell(state: DiskState | null, now: number): Promise<void>;
}

/** There is one disk of the data. */
const disk = { resource: "disk", id: 1 } as const;

export function createDiskNews(store: Store): DiskNews {
  let told: boolean | null = null;

  async function readTold(): Promise<boolean> {
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
    // It is of no project: whoever administers the first one hears of it.
    const first = await tx
      .selectFrom("project")
      .select((e) => e.fn.min("id").as("id"))
      .executeTakeFirst();
    const data = JSON.stringify({ Folder: folder, Free: free, Size: size, Low: low });
    const type = isLow ? "disk.low" : "disk.recovered";
    await append(tx, [{ ...disk, type, date, project: first?.id ?? 1, data }]);
  }

  return {
    async tell(state, now) {
      if (state === null) return;
      told ??= await readTold();
      if (state.isLow === told) return;
      await store.write((tx) => save(tx, state, now));
      told = state.isLow;
    },
  };
}
