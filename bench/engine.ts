/**
 * Measures how many flows of three steps an engine completes per second, against bare inserts and updates of the same number of rows in
 * the same run. The ratio is the overhead of the engine. Both write through the same store with group commit.
 *
 *     node bench/engine.ts [sqlite|postgres]
 */

import { systemClock } from "../service/src/base/clock.ts";
import { observeCommits } from "../service/src/engine/commit.ts";
import { createEngine } from "../service/src/engine/engine.ts";
import { flow } from "../service/src/engine/flow.ts";
import { start } from "../service/src/engine/task.ts";
import { prepare } from "../service/src/store/db.ts";
import { startDatabase } from "../test/support/databases.ts";

const count = 5_000;
/** Concurrent writers, like the concurrency of the engine. */
const writers = 128;

const kind = process.argv[2] === "postgres" ? "postgres" : "sqlite";

async function measure(work: () => Promise<void>): Promise<number> {
  const before = performance.now();
  await work();
  return performance.now() - before;
}

/** Runs `work` for 0 … count - 1, `writers` at a time. */
async function spread(work: (index: number) => Promise<unknown>): Promise<void> {
  let next = 0;
  const lanes = Array.from({ length: writers }, async () => {
    while (next < count) await work(next++);
  });
  await Promise.all(lanes);
}

const insertBare = prepare<{ text: string; id: number }>()((db, p) =>
  db
    .insertInto("task")
    .values({
      name: "bare",
      subject: "bare",
      subject_id: p("id"),
      state: "InProgress",
      progress: 0,
      steps: p("text"),
      input: p("text"),
      facts: p("text"),
      start_date: 0,
      announced_at: 0,
      due_at: p("id"),
      tries: 0,
      wake: 0,
      served: 0,
    })
    .returning("id"),
);
const updateBare = prepare<{ text: string; id: number; tries: number }>()((db, p) =>
  db
    .updateTable("task")
    .set({ steps: p("text"), tries: p("tries"), due_at: p("tries") })
    .where("id", "=", p("id")),
);

const database = await startDatabase(kind);
const store = observeCommits(database.store);
const text = JSON.stringify({ step: "x".repeat(200) });

/** Writes as many rows as the flows: one insert, the claim, three steps. */
const bare = () =>
  spread(async (index) => {
    const row = await store.write((tx) => insertBare.first(tx, { text, id: index }));
    if (row === undefined) throw new Error("no row");
    for (let tries = 1; tries <= 4; tries++) await store.write((tx) => updateBare.run(tx, { text, id: row.id, tries }));
  });

const steps = ["One", "Two", "Three"].map((name) => ({ name, do: async () => ({ detail: "done" }) }));
const benchFlow = flow<null>({ name: "bench.toy", subject: "bench", steps });
const engine = createEngine({
  store,
  flows: [benchFlow],
  reconcilers: [],
  clock: systemClock,
  random: Math.random,
  log: console.error,
});
let subject = 0;
const flows = async () => {
  await spread(async () => {
    const options = { subject: ++subject, project: 1, input: null, now: Date.now() };
    await store.write((tx) => start(tx, benchFlow, options));
  });
  await engine.idle();
};
async function left(): Promise<number> {
  const row = await store.read
    .selectFrom("task")
    .select((eb) => eb.fn.countAll<number>().as("count"))
    .where("name", "=", benchFlow.name)
    .where("state", "!=", "Completed")
    .executeTakeFirstOrThrow();
  return row.count;
}

engine.run();
await spread(async () => {});
await flows();
const bareTime = await measure(bare);
const flowTime = await measure(flows);
if ((await left()) > 0) throw new Error("flows are left over");
const perSecond = (time: number) => Math.round((count * 1000) / time);
console.log(`${kind}, ${count} flows of 3 steps, ${writers} writers`);
console.log(`bare rows  ${perSecond(bareTime)} flows/s  (${perSecond(bareTime) * 5} writes/s)`);
console.log(`engine     ${perSecond(flowTime)} flows/s`);
console.log(`ratio      ${(bareTime / flowTime).toFixed(2)} of the bare rows`);
await engine.drain();
await database.close();
