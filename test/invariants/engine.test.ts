import assert from "node:assert/strict";
import { test } from "node:test";
import { sql } from "kysely";
import { observeCommits } from "../../service/src/engine/commit.ts";
import { defineReconciler, flow } from "../../service/src/engine/flow.ts";
import { requestReconcile, type Task } from "../../service/src/engine/task.ts";
import { lock } from "../../service/src/store/db.ts";
import { startDatabase } from "../support/databases.ts";
import {
  begin,
  createCrashableStore,
  createEngineFixture,
  createFixtureEngine,
  createFixtureFlow,
  createGate,
  createTestAlarm,
  expectedEvents,
  invariant,
  mustFind,
  turn,
  typesOf,
} from "../support/enginefixture.ts";
import { drive } from "../support/flowfixture.ts";
import { waitUntil } from "../support/waituntil.ts";

invariant("a commit wakes the engine of its process at once", async (store) => {
  const alarm = createTestAlarm();
  const fixture = createEngineFixture();
  const testFlow = createFixtureFlow(fixture);
  const engine = createFixtureEngine(store, alarm, { flows: [testFlow] });
  engine.run();
  await engine.idle();
  const task = await begin(store, testFlow, 1, alarm.now());
  await engine.ended(task.id);
  assert.equal((await mustFind(store, task.id)).state, "Completed");
  assert.deepEqual(await typesOf(store, 1), expectedEvents);
  await engine.drain();
});

invariant("several engines share the work, one worker per task", async (store, database) => {
  const alarm = createTestAlarm();
  const fixture = createEngineFixture();
  const testFlow = createFixtureFlow(fixture);
  const stores = [store];
  while (stores.length < 4) stores.push(database.kind === "sqlite" ? store : observeCommits(await database.open()));
  const options = { flows: [testFlow], concurrency: 8, lease: 1e9 }; // The clock of the test is faster than a slow disk.
  const engines = stores.map((each) => createFixtureEngine(each, alarm, options));
  const tasks: Task[] = [];
  for (let n = 0; n < 60; n++) tasks.push(await begin(store, testFlow, n % 20, alarm.now()));
  for (const engine of engines) engine.run();
  const left = store.read.selectFrom("task").select(["id", "step", "tries"]).where("end_date", "is", null);
  const advance = () => (alarm.pass(50), left.execute());
  await waitUntil("the end of all flows", advance, ({ length }) => length === 0, 0);
  await Promise.all(engines.map((engine) => engine.drain()));
  assert.equal(fixture.busiest, 1);
  assert.equal(fixture.changes, 60);
  for (let subject = 0; subject < 20; subject++) {
    assert.deepEqual(await typesOf(store, subject), [...expectedEvents, ...expectedEvents, ...expectedEvents]);
  }
  for (const { id } of tasks) assert.equal((await mustFind(store, id)).state, "Completed");
});

invariant(
  "a reconciler works on at most as many subjects at once as it has lanes, and does not block other work",
  async (store) => {
    const alarm = createTestAlarm();
    const gate = createGate();
    const [done, other]: [number[], number[]] = [[], []];
    let [busy, busiest] = [0, 0];
    const narrow = defineReconciler({
      name: "sample.narrow",
      subject: "sample",
      period: 1e9,
      concurrency: 2,
      async run({ subject }) {
        busy += 1;
        busiest = Math.max(busiest, busy);
        await gate.pass();
        busy -= 1;
        done.push(subject);
      },
    });
    const wide = defineReconciler({
      name: "sample.wide",
      subject: "sample",
      period: 1e9,
      run: async ({ subject }) => void other.push(subject),
    });
    const engine = createFixtureEngine(store, alarm, { flows: [], reconcilers: [narrow, wide] });
    const subjects = [1, 2, 3, 4, 5, 6];
    await store.write(async (tx) => {
      for (const each of [narrow, wide]) for (const subject of subjects) await requestReconcile(tx, each, subject);
    });
    engine.run();
    await gate.reached;
    const hasAll = ({ length }: readonly unknown[]) => length >= subjects.length;
    await waitUntil("the wide reconciler", () => other, hasAll);
    assert.deepEqual([done, busy], [[], 2]);
    gate.open();
    await waitUntil("the narrow reconciler", () => done, hasAll);
    assert.deepEqual([busiest, done.toSorted((a, b) => a - b)], [2, subjects]);
    await engine.drain();
  },
);

