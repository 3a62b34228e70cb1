/**
 * The invariants of every reconciler: it tolerates failures, timeouts and crashes, and a second run changes nothing. A feature calls
 * `testReconciler` for each of its reconcilers:
 *
 *     testReconciler("network", async (store) => ({ reconciler, subject, spec, observe, changes }));
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

/** A reconciler and a new subject. The database may contain rows of earlier trials. */
export interface ReconcilerFixture {
  readonly reconciler: Reconciler;
  readonly subject: number;
  /** Stores a desired state that differs from the actual state. The test requests the reconcile. */
  spec(tx: Tx, now: number): Promise<void>;
  /** Returns the actual state in a comparable form, without ids and dates. */
  observe(): Promise<unknown>;
  /** Returns the number of changes of the actual state so far. */
  changes(): number;
  close?(): Promise<void>;
}

/** Creates a fixture with a new subject. */
export type OpenReconciler = (store: Store) => Promise<ReconcilerFixture>;

export interface ReconcilerTrial {
  readonly fixture: ReconcilerFixture;
  readonly alarm: TestAlarm;
  readonly process: CrashableStore;
  /** Runs the reconciler until it has served the request; replaces a crashed process. Resolves to the number of crashes. */
  settle(): Promise<number>;
}

/** Replaces the reconciler's `run`. */
type Intervention = (
  trial: ReconcilerTrial,
  run: ReconcilerRun,
  original: () => Promise<ReconcileResult | void>,
) => Promise<ReconcileResult | void>;

/** Creates a fixture and requests its reconcile; `settle` runs it. */
export async function openReconcile(
  store: Store,
  opened: OpenReconciler,
  intervene: Intervention = noError,
): Promise<ReconcilerTrial> {
  const fixture = await opened(store);
  const alarm = createTestAlarm();
  const process = createCrashableStore(store);
  const reconciler: Reconciler = {
    ...fixture.reconciler,
    run: (run) => intervene(trial, run, () => fixture.reconciler.run(run)),
  };
  await process.write((tx) => fixture.spec(tx, alarm.now()));
  const requested = await process.write((tx) => requestReconcile(tx, reconciler, fixture.subject));
  const served = async () => {
    const query = store.read.selectFrom("task").select("served").where("id", "=", requested.task);
    const row = await query.executeTakeFirst();
    return row === undefined || row.served >= requested.wake;
  };
  const trial: ReconcilerTrial = {
    fixture,
    alarm,
    process,
    async settle() {
      for (let crashes = 0; crashes < 5; crashes++) {
        const life = crashes === 0 ? process : createCrashableStore(store);
        const engine = createFixtureEngine(life, alarm, { reconcilers: [reconciler], poll: 30_000, lease: 45_000 });
        engine.run();
        await Promise.race([drive(engine, alarm, served), life.killed]);
        if (life.dead) continue;
        await engine.drain();
        return crashes;
      }
      throw new Error("too many crashes");
    },
  };
  return trial;
}

const noError: Intervention = (_act, _run, original) => original();

/** Limits an intervention to the first runs. */
function first(runs: number, intervene: Intervention): Intervention {
  let count = 0;
  return (trial, run, original) => (count++ < runs ? intervene(trial, run, original) : original());
}

const interventions: Readonly<Record<string, () => Intervention>> = {
  "it fails, then works": () => first(8, () => Promise.reject(new Error("broken"))),
  "it fails after its effect, then works": () =>
    first(2, async (_act, _run, original) => {
      await original();
      throw new Error("failed on purpose after the effect");
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

/** Registers the tests of all reconciler invariants for one reconciler, on each database. */
export function testReconciler(name: string, opened: OpenReconciler): void {
  for (const kind of databases) {
    test(`${name} satisfies the reconciler invariants on ${kind}`, async (t) => {
      const database = await startDatabase(kind);
      const begin = (intervene: Intervention) => openReconcile(database.store, opened, intervene);
      try {
        const model = await begin(noError);
        await model.settle();
        const after = await model.fixture.observe();
        await t.test("a second run changes nothing", async () => {
          assert.ok(model.fixture.changes() > 0, "the desired state must differ from the actual state");
          const before = model.fixture.changes();
          for (let runs = 0; runs < 2; runs++) {
            await database.store.write((tx) => requestReconcile(tx, model.fixture.reconciler, model.fixture.subject));
            await model.settle();
          }
          assert.equal(model.fixture.changes(), before);
          assert.deepEqual(await model.fixture.observe(), after);
          await model.fixture.close?.();
        });
        for (const [title, intervene] of Object.entries(interventions)) {
          await t.test(title, async () => {
            const trial = await begin(intervene());
            await trial.settle();
            assert.deepEqual(await trial.fixture.observe(), after);
            await trial.fixture.close?.();
          });
        }
        await t.test("its process crashes at any write", async () => {
          let crashes = 1;
          for (let write = 1; crashes > 0; write++) {
            crashes = 0;
            for (const moment of ["before", "after"] as const) {
              const trial = await begin(noError);
              trial.process.crashAt(write, moment);
              crashes += await trial.settle();
              assert.deepEqual(await trial.fixture.observe(), after);
              await trial.fixture.close?.();
            }
            assert.ok(crashes > 0 || write > 1, "no process has crashed");
          }
        });
      } finally {
        await database.close();
      }
    });
  }
}
