import assert from "node:assert/strict";
import { test } from "node:test";
import type { ObservedStore } from "../../service/src/engine/commit.ts";
import { observeCommits } from "../../service/src/engine/commit.ts";
import type { Wait } from "../../service/src/engine/flow.ts";
import { flow, StepError, stepNames } from "../../service/src/engine/flow.ts";
import { forget } from "../../service/src/engine/prune.ts";
import type { Task } from "../../service/src/engine/task.ts";
import { cancel, list, queue, start, wake } from "../../service/src/engine/task.ts";
import {
  begin,
  createCrashableStore,
  createEngineFixture,
  createFixtureDelete,
  createFixtureEngine,
  createFixtureFlow,
  createGate,
  createTestAlarm,
  invariant,
  mustFind,
  turn,
} from "../support/enginefixture.ts";
import { drive } from "../support/flowfixture.ts";
import { testFlow } from "./flow-invariants.ts";

/** Why something is canceled here. */
const why = { code: "superseded", title: "It was superseded.", detail: "It is being deleted." } as const;

let subjects = 0;

testFlow("sample.make", async () => {
  const subject = ++subjects;
  const fixture = createEngineFixture();
  const flow = createFixtureFlow(fixture);
  return {
    flow,
    start: (tx, now) => start(tx, flow, { subject, project: 1, input: { size: 1 }, now }),
    observe: async () => fixture.resources.size,
  };
});

testFlow("a flow whose last step is kept", async () => {
  const subject = ++subjects;
  const fixture = createEngineFixture();
  const { steps } = createFixtureFlow(fixture);
  const readStep = { name: "Read", keeps: true, do: async () => {} };
  const flow = createFixtureFlow(fixture, { name: "sample.read", steps: [{ name: "Begin" }, ...steps, readStep] });
  const done = { Begin: "in the transaction" };
  return {
    flow,
    start: (tx, now) => start(tx, flow, { subject, project: 1, input: { size: 1 }, now, done }),
    observe: async () => fixture.resources.size,
  };
});