invariant("a result of a stalled worker is ignored", async (store) => {
  const stalled = createTestAlarm();
  const alarm = createTestAlarm();
  const fixture = createEngineFixture();
  const gate = createGate();
  const steps = createFixtureFlow(fixture).steps;
  const slow = { ...createFixtureFlow(fixture), steps: steps.map((step) => ({ ...step, do: gate.pass })) };
  const first = createFixtureEngine(store, stalled, { flows: [slow] });
  const second = createFixtureEngine(store, alarm, { flows: [createFixtureFlow(fixture)] });
  const task = await begin(store, slow, 1, alarm.now());
  first.run();
  await gate.reached;
  second.run();
  await drive(second, alarm, async () => (await mustFind(store, task.id)).end !== null);
  const before = await mustFind(store, task.id);
  gate.open();
  await first.idle();
  assert.deepEqual(await mustFind(store, task.id), before);
  assert.deepEqual(await typesOf(store, 1), expectedEvents);
  await Promise.all([first.drain(), second.drain()]);
});

invariant("a long step keeps its lease", async (store) => {
  const alarm = createTestAlarm();
  const gate = createGate();
  const long = flow({
    name: "sample.long",
    subject: "sample",
    steps: [{ name: "Long", time: 600_000, do: gate.pass }],
  });
  const process = createCrashableStore(store);
  const engine = createFixtureEngine(process, alarm, { flows: [long] });
  const other = createFixtureEngine(store, alarm, { flows: [long] });
  const task = await begin(store, long, 1, alarm.now());
  engine.run();
  await gate.reached;
  const lease = () => store.read.selectFrom("task").select("lease").where("id", "=", task.id).executeTakeFirstOrThrow();
  const before = await lease();
  other.run();
  for (let seconds = 0; seconds < 100; seconds += 1) {
    alarm.pass(1_000);
    do await turn();
    while (process.pending > 0);
    await other.idle();
  }
  assert.deepEqual(await lease(), before);
  gate.open();
  await engine.idle();
  assert.equal((await mustFind(store, task.id)).state, "Completed");
  await Promise.all([engine.drain(), other.drain()]);
});

test("a start during the end of another flow is not lost (postgres)", async () => {
  const database = await startDatabase("postgres");
  try {
    const alarm = createTestAlarm();
    const store = observeCommits(database.store);
    const testFlow = { ...createFixtureFlow(createEngineFixture()), steps: [{ name: "Only" }] };
    const engine = createFixtureEngine(store, alarm, { flows: [testFlow] });
    const gate = createGate();
    // Journals are written at the end of a transaction: a session with their lock delays it just before its commit.
    const other = await database.open();
    const holding = other.write(async (tx) => {
      await lock(tx, "journal");
      await gate.pass();
    });
    await gate.reached;
    await begin(store, testFlow, 1, alarm.now());
    engine.run();
    const stuck = async () => {
      const query = sql<{ count: number }>`select count(*) as count from pg_locks
        where not granted and database = (select oid from pg_database where datname = current_database())`;
      return (await query.execute(store.read)).rows[0]?.count ?? 0;
    };
    await waitUntil("a statement that waits for a lock", stuck, (count) => count >= 1);
    let answered = false;
    // Another process starts it: the writes of one process wait for each other.
    const starter = observeCommits(await database.open());
    const starting = begin(starter, testFlow, 1, alarm.now()).finally(() => {
      answered = true;
    });
    await waitUntil("an end, or two statements that wait", stuck, (count) => answered || count >= 2);
    gate.open();
    await holding;
    const second = await starting;
    await engine.idle();
    // The engine finds work of other processes by polling.
    alarm.pass(1_000);
    await engine.idle();
    assert.equal((await mustFind(store, second.id)).state, "Completed");
    await engine.drain();
  } finally {
    await database.close();
  }
});

