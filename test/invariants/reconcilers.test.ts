import assert from "node:assert/strict";
import type { ObservedStore } from "../../service/src/engine/commit.ts";
import { observeCommits } from "../../service/src/engine/commit.ts";
import { append } from "../../service/src/engine/event.ts";
import type { ReconcileResult, ReconcilerRun } from "../../service/src/engine/flow.ts";
import { defineReconciler } from "../../service/src/engine/flow.ts";
import { requestReconcile, requestReconcileOfAll } from "../../service/src/engine/task.ts";
import {
  createEngineFixture,
  createFixtureEngine,
  createFixtureReconciler,
  createGate,
  createTestAlarm,
  invariant,
  turn,
  typesOf,
} from "../support/enginefixture.ts";
import { testReconciler } from "./reconciler-invariants.ts";

let subjects = 0;

for (const lit of [true, undefined]) {
  testReconciler(lit ? "a lit lamp" : "a deleted lamp", async () => {
    const subject = ++subjects;
    const fixture = createEngineFixture();
    const spec = new Map<number, boolean>();
    if (!lit) fixture.resources.add(`lamp ${subject}`);
    return {
      reconciler: createFixtureReconciler(fixture, spec),
      subject,
      spec: async () => void (lit && spec.set(subject, lit)),
      observe: async () => fixture.resources.size,
      changes: () => fixture.changes,
    };
  });
}

const minute = 60_000;

function createCounter(run: (run: ReconcilerRun) => Promise<ReconcileResult | void> = async () => {}) {
  const runs: number[] = [];
  const counting = defineReconciler({
    name: "sample.count",
    subject: "sample",
    period: minute,
    run: (each) => {
      runs.push(each.subject);
      return run(each);
    },
  });
  return { counting, runs };
}

async function rows(store: ObservedStore) {
  return store.read.selectFrom("task").selectAll().orderBy("id").execute();
}

invariant("a request wakes the reconciler at once, and several requests are one run", async (store) => {
  const alarm = createTestAlarm();
  const { counting, runs } = createCounter();
  const engine = createFixtureEngine(store, alarm, { reconcilers: [counting] });
  engine.run();
  await engine.idle();
  const last = await store.write(async (tx) => {
    await requestReconcile(tx, counting, 1);
    await requestReconcile(tx, counting, 2);
    return requestReconcile(tx, counting, 1);
  });
  await engine.ended(last.task, last);
  await engine.idle();
  assert.deepEqual(new Set(runs), new Set([1, 2]));
  assert.equal(runs.length, 2);
  assert.equal((await rows(store)).length, 2);
  await engine.drain();
});

invariant("one statement requests all subjects of a query, also those that were requested before", async (store) => {
  const alarm = createTestAlarm();
  const { counting, runs } = createCounter();
  const project = { created: 0, is_blocked: 0, quotas: "{}", labels: "{}", version: 1 } as const;
  await store.write(async (tx) => {
    for (const name of ["one", "two", "three"])
      await tx
        .insertInto("project")
        .values({ ...project, name })
        .execute();
    await requestReconcile(tx, counting, 2, { notBefore: alarm.now() + minute });
    await requestReconcileOfAll(tx, counting, tx.selectFrom("project").select("id").where("id", "<", 3));
  });
  const requested = new Set(
    (await rows(store)).map(({ name, subject, subject_id, state, due_at, wake }) =>
      [name, subject, subject_id, state, due_at, wake].join(),
    ),
  );
  assert.deepEqual(requested, new Set(["sample.count,sample,1,Keeping,0,1", "sample.count,sample,2,Keeping,0,2"]));
  const engine = createFixtureEngine(store, alarm, { reconcilers: [counting] });
  engine.run();
  await engine.idle();
  assert.deepEqual(new Set(runs), new Set([1, 2]));
  await engine.drain();
});

