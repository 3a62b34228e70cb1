/**
 * A service's worth of writing in a process of its own, so that tests can kill it or take its disk away. Each line on
 * standard output is the id of a row that was acknowledged, `refused` with the error's name, or `ready`.
 * `node test/support/writer.ts KIND ADDRESS WRITERS`; it writes until it is killed.
 */
import { writeSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import type { Store, Tx } from "../../service/src/store/db.ts";
import { openPostgres } from "../../service/src/store/postgres.ts";
import { openSqlite } from "../../service/src/store/sqlite.ts";

const tell = (line: string): void => {
  writeSync(1, `${line}\n`);
};

/** One row of some size. */
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
      tell(String(id));
    } catch (error) {
      tell(`refused ${(error as Error).name}`);
      await sleep(20);
    }
  }
}

if (import.meta.main) {
  const [kind, address = "", writers] = process.argv.slice(2);
  const options = { log: () => {} };
  const store = kind === "sqlite" ? await openSqlite(address, options) : await openPostgres(address, options);
  tell("ready");
  await Promise.all(Array.from({ length: Number(writers) }, () => write(store)));
}
