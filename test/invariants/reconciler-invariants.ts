/**
 * The laws of every reconciler, for each feature to run over its own:
 *
 *     proveReconciler("network", async (store) => ({ reconciler, subject, wish, observe, changes }));
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { ReconcileResult, Reconciler, ReconcilerRun } from "../../service/src/engine/flow.ts";
import { requestReconcile } from "../../service/src/engine/task.ts";
import type { Store, Tx } from "../../service/src/store/db.ts";
import { databases, startDatabase } from "../support/databases.ts";
import type { CrashableStore, TestAlarm } from "../support/enginefixture.ts";
import { createCrashableStore, createFixtureEngine, createTestAlarm, turn } from "../support/enginefixture.ts";
import { drive } from "../support/flowfixture.ts";

/** A fresh subject in a fresh world, on a database that others have used before. */
export interface ReconcilerFixture {
  readonly reconciler: Reconciler;
  readonly subject: number;
  /** Writes a wish that the world does not fulfil yet. The nudge is given by the law. */
  spec(tx: Tx, now: number): Promise<void>;
  /** What is there, in a comparable form without ids and dates. */
  observe(): Promise<unknown>;
  /** How often anything in the world was really changed. */
  changes(): number;
  close?(): Promise<void>;
}

export type OpenReconciler = (store: Store) => Promise<ReconcilerFixture>;

interface ReconcilerTrial {
  readonly fixture: ReconcilerFixture;
  readonly alarm: TestAlarm;
  readonly process: CrashableStore;
  /** Lets the reconciler go until it has served the nudge; a process that dies is replaced. Resolves to the deaths. */
  settle(): Promise<number>;
}

/** Runs instead of the reconciler's own `run`. */
type Intervention = (
  act: ReconcilerTrial,
  run: ReconcilerRun,
  original: () => Promise<ReconcileResult | void>,
) => Promise<ReconcileResult | void>;

async function open(store: Store, opened: OpenReconciler, intervene: Intervention): Promise<ReconcilerTrial> {
  const fixture = await opened(store);
  const alarm = createTestAlarm();
  const process = createCrashableStore(store);
  const reconciler: Reconciler = {
    ...fixture.reconciler,
    run: (run) => intervene(act, run, () => fixture.reconciler.run(run)),
  };
  await process.write((tx) => fixture.spec(tx, alarm.now()));
  const requested = await process.write((tx) => requestReconcile(tx, reconciler, fixture.subject));
  const served = async () => {
    const query = store.read.selectFrom("task").select("served").where("id", "=", requested.task);
    const row = await query.executeTakeFirst();
    return row === undefined || row.served >= requested.wake;
  };
  const act: ReconcilerTrial = {
    fixture,
    alarm,
    process,
    async settle() {
      for (let crashes = 0; crashes < 5; crashes++) {
        const life = crashes === 0 ? process : createCrashableStore(store);
        const engine = createFixtureEngine(life, alarm, { reconcilers: [reconciler] });
        engine.run();
        await Promise.race([drive(engine, alarm, served), life.killed]);
        if (life.dead) continue;
        await engine.drain();
        return crashes;
      }
      throw new Error("too many deaths");
    },
  };
  return act;
}

const unchanged: Intervention = (_act, _run, original) => original();

/** Meddles with the first runs only. */
function first(runs: number, intervene: Intervention): Intervention {
  let count = 0;
  return (act, run, original) => (count++ < runs ? intervene(act, run, original) : original());
}

const interventions: Readonly<Record<string, () => Intervention>> = {
  "it fails, then works": () => first(8, () => Promise.reject(new Error("broken"))),
  "it fails after its effect, then works": () =>
    first(2, async (_act, _run, original) => {
      await original();
      throw new Error("broken after the effect");
    }),
  "it hangs, then works": () =>
    first(1, async ({ alarm, process }, { signal }) => {
      while (!signal.aborted && alarm.step()) {
        do await turn();
        while (process.pending > 0);
      }
      throw signal.reason;
    }),
};

/** Registers a test of all laws for one reconciler on each database. */
export function testReconciler(name: string, opened: OpenReconciler): void {
  for (const kind of databases) {
    test(`${name} keeps the laws of reconcilers on ${kind}`, async (t) => {
      const database = await startDatabase(kind);
      const begin = (intervene: Intervention) => open(database.store, opened, intervene);
      try {
        const model = await begin(unchanged);
        await model.settle();
        const after = await model.fixture.observe();
        await t.test("a second run changes nothing", async () => {
          assert.ok(model.fixture.changes() > 0, "the wish was there before");
          const before = model.fixture.changes();
          for (let runs = 0; runs < 2; runs++) {
            await database.store.write((tx) => requestReconcile(tx, model.fixture.reconciler, model.fixture.subject));
            await model.settle();
          }
          assert.equal(model.fixture.changes(), before);
          assert.deepEqual(await model.fixture.observe(), after);
          await model.fixture.close?.();
        });
        for (const [law, intervene] of Object.entries(interventions)) {
          await t.test(law, async () => {
            const act = await begin(intervene());
            await act.settle();
            assert.deepEqual(await act.fixture.observe(), after);
            await act.fixture.close?.();
          });
        }
        await t.test("its process dies at any moment", async () => {
          let crashes = 1;
          for (let write = 1; crashes > 0; write++) {
            crashes = 0;
            for (const moment of ["before", "after"] as const) {
              const act = await begin(unchanged);
              act.process.crashAt(write, moment);
              crashes += await act.settle();
              assert.deepEqual(await act.fixture.observe(), after);
              await act.fixture.close?.();
            }
            assert.ok(crashes > 0 || write > 1, "no process has died");
          }
        });
      } finally {
        await database.close();
      }
    });
  }
}