invariant("a run counts as a commit only if it changes data that responses show", async (store) => {
  const alarm = createTestAlarm();
  let result: ReconcileResult = {};
  const { counting, runs } = createCounter(async () => result);
  const engine = createFixtureEngine(store, alarm, { reconcilers: [counting] });
  engine.run();
  await store.write((tx) => requestReconcile(tx, counting, 1));
  await engine.idle();
  const before = store.commits();
  alarm.pass(2 * minute);
  await engine.idle();
  assert.equal(store.commits(), before);
  result = { save: async () => {} };
  alarm.pass(2 * minute);
  await engine.idle();
  assert.equal(store.commits(), before + 1);
  assert.equal(runs.length, 3);
  await engine.drain();
});

invariant("a request during a run is not lost", async (store) => {
  const alarm = createTestAlarm();
  const gates = [createGate(), createGate()] as const;
  const { counting, runs } = createCounter(async () => gates[runs.length - 1]?.pass());
  const engine = createFixtureEngine(store, alarm, { reconcilers: [counting] });
  engine.run();
  const early = await store.write((tx) => requestReconcile(tx, counting, 1));
  await gates[0].reached;
  const late = await store.write((tx) => requestReconcile(tx, counting, 1));
  const response: string[] = [];
  const both = [
    engine.ended(early.task, early).then(() => response.push("early")),
    engine.ended(late.task, late).then(() => response.push("late")),
  ];
  gates[0].open();
  // The second run waits at its gate, so this notification belongs to the first run.
  await both[0];
  await gates[1].reached;
  assert.deepEqual(response, ["early"]);
  gates[1].open();
  await both[1];
  assert.equal(runs.length, 2);
  await engine.idle();
  assert.equal(runs.length, 2);
  await engine.drain();
});

invariant("a request for later waits, a request for now does not", async (store) => {
  const alarm = createTestAlarm();
  const { counting, runs } = createCounter();
  const engine = createFixtureEngine(store, alarm, { reconcilers: [counting] });
  engine.run();
  const soon = (milliseconds: number) =>
    store.write((tx) => requestReconcile(tx, counting, 1, { notBefore: alarm.now() + milliseconds }));
  await soon(1_000);
  await soon(5_000);
  await engine.idle();
  assert.equal(runs.length, 0);
  alarm.pass(1_000);
  await engine.idle();
  assert.equal(runs.length, 1);
  await soon(5_000);
  await store.write((tx) => requestReconcile(tx, counting, 1));
  await engine.idle();
  assert.equal(runs.length, 2);
  await engine.drain();
});

invariant("a reconciler runs once a period, or at the time that its last run returned", async (store) => {
  const alarm = createTestAlarm();
  let at: number | undefined;
  const { counting, runs } = createCounter(async () => (at === undefined ? {} : { at }));
  const engine = createFixtureEngine(store, alarm, { reconcilers: [counting] });
  engine.run();
  await store.write((tx) => requestReconcile(tx, counting, 1));
  await engine.idle();
  for (let minutes = 0; minutes < 10; minutes++) {
    for (let seconds = 0; seconds < 60; seconds += 5) {
      alarm.pass(5_000);
      await engine.idle();
    }
  }
  assert.ok(runs.length >= 9 && runs.length <= 12, `${runs.length} runs in 10 minutes`);
  at = alarm.now() + 10_000;
  await store.write((tx) => requestReconcile(tx, counting, 1));
  await engine.idle();
  const before = runs.length;
  at = undefined;
  alarm.pass(10_000);
  await engine.idle();
  assert.equal(runs.length, before + 1);
  await engine.drain();
});

invariant("a failed reconciler is retried with growing pauses, and at once on request", async (store) => {
  const alarm = createTestAlarm();
  const times: number[] = [];
  const { counting } = createCounter(async () => {
    times.push(alarm.now());
    throw new Error("broken");
  });
  const engine = createFixtureEngine(store, alarm, { reconcilers: [counting] });
  engine.run();
  await store.write((tx) => requestReconcile(tx, counting, 1));
  while (times.length < 12) {
    await engine.idle();
    assert.ok(alarm.step());
  }
  await engine.idle();
  const pauses = times.slice(1).map((time, index) => time - (times[index] ?? 0));
  assert.deepEqual(
    pauses.slice(0, 5).sort((one, other) => one - other),
    pauses.slice(0, 5),
  );
  assert.ok(
    pauses.every((pause) => pause >= 700 && pause <= 1.3 * minute),
    pauses.join(" "),
  );
  const row = (await rows(store))[0];
  assert.equal(row?.state, "Keeping");
  assert.match(row?.error ?? "", /"code":"internal"/);
  const before = times.length;
  await store.write((tx) => requestReconcile(tx, counting, 1));
  await engine.idle();
  assert.equal(times.length, before + 1);
  await engine.drain();
});