invariant("draining finishes the step and releases the lease", async (store) => {
  const alarm = createTestAlarm();
  const fixture = createEngineFixture();
  const gate = createGate();
  const testFlow = createFixtureFlow(fixture);
  const held = { ...testFlow, steps: testFlow.steps.map((step) => ({ ...step, do: gate.pass })) };
  const { id } = await begin(store, held, 1, alarm.now());
  const first = createFixtureEngine(store, alarm, { flows: [held] });
  first.run();
  await gate.reached;
  const drained = first.drain();
  gate.open();
  await drained;
  const row = await store.read.selectFrom("task").selectAll().where("id", "=", id).executeTakeFirstOrThrow();
  assert.deepEqual([row.step, row.lease, row.due_at], ["Disk", null, alarm.now()]);
  assert.deepEqual(await typesOf(store, 1), ["sample.reserve"]);
  const second = createFixtureEngine(store, alarm, { flows: [testFlow] });
  second.run();
  await second.ended(id);
  assert.deepEqual(await typesOf(store, 1), expectedEvents);
  await second.drain();
});

invariant("draining interrupts a long step without counting an attempt", async (store) => {
  const alarm = createTestAlarm();
  const begun = Promise.withResolvers<void>();
  const neverCanceled = flow({
    name: "sample.stubborn",
    subject: "sample",
    steps: [
      {
        name: "Hang",
        do: ({ signal }) =>
          new Promise<void>((_resolve, reject) => {
            signal.addEventListener("abort", () => reject(new Error("interrupted")));
            begun.resolve();
          }),
      },
    ],
  });
  const ignoresSignal = flow({
    name: "sample.deaf",
    subject: "deaf",
    steps: [{ name: "Hang", do: () => new Promise<void>(() => {}) }],
  });
  const tasks = [await begin(store, neverCanceled, 1, alarm.now()), await begin(store, ignoresSignal, 1, alarm.now())];
  const engine = createFixtureEngine(store, alarm, { flows: [neverCanceled, ignoresSignal] });
  engine.run();
  await begun.promise;
  const drained = engine.drain(1_000);
  alarm.pass(1_000);
  alarm.pass(5_000);
  await drained;
  for (const { id } of tasks) {
    const row = await store.read.selectFrom("task").selectAll().where("id", "=", id).executeTakeFirstOrThrow();
    assert.deepEqual([row.state, row.step, row.lease, row.tries], ["InProgress", "Hang", null, 0]);
  }
});

for (const alone of [false, true]) {
  invariant(`time in which no process ran is not counted${alone ? " by one that is alone" : ""}`, async (store) => {
    const alarm = createTestAlarm();
    const fixture = createEngineFixture();
    const testFlow = createFixtureFlow(fixture);
    let tried = 0;
    const throwingFlow = {
      ...testFlow,
      steps: testFlow.steps.map((step) => ({
        ...step,
        do: async () => (++tried % 3 !== 0 ? Promise.reject(new Error("not yet")) : {}),
      })),
    };
    const { id } = await begin(store, throwingFlow, 1, alarm.now());
    const process = createCrashableStore(store);
    const first = createFixtureEngine(process, alarm, { flows: [throwingFlow] });
    process.crashAt(3, "before");
    first.run();
    while (!process.dead) {
      alarm.step();
      await turn();
    }
    alarm.pass(3_600_000);
    const second = createFixtureEngine(store, alarm, { flows: [throwingFlow], alone });
    second.run();
    await drive(second, alarm, async () => (await mustFind(store, id)).end !== null);
    assert.equal((await mustFind(store, id)).state, "Completed");
    await second.drain();
  });
}