testFlow("sample.delete", async () => {
  const subject = ++subjects;
  const fixture = createEngineFixture();
  for (const name of ["Reserve", "Disk", "Boot"]) fixture.resources.add(`${name} ${subject}`);
  const flow = createFixtureDelete(fixture);
  return {
    flow,
    start: (tx, now) => start(tx, flow, { subject, project: 1, input: { size: 1 }, now }),
    observe: async () => fixture.resources.size,
  };
});
test("step names are frozen", () => {
  const fixture = createEngineFixture();
  assert.deepEqual(stepNames([createFixtureFlow(fixture), createFixtureDelete(fixture)]), {
    "sample.make": ["Reserve", "Disk", "Boot"],
    "sample.delete": ["NoBoot", "NoDisk", "NoReserve"],
  });
  const step = { name: "Twice" };
  assert.throws(
    () => flow({ name: "sample.bad", subject: "sample", steps: [step, step] }),
    /two steps with the same name/,
  );
});
invariant("a task that is not committed never starts", async (store) => {
  const alarm = createTestAlarm();
  const testFlow = createFixtureFlow(createEngineFixture());
  const refused = store.write(async (tx) => {
    await start(tx, testFlow, { subject: 1, project: 1, input: { size: 1 }, now: alarm.now() });
    throw new Error("refused");
  });
  await assert.rejects(refused, /refused/);
  assert.deepEqual(await list(store.read, { kind: "sample", id: 1 }, 10), []);
});
invariant("one flow at a time runs per subject, and the others wait in order", async (store) => {
  const alarm = createTestAlarm();
  const ends: string[] = [];
  const make = (name: string, fails: boolean) =>
    flow({
      name,
      subject: "sample",
      steps: [
        {
          name: "Only",
          do: async () => (fails ? Promise.reject(new StepError("crashed", "X.", "x", { final: true })) : {}),
        },
      ],
      ended: async (tx, run, ending) => {
        const states = (await queue(tx, { kind: "sample", id: 1 })).map((each) => each.state);
        assert.ok(states.every((state) => state === "Postponed"));
        ends.push(`${run.task} ${ending}`);
      },
    });
  const good = make("sample.good", false);
  const bad = make("sample.bad", true);
  const tasks: Task[] = [];
  for (const each of [good, bad, good, bad, good]) tasks.push(await begin(store, each, 1, alarm.now()));
  assert.deepEqual(
    tasks.map((task) => task.state),
    ["InProgress", "Postponed", "Postponed", "Postponed", "Postponed"],
  );
  assert.deepEqual(await queue(store.read, { kind: "sample", id: 1 }), tasks);
  const second = store.write((tx) => tx.updateTable("task").set({ state: "InProgress", due_at: 0 }).execute());
  await assert.rejects(second);
  const engine = createFixtureEngine(store, alarm, { flows: [good, bad] });
  engine.run();
  await engine.idle();
  const endings = ["Completed", "Failed", "Completed", "Failed", "Completed"];
  assert.deepEqual(
    ends,
    tasks.map((task, index) => `${task.id} ${endings[index]}`),
  );
  assert.deepEqual(
    (await list(store.read, { kind: "sample", id: 1 }, 3)).map((task) => task.id),
    tasks
      .map((task) => task.id)
      .reverse()
      .slice(0, 3),
  );
  await store.write(async (tx) => forget(tx, { kind: "sample", id: 1 }, 2));
  assert.equal((await list(store.read, { kind: "sample", id: 1 }, 10)).length, 2);
  await engine.drain();
});
invariant("the timeout of a waiting flow begins when it runs", async (store) => {
  const alarm = createTestAlarm();
  const fixture = createEngineFixture();
  const gate = createGate();
  const long = flow({
    name: "sample.long",
    subject: "sample",
    steps: [{ name: "Long", time: 3_600_000, do: gate.pass }],
  });
  const failures = 2;
  let tried = 0;
  const testFlow = createFixtureFlow(fixture);
  const throwingFlow = {
    ...testFlow,
    steps: [{ name: "Only", do: async () => (tried++ < failures ? Promise.reject(new Error("not yet")) : {}) }],
  };
  await begin(store, long, 1, alarm.now());
  const { id } = await begin(store, throwingFlow, 1, alarm.now());
  const process = createCrashableStore(store);
  const engine = createFixtureEngine(process, alarm, { flows: [long, throwingFlow] });
  engine.run();
  await gate.reached;
  for (let minutes = 0; minutes < 30; minutes++) {
    alarm.pass(60_000 / 6);
    do await turn();
    while (process.pending > 0);
  }
  const waiting = await mustFind(store, id);
  assert.equal(waiting.state, "Postponed");
  assert.deepEqual(new Set(waiting.steps.map((step) => step.state)), new Set(["Pending"]));
  gate.open();
  await drive(engine, alarm, async () => (await mustFind(store, id)).end !== null);
  const task = await mustFind(store, id);
  assert.equal(task.state, "Completed");
  const { deadline_at } = await store.read
    .selectFrom("task")
    .select("deadline_at")
    .where("id", "=", id)
    .executeTakeFirstOrThrow();
  assert.ok(deadline_at !== null && deadline_at > alarm.now() && deadline_at <= alarm.now() + throwingFlow.deadline);
  await engine.drain();
});
invariant("concurrent starts are all run", async (store, database) => {
  const alarm = createTestAlarm();
  const order: number[] = [];
  const quick = flow({
    name: "sample.quick",
    subject: "sample",
    steps: [{ name: "Only" }],
    // A transaction may run twice.
    ended: async (_tx, run) => void (order.at(-1) !== run.task && order.push(run.task)),
  });
  const other = database.kind === "sqlite" ? store : observeCommits(await database.open());
  const engine = createFixtureEngine(store, alarm, { flows: [quick] });
  engine.run();
  const ids: number[] = [];
  const writer = async (each: ObservedStore) => {
    for (let n = 0; n < 25; n++) ids.push((await begin(each, quick, 1, alarm.now())).id);
  };
  await Promise.all([store, other, store, other, store, other].map(writer));
  while (order.length < ids.length) {
    await engine.idle();
    const left = await queue(store.read, { kind: "sample", id: 1 });
    assert.ok(left.length === 0 || left.some((task) => task.state === "InProgress"), "a task runs");
    alarm.step();
  }
  assert.deepEqual(
    order,
    ids.sort((one, two) => one - two),
  );
  await engine.drain();
});
invariant("waiting flows are canceled at once, and the running one is undone", async (store) => {
  const alarm = createTestAlarm();
  const fixture = createEngineFixture();
  const gate = createGate();
  const testFlow = createFixtureFlow(fixture);
  const [first, ...others] = testFlow.steps;
  assert.ok(first);
  const held = { ...testFlow, steps: [first, { ...others[0], name: "Disk", do: gate.pass }, ...others.slice(1)] };
  const running = await begin(store, held, 1, alarm.now());
  const waiting = await begin(store, held, 1, alarm.now());
  const engine = createFixtureEngine(store, alarm, { flows: [held] });
  engine.run();
  await gate.reached;
  const outcome = engine.ended(waiting.id);
  const canceled = await store.write((tx) => cancel(tx, { kind: "sample", id: 1 }, why, alarm.now()));
  await outcome;
  assert.deepEqual(
    canceled.map((task) => [task.id, task.state]),
    [[waiting.id, "Canceled"]],
  );
  assert.deepEqual((await mustFind(store, waiting.id)).error, { ...why, step: null });
  assert.equal((await mustFind(store, running.id)).state, "InProgress");
  const next = await begin(store, held, 1, alarm.now());
  assert.equal(next.state, "Postponed");
  gate.open();
  await engine.ended(running.id);
  const task = await mustFind(store, running.id);
  assert.equal(task.state, "Canceled");
  assert.deepEqual(task.error?.code, "superseded");
  assert.deepEqual(
    task.steps.map((step) => step.state),
    ["Undone", "Undone", "Pending"],
  );
  await engine.ended(next.id);
  assert.equal((await mustFind(store, next.id)).state, "Completed");
  await engine.drain();
});
invariant("canceling one flow or all waiting ones does not affect the others", async (store) => {
  const alarm = createTestAlarm();
  const fixture = createEngineFixture();
  const gate = createGate();
  const testFlow = createFixtureFlow(fixture);
  const held = { ...testFlow, steps: [{ name: "Boot", do: gate.pass }] };
  const tasks: Task[] = [];
  for (let count = 0; count < 4; count++) tasks.push(await begin(store, held, 1, alarm.now()));
  const [running, second, third, fourth] = tasks;
  const engine = createFixtureEngine(store, alarm, { flows: [held] });
  engine.run();
  await gate.reached;
  const end = async (only: { task?: number; waiting?: boolean }) =>
    (await store.write((tx) => cancel(tx, { kind: "sample", id: 1 }, why, alarm.now(), only))).map(({ id }) => id);
  const waiting = async () => (await queue(store.read, { kind: "sample", id: 1 })).map(({ id }) => id);
  assert.deepEqual(await end({ task: third?.id ?? 0 }), [third?.id]);
  assert.deepEqual(await waiting(), [running?.id, second?.id, fourth?.id]);
  assert.deepEqual(await end({ waiting: true }), [second?.id, fourth?.id]);
  assert.deepEqual(await waiting(), [running?.id]);
  gate.open();
  await engine.idle();
  assert.equal((await mustFind(store, running?.id ?? 0)).state, "Completed");
  await engine.drain();
});
invariant("an error contains the last output of the object", async (store) => {
  const alarm = createTestAlarm();
  const thrown = new StepError("boot_failed", "It did not start.", "Why.", { final: true, log: "panic" });
  const failing = flow({
    name: "sample.panic",
    subject: "sample",
    steps: [{ name: "Boot", do: () => Promise.reject(thrown) }],
  });
  const engine = createFixtureEngine(store, alarm, { flows: [failing] });
  engine.run();
  const { id } = await begin(store, failing, 1, alarm.now());
  await engine.ended(id);
  const error = { code: "boot_failed", title: "It did not start.", detail: "Why.", step: "Boot", log: "panic" };
  assert.deepEqual((await mustFind(store, id)).error, error);
  await engine.drain();
});

