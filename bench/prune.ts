/**
 * Measures how long requests wait while a million rows of the audit are pruned on PostgreSQL: a write every few milliseconds, without and
 * during the pruning, on the same server. `npm run bench -- prune`
 */
import { setTimeout as sleep } from "node:timers/promises";
import { sql } from "kysely";
import { auditRows } from "../service/src/account/table.ts";
import { prune } from "../service/src/engine/prune.ts";
import { startDatabase } from "../test/support/databases.ts";

const rows = 1_000_000;
const { store, close } = await startDatabase("postgres");
const [granted] = auditRows;
const day = 86_400_000;
const now = Date.now();
const row = { project_id: 1, token_id: 1, token_name: "t", address: "", operation: "x", request_id: "r", status: 403 };

for (let from = 0; from < rows; from += 50_000)
  await store.write((tx) =>
    sql`insert into audit (date, project_id, token_id, token_name, address, operation, request_id, status)
      select ${sql.lit(now - 400 * day + from)}::bigint + n, 1, 1, 't', '', 'x', 'r', 200
      from generate_series(1, 50000) as n`.execute(tx),
  );

/** Writes and reads until `isOver`; returns the milliseconds of each pair, sorted. */
async function measure(isOver: () => boolean): Promise<number[]> {
  const took: number[] = [];
  while (!isOver()) {
    const begun = performance.now();
    await store.write((tx) =>
      tx
        .insertInto("audit")
        .values({ ...row, date: now })
        .execute(),
    );
    await store.read.selectFrom("audit").selectAll().orderBy("id", "desc").limit(10).execute();
    took.push(performance.now() - begun);
    await sleep(3);
  }
  return took.sort((a, b) => a - b);
}
const show = (took: readonly number[]) => ({
  pairs: took.length,
  "p50 ms": took[Math.floor(took.length / 2)]?.toFixed(1),
  "p99 ms": took[Math.floor(took.length * 0.99)]?.toFixed(1),
  "longest ms": took.at(-1)?.toFixed(1),
});

const end = performance.now() + 10_000;
const calm = await measure(() => performance.now() > end);
let isOver = false;
const begun = performance.now();
const pruned = prune(store, granted, { days: 365, count: 300_000 }, now).finally(() => (isOver = true));
const busy = await measure(() => isOver);
const seconds = (performance.now() - begun) / 1000;
console.table({ "without pruning": show(calm), "during pruning": show(busy) });
console.log(`${await pruned} rows in ${seconds.toFixed(1)} s`);
await close();