invariant("internal errors are written to the log only", async (store) => {
  const alarm = createTestAlarm();
  const log: string[] = [];
  const withSecrets = flow({
    name: "sample.secret",
    subject: "sample",
    steps: [{ name: "Only", tries: 1, do: async () => Promise.reject(new Error("/var/lib/secret is full")) }],
  });
  const engine = createFixtureEngine(store, alarm, {
    flows: [withSecrets],
    log: (_level, _message, detail) => log.push(String((detail as { error: unknown }).error)),
  });
  engine.run();
  const { id } = await begin(store, withSecrets, 1, alarm.now());
  await engine.ended(id);
  const { error } = await mustFind(store, id);
  assert.deepEqual(error, {
    code: "internal",
    title: "An unexpected error happened.",
    detail: "Only did not succeed.",
    step: "Only",
  });
  assert.deepEqual(log, ["Error: /var/lib/secret is full"]);
  await engine.drain();
});

invariant("a single engine continues at once after a crash", async (store) => {
  const alarm = createTestAlarm();
  const testFlow = createFixtureFlow(createEngineFixture());
  const process = createCrashableStore(store);
  const first = createFixtureEngine(process, alarm, { flows: [testFlow] });
  const { id } = await begin(store, testFlow, 1, alarm.now());
  process.crashAt(2, "before");
  first.run();
  await process.killed;
  const second = createFixtureEngine(store, alarm, { flows: [testFlow], alone: true });
  second.run();
  await second.idle();
  assert.equal((await mustFind(store, id)).state, "Completed");
  assert.deepEqual(await typesOf(store, 1), expectedEvents);
  await second.drain();
});

invariant("tasks of unknown flows are not changed", async (store) => {
  const alarm = createTestAlarm();
  const fixture = createEngineFixture();
  const testFlow = createFixtureFlow(fixture);
  const unknownFlow = flow({ name: "sample.newer", subject: "sample", steps: [{ name: "Only" }] });
  const unknown = await begin(store, unknownFlow, 1, alarm.now());
  const renamed = { ...testFlow, steps: testFlow.steps.map((step) => ({ ...step, name: `${step.name}2` })) };
  const lost = await begin(store, renamed, 2, alarm.now());
  const log: string[] = [];
  const engine = createFixtureEngine(store, alarm, {
    flows: [testFlow],
    log: (level, _message, detail) => log.push(`${level} ${String((detail as { error: unknown }).error)}`),
  });
  engine.run();
  await engine.idle();
  assert.equal((await mustFind(store, unknown.id)).state, "InProgress");
  assert.equal((await mustFind(store, lost.id)).state, "InProgress");
  assert.deepEqual(log, ["error Error: sample.make has no step Reserve2: step names are never changed"]);
  assert.equal(fixture.changes, 0);
  await engine.drain();
});

invariant("an idle engine writes nothing", async (store) => {
  const alarm = createTestAlarm();
  const process = createCrashableStore(store);
  const engine = createFixtureEngine(process, alarm, { flows: [createFixtureFlow(createEngineFixture())] });
  process.crashAt(1, "before");
  engine.run();
  for (let checks = 0; checks < 20; checks++) {
    await engine.idle();
    assert.ok(alarm.step());
  }
  assert.equal(process.dead, false);
  await engine.drain();
});

invariant("waiters are notified, also of another engine's work, or stop waiting", async (store) => {
  const alarm = createTestAlarm();
  const testFlow = createFixtureFlow(createEngineFixture());
  const idle = createFixtureEngine(store, alarm, { flows: [] });
  const engine = createFixtureEngine(store, alarm, { flows: [testFlow] });
  idle.run();
  const { id } = await begin(store, testFlow, 1, alarm.now());
  const control = new AbortController();
  const impatient = idle.ended(id, { signal: control.signal });
  control.abort();
  await impatient;
  await idle.ended(id, { signal: control.signal });
  await idle.ended(id + 1000);
  let isNotified = false;
  const notified = idle.ended(id).then(() => void (isNotified = true));
  engine.run();
  await engine.idle();
  await waitUntil(
    "the notification",
    () => alarm.step(),
    () => isNotified,
  );
  await notified;
  await engine.ended(id);
  await engine.drain();
  const left = idle.ended((await begin(store, testFlow, 2, alarm.now())).id);
  await turn();
  await idle.drain();
  await left;
});
