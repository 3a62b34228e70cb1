/** Flows whose undo fails, the order of urgent flows, and turns of the event loop. */
import assert from "node:assert/strict";
import { DefaultQueryCompiler } from "kysely";
import { flow } from "../../service/src/engine/flow.ts";
import { queue, start } from "../../service/src/engine/task.ts";
import { createFixtureEngine, createGate, createTestAlarm, invariant, mustFind } from "../support/enginefixture.ts";

invariant("an undo that always fails ends, and earlier steps are undone", async (store) => {
  const alarm = createTestAlarm();
  const undone: string[] = [];
  const stuck = flow({
    name: "sample.stuck",
    subject: "sample",
    tries: 1,
    steps: [
      { name: "First", do: async () => {}, undo: async () => void undone.push("First") },
      {
        name: "Second",
        do: async () => {},
        async undo() {
          throw new Error("it cannot be undone");
        },
      },
      {
        name: "Third",
        async do() {
          throw new Error("no");
        },
      },
    ],
  });
  const task = await store.write((tx) => start(tx, stuck, { subject: 1, project: 1, input: null, now: alarm.now() }));
  const began = alarm.now();
  const engine = createFixtureEngine(store, alarm, { flows: [stuck] });
  engine.run();
  for (let ended = false; !ended; ended = (await mustFind(store, task.id)).end !== null) {
    await engine.idle();
    alarm.step();
  }
  const { state, steps } = await mustFind(store, task.id);
  assert.deepEqual([state, undone], ["Failed", ["First"]]);
  assert.deepEqual(
    steps.map((step) => step.state),
    ["Undone", "Failed", "Failed"],
  );
  assert.match(steps[1]?.detail ?? "", /could not be undone within 600 s/);
  assert.ok(alarm.now() - began < 900_000, "it took longer than its timeout");
  await engine.drain();
});

invariant("an urgent flow runs before waiting flows, and after the running one", async (store) => {
  const alarm = createTestAlarm();
  const order: number[] = [];
  const gate = createGate();
  const noting = flow({
    name: "sample.noting",
    subject: "sample",
    steps: [
      {
        name: "Note",
        async do({ task }) {
          if (order.length === 0) await gate.pass();
          order.push(task);
        },
      },
    ],
  });
  const put = (urgent: boolean) =>
    store.write((tx) => start(tx, noting, { subject: 1, project: 1, input: null, now: alarm.now(), urgent }));
  const first = await put(false);
  const second = await put(false);
  const urgent = await put(true);
  const waiting = (await queue(store.read, { kind: "sample", id: 1 })).map(({ id }) => id);
  assert.deepEqual(waiting, [first.id, urgent.id, second.id]);
  const engine = createFixtureEngine(store, alarm, { flows: [noting] });
  engine.run();
  await gate.reached;
  gate.open();
  await engine.ended(second.id);
  assert.deepEqual(order, [first.id, urgent.id, second.id]);
  await engine.drain();
});

invariant("steps that end at once leave turns of the event loop to others", async (store) => {
  const alarm = createTestAlarm();
  let done = 0;
  let most = 0;
  let isOver = false;
  const busy = flow({
    name: "sample.busy",
    subject: "sample",
    steps: [
      {
        name: "Work",
        async do() {
          await Promise.resolve();
          for (const until = performance.now() + 3; performance.now() < until; );
          done += 1;
        },
      },
    ],
  });
  for (let subject = 1; subject <= 20; subject++)
    await store.write((tx) => start(tx, busy, { subject, project: 1, input: null, now: alarm.now() }));
  const engine = createFixtureEngine(store, alarm, { flows: [busy] });
  const count = (): void => {
    most = Math.max(most, done);
    done = 0;
    if (!isOver) setImmediate(count);
  };
  setImmediate(count);
  engine.run();
  await engine.idle();
  isOver = true;
  assert.ok(most <= 3, `${most} steps in one turn`);
  await engine.drain();
});

invariant("the engine compiles its queries once, not for each task", async (store) => {
  const alarm = createTestAlarm();
  const plain = flow({ name: "sample.plain", subject: "sample", steps: [{ name: "Work", do: async () => {} }] });
  const engine = createFixtureEngine(store, alarm, { flows: [plain] });
  engine.run();
  let subject = 0;
  const runSome = async (): Promise<void> => {
    // One after the other, so that each has passes of its own.
    for (let each = 0; each < 10; each++) {
      const started = { subject: ++subject, project: 1, input: null, now: alarm.now() };
      const { id } = await store.write((tx) => start(tx, plain, started));
      await engine.ended(id);
    }
    await engine.idle();
  };
  await runSome();
  const { compileQuery } = DefaultQueryCompiler.prototype;
  const texts: string[] = [];
  DefaultQueryCompiler.prototype.compileQuery = function (this: DefaultQueryCompiler, ...input) {
    const compiled = compileQuery.apply(this, input);
    texts.push(compiled.sql);
    return compiled;
  };
  try {
    await runSome();
  } finally {
    DefaultQueryCompiler.prototype.compileQuery = compileQuery;
  }
  assert.deepEqual(texts, []);
  await engine.drain();
});
