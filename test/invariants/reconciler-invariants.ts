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
import type { MortalStore, TestAlarm } from "../support/enginefixture.ts";
import { createFixtureEngine, createMortal, createTestAlarm, turn } from "../support/enginefixture.ts";
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

interface Act {
  readonly stage: ReconcilerFixture;
  readonly alarm: TestAlarm;
  readonly process: MortalStore;
  /** Lets the reconciler go until it has served the nudge; a process that dies is replaced. Resolves to the deaths. */
  settle(): Promise<number>;
}

/** Runs instead of the reconciler's own `run`. */
type Meddle = (
  act: Act,
  run: ReconcilerRun,
  own: () => Promise<ReconcileResult | void>,
) => Promise<ReconcileResult | void>;

async function open(store: Store, opened: OpenReconciler, meddle: Meddle): Promise<Act> {
  const stage = await opened(store);
  const alarm = createTestAlarm();
  const process = createMortal(store);
  const reconciler: Reconciler = {
    ...stage.reconciler,
    run: (run) => meddle(act, run, () => stage.reconciler.run(run)),
  };
  await process.write((tx) => stage.spec(tx, alarm.now()));
  const requested = await process.write((tx) => requestReconcile(tx, reconciler, stage.subject));
  const served = async () => {
    const query = store.read.selectFrom("task").select("served").where("id", "=", requested.task);
    const row = await query.executeTakeFirst();
    return row === undefined || row.served >= requested.wake;
  };
  const act: Act = {
    stage,
    alarm,
    process,
    async settle() {
      for (let deaths = 0; deaths < 5; deaths++) {
        const life = deaths === 0 ? process : createMortal(store);
        const engine = createFixtureEngine(life, alarm, { reconcilers: [reconciler] });
        engine.run();
        await Promise.race([drive(engine, alarm, served), life.death]);
        if (life.dead) continue;
        await engine.drain();
        return deaths;
      }
      throw new Error("too many deaths");
    },
  };
  return act;
}

const honest: Meddle = (_act, _run, own) => own();

/** Meddles with the first runs only. */
function first(runs: number, meddle: Meddle): Meddle {
  let count = 0;
  return (act, run, own) => (count++ < runs ? meddle(act, run, own) : own());
}

const meddlers: Readonly<Record<string, () => Meddle>> = {
  "it fails, then works": () => first(8, () => Promise.reject(new Error("broken"))),
  "it fails after its effect, then works": () =>
    first(2, async (_act, _run, own) => {
      await own();
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
export function proveReconciler(name: string, opened: OpenReconciler): void {
  for (const kind of databases) {
    test(`${name} keeps the laws of reconcilers on ${kind}`, async (t) => {
      const database = await startDatabase(kind);
      const begin = (meddle: Meddle) => open(database.store, opened, meddle);
      try {
        const model = await begin(honest);
        await model.settle();
        const after = await model.stage.observe();
        await t.test("a second run changes nothing", async () => {
          assert.ok(model.stage.changes() > 0, "the wish was there before");
          const before = model.stage.changes();
          for (let runs = 0; runs < 2; runs++) {
            await database.store.write((tx) => requestReconcile(tx, model.stage.reconciler, model.stage.subject));
            await model.settle();
          }
          assert.equal(model.stage.changes(), before);
          assert.deepEqual(await model.stage.observe(), after);
          await model.stage.close?.();
        });
        for (const [law, meddle] of Object.entries(meddlers)) {
          await t.test(law, async () => {
            const act = await begin(meddle());
            await act.settle();
            assert.deepEqual(await act.stage.observe(), after);
            await act.stage.close?.();
          });
        }
        await t.test("its process dies at any moment", async () => {
          let deaths = 1;
          for (let write = 1; deaths > 0; write++) {
            deaths = 0;
            for (const moment of ["before", "after"] as const) {
              const act = await begin(honest);
              act.process.dieAt(write, moment);
              deaths += await act.settle();
              assert.deepEqual(await act.stage.observe(), after);
              await act.stage.close?.();
            }
            assert.ok(deaths > 0 || write > 1, "no process has died");
          }
        });
      } finally {
        await database.close();
      }
    });
  }
}
