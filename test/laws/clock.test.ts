/** The clock of the machine is set back or forward: intervals stay as long as they were, and nothing sleeps until the old time. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { flow, keeper } from "../../service/src/engine/flow.ts";
import { nudge } from "../../service/src/engine/task.ts";
import { createTickets } from "../../service/src/http/tickets.ts";
import { begin, createGate, createTestAlarm, createToyEngine, law, mustFind } from "../toy.ts";
import { createWorld } from "../world.ts";

const minute = 60_000;
const days = 24 * 60 * minute;

/** A clock that can be set, over one that cannot. */
function createSettable() {
  const inner = createTestAlarm();
  let offset = 0;
  return {
    now: () => inner.now() + offset,
    steady: () => inner.now(),
    at: (time: number, call: () => void) => inner.at(time - offset, call),
    pass: inner.pass,
    set: (by: number): void => {
      offset += by;
    },
  };
}

for (const by of [-10 * days, 10 * days]) {
  const way = by < 0 ? "back" : "forward";

  law(`a keeper goes on at its pace when the clock is set ${way}`, async (store) => {
    const alarm = createSettable();
    let runs = 0;
    const counting = keeper({ name: "toy.count", subject: "toy", period: minute, run: async () => void (runs += 1) });
    const engine = createToyEngine(store, alarm, { keepers: [counting], alone: true });
    engine.run();
    await store.write((tx) => nudge(tx, counting, 1));
    await engine.idle();
    assert.equal(runs, 1);
    alarm.set(by);
    await engine.idle();
    assert.equal(runs, 1, "nothing is due yet");
    alarm.pass(1.2 * minute);
    await engine.idle();
    assert.equal(runs, 2);
    await engine.drain();
  });

  law(`a step that runs while the clock is set ${way} keeps its time`, async (store) => {
    const alarm = createSettable();
    const gate = createGate();
    let tries = 0;
    const slow = flow({
      name: "toy.slow",
      subject: "toy",
      pause: { first: minute, factor: 1, most: minute },
      steps: [
        {
          name: "Slow",
          time: 5 * minute,
          async do() {
            tries += 1;
            if (tries > 1) return;
            await gate.pass();
            throw new Error("again");
          },
        },
      ],
    });
    const engine = createToyEngine(store, alarm, { flows: [slow], alone: true });
    engine.run();
    const { id } = await begin(store, slow, 1, alarm.now());
    await gate.reached;
    alarm.set(by);
    engine.wake();
    gate.open();
    await engine.idle();
    assert.equal((await mustFind(store, id)).state, "InProgress", "its time is not over");
    alarm.pass(2 * minute);
    await engine.idle();
    assert.equal((await mustFind(store, id)).state, "Completed");
    assert.equal(tries, 2);
    await engine.drain();
  });
}

law("what is due beyond any interval at a start is brought back", async (store) => {
  const alarm = createSettable();
  let runs = 0;
  const counting = keeper({ name: "toy.count", subject: "toy", period: minute, run: async () => void (runs += 1) });
  await store.write((tx) => nudge(tx, counting, 1, { notBefore: alarm.now() + 10 * days }));
  const engine = createToyEngine(store, alarm, { keepers: [counting], alone: true });
  engine.run();
  await engine.idle();
  assert.equal(runs, 1);
  await engine.drain();
});

test("a ticket is good for its minute, however the clock is set", () => {
  const clock = createSettable();
  const tickets = createTickets(clock, (bytes) => new Uint8Array(bytes).fill(clock.steady() % 251));
  const open = () => Promise.reject(new Error("not asked"));
  const early = tickets.issue("/console", open);
  clock.set(10 * days);
  assert.ok(tickets.has(early.path));
  clock.set(-20 * days);
  clock.pass(minute + 1);
  assert.ok(!tickets.has(early.path));
});

test("an unconfirmed firewall falls back in its time though the clock was set back", { timeout: 60_000 }, async () => {
  let offset = 0;
  const clock = { now: () => Date.now() + offset, steady: () => performance.now() };
  const world = await createWorld("sqlite", { clock });
  try {
    const network = await world.client.createPublicNetwork({ body: { Name: "dmz" } });
    const path = { id: network.Id };
    await world.client.configureFirewall({ path, body: { Rules: [], ConfirmWithin: 10 } });
    offset = -10 * days;
    for (;;) {
      const { Firewall } = await world.client.readPublicNetwork({ path });
      if (Firewall.ConfirmBy === null) break;
      await sleep(200);
    }
  } finally {
    await world.close();
  }
});