invariant("a flow can start with completed steps, or use only some steps", async (store) => {
  const alarm = createTestAlarm();
  const fixture = createEngineFixture();
  const testFlow = createFixtureFlow(fixture);
  const engine = createFixtureEngine(store, alarm, { flows: [testFlow] });
  const half = await begin(store, testFlow, 1, alarm.now(), { done: { Reserve: "10.64.0.10 on network 5" } });
  assert.equal(half.progress, 33);
  assert.equal(half.steps[0]?.detail, "10.64.0.10 on network 5");
  const some = await begin(store, testFlow, 2, alarm.now(), { steps: ["Boot"] });
  assert.deepEqual(some.steps, [{ name: "Boot", state: "Pending", start: null, end: null, detail: "" }]);
  const none = await begin(store, testFlow, 3, alarm.now(), { steps: [] });
  assert.deepEqual([none.state, none.progress, none.end, none.steps], ["Completed", 100, alarm.now(), []]);
  const complete = await begin(store, testFlow, 4, alarm.now(), { steps: ["Boot"], done: { Boot: "" } });
  assert.equal(complete.progress, 99);
  await assert.rejects(begin(store, testFlow, 5, alarm.now(), { steps: ["Boot", "Fly"] }), /does not have all/);
  await assert.rejects(begin(store, testFlow, 5, alarm.now(), { done: { Boot: "" } }), /must be its first/);
  engine.run();
  await engine.idle();
  assert.deepEqual([...fixture.resources].sort(), ["Boot 1", "Boot 2", "Disk 1"]);
  for (const { id } of [half, some, none, complete]) {
    const task = await mustFind(store, id);
    assert.deepEqual([task.state, task.progress], ["Completed", 100]);
  }
  await engine.drain();
});