invariant("the task of a deleted subject is deleted, except after a new request", async (store) => {
  const alarm = createTestAlarm();
  const gate = createGate();
  let gone = true;
  const { counting, runs } = createCounter(async () => {
    await gate.pass();
    return { gone };
  });
  const engine = createFixtureEngine(store, alarm, { reconcilers: [counting] });
  engine.run();
  await store.write((tx) => requestReconcile(tx, counting, 1));
  await gate.reached;
  const late = await store.write((tx) => requestReconcile(tx, counting, 1));
  gate.open();
  await engine.ended(late.task, late);
  assert.equal(runs.length, 2);
  assert.deepEqual(await rows(store), []);
  gone = false;
  const again = await store.write((tx) => requestReconcile(tx, counting, 1));
  assert.notEqual(again.task, late.task);
  await engine.ended(again.task, again);
  assert.equal((await rows(store)).length, 1);
  await engine.drain();
});

invariant("only the lease holder writes", async (store) => {
  const slow = createTestAlarm();
  const alarm = createTestAlarm();
  const gate = createGate();
  const event = { type: "sample.kept", date: 0, project: 1, resource: "sample", id: 1, data: null };
  const kept: ReconcileResult = { save: (tx) => append(tx, [event]) };
  const stalled = createCounter(async () => gate.pass().then(() => kept));
  const { counting } = createCounter(async () => kept);
  const first = createFixtureEngine(store, slow, { reconcilers: [stalled.counting] });
  const second = createFixtureEngine(store, alarm, { reconcilers: [counting] });
  const requested = await store.write((tx) => requestReconcile(tx, counting, 1));
  first.run();
  await gate.reached;
  second.run();
  await second.idle();
  alarm.pass(31_000);
  await second.ended(requested.task, requested);
  const before = await rows(store);
  gate.open();
  await first.idle();
  assert.deepEqual(await rows(store), before);
  assert.deepEqual(await typesOf(store, 1), ["sample.kept"]);
  await Promise.all([first.drain(), second.drain()]);
});

invariant("a singleton reconciler runs from the start, in one engine at a time", async (store, database) => {
  const alarm = createTestAlarm();
  let running = 0;
  let most = 0;
  let runs = 0;
  const single = defineReconciler({
    name: "sample.single",
    subject: "service",
    single: true,
    period: minute,
    async run({ subject }) {
      assert.equal(subject, 0);
      most = Math.max(most, ++running);
      runs++;
      await turn();
      running--;
    },
  });
  const other = database.kind === "sqlite" ? store : observeCommits(await database.open());
  const engines = [store, other].map((each) => createFixtureEngine(each, alarm, { reconcilers: [single] }));
  for (const engine of engines) engine.run();
  for (const engine of engines) await engine.idle();
  assert.equal(most, 1);
  assert.ok(runs >= 1 && runs <= 2);
  assert.equal((await rows(store)).length, 1);
  await Promise.all(engines.map((engine) => engine.drain()));
});

invariant("draining interrupts a reconciler without counting an attempt", async (store) => {
  const alarm = createTestAlarm();
  const begun = Promise.withResolvers<void>();
  const { counting } = createCounter(
    ({ signal }) =>
      new Promise((_resolve, reject) => {
        signal.addEventListener("abort", () => reject(new Error("interrupted")));
        begun.resolve();
      }),
  );
  const engine = createFixtureEngine(store, alarm, { reconcilers: [counting] });
  engine.run();
  await store.write((tx) => requestReconcile(tx, counting, 1));
  await begun.promise;
  const drained = engine.drain(1_000);
  alarm.pass(1_000);
  await drained;
  const row = (await rows(store))[0];
  assert.deepEqual([row?.lease, row?.tries, row?.error, row?.due_at], [null, 0, null, alarm.now()]);
});
