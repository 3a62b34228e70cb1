/**
 * A process that writes rows until it is killed, as a busy service does, so that tests can kill it or fill its disk. Each line of its
 * standard output is `ready`, the id of a committed row, or `refused` and the name of the error.
 * Usage: `node test/support/writer.ts KIND ADDRESS WRITERS`.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Store, Tx } from "../../service/src/store/db.ts";
import { openPostgres } from "../../service/src/store/postgres.ts";
import { openSqlite } from "../../service/src/store/sqlite.ts";

/** Resolves when the line is in the pipe, which may be full. */
const print = (line: string): Promise<void> =>
  new Promise((resolve) => process.stdout.write(`${line}\n`, () => resolve()));

/** Inserts an event and returns its id; the default row has about 500 bytes. */
export const insertEvent = (
  tx: Tx,
  resource_id: number,
  data: string | null = "x".repeat(500),
): Promise<{ id: number }> =>
  tx
    .insertInto("event")
    .values({ type: "test", date: 0, project_id: 1, resource: "test", resource_id, data })
    .returning("id")
    .executeTakeFirstOrThrow();

async function write(store: Store): Promise<never> {
  for (;;) {
    try {
      const { id } = await store.write((tx) => insertEvent(tx, process.pid));
      await print(String(id));
    } catch (error) {
      await print(`refused ${(error as Error).name}`);
      await sleep(20);
    }
  }
}

if (import.meta.main) {
  const [kind, address = "", writers] = process.argv.slice(2);
  const options = { log: () => {} };
  const store = kind === "sqlite" ? await openSqlite(address, options) : await openPostgres(address, options);
  await print("ready");
  await Promise.all(Array.from({ length: Number(writers) }, () => write(store)));
}