invariant("a waiting step counts no attempts, and can be woken", async (store) => {
  const alarm = createTestAlarm();
  let checks = 0;
  let ready = false;
  const overdue = new StepError("ssh_not_ready", "No banner was received.", "Port 22 was silent.");
  const waitingFlow = flow({
    name: "sample.patient",
    subject: "sample",
    steps: [
      {
        name: "Ssh",
        time: 60_000,
        async do({ attempt }): Promise<Wait | void> {
          checks++;
          assert.equal(attempt, 1);
          if (!ready) return { wait: 2_000, overdue, detail: "silent so far" };
        },
      },
    ],
  });
  const engine = createFixtureEngine(store, alarm, { flows: [waitingFlow] });
  engine.run();
  const late = await begin(store, waitingFlow, 1, alarm.now());
  await engine.idle();
  assert.deepEqual((await mustFind(store, late.id)).steps[0]?.detail, "silent so far");
  await drive(engine, alarm, async () => (await mustFind(store, late.id)).end !== null);
  assert.deepEqual((await mustFind(store, late.id)).error?.code, "ssh_not_ready");
  assert.ok(checks >= 30 && checks <= 32, `${checks} checks`);
  const woken = await begin(store, waitingFlow, 2, alarm.now());
  await engine.idle();
  ready = true;
  await store.write((tx) => wake(tx, woken.id, alarm.now()));
  await engine.idle();
  assert.equal((await mustFind(store, woken.id)).state, "Completed");
  await engine.drain();
});

invariant("the timeout of a step begins when it runs, and polls without change emit nothing", async (store) => {
  const alarm = createTestAlarm();
  const begun = alarm.now();
  const seconds = () => (alarm.now() - begun) / 1000;
  const logged: string[] = [];
  const queued = (subject: number): Wait => ({ wait: 1000, turn: 120_000, detail: `${subject} waits for its turn` });
  const queuedFlow = flow({
    name: "sample.queue",
    subject: "sample",
    time: 15_000,
    steps: [
      {
        name: "Boot",
        // The first has its turn after 60 seconds, and is done 10 later; the second never.
        do: async ({ subject }): Promise<Wait | void> =>
          subject === 2 || seconds() < 60 ? queued(subject) : seconds() < 70 ? { wait: 1000 } : undefined,
      },
    ],
    announce: async (_tx, { subject }, what) => void (subject.id === 1 && logged.push(what)),
  });
  const engine = createFixtureEngine(store, alarm, { flows: [queuedFlow] });
  engine.run();
  const [first, second] = [await begin(store, queuedFlow, 1, begun), await begin(store, queuedFlow, 2, begun)];
  await drive(engine, alarm, async () => (await mustFind(store, second.id)).end !== null);
  assert.equal((await mustFind(store, first.id)).state, "Completed");
  assert.equal((await mustFind(store, second.id)).error?.code, "deadline_exceeded");
  assert.ok(seconds() >= 120 && seconds() < 125, `${seconds()} s`);
  assert.ok(logged.length <= 3, logged.join());
  await engine.drain();
});

invariant("a flow emits its start, its changes once a second, and its end", async (store) => {
  const alarm = createTestAlarm();
  const logged: string[] = [];
  const steps = ["One", "Two", "Three", "Four", "Five", "Six"].map((name) => ({
    name,
    do: async () => alarm.pass(400),
  }));
  const withNotes = flow({
    name: "sample.notes",
    subject: "sample",
    steps,
    announce: async (_tx, task, what) => void logged.push(`${what} ${task.progress}`),
  });
  const engine = createFixtureEngine(store, alarm, { flows: [withNotes] });
  engine.run();
  await engine.ended((await begin(store, withNotes, 1, alarm.now())).id);
  assert.deepEqual(logged, ["created 0", "changed 50", "ended 100"]);
  await engine.drain();
});
