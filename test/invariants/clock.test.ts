/** The clock of the host is set back or forward: intervals keep their length, and no timer waits for the old time. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { ensureFirst } from "../../service/src/account/first.ts";
import { since } from "../../service/src/base/clock.ts";
import { defineReconciler, flow } from "../../service/src/engine/flow.ts";
import { list, requestReconcile } from "../../service/src/engine/task.ts";
import { createTickets } from "../../service/src/http/tickets.ts";
import { updateServer } from "../../service/src/server/table.ts";
import { createQueue, findDue, isQuiet } from "../../service/src/webhook/model/queue.ts";
import { record } from "../../service/src/webhook/outcome.ts";
import { type DeliveryRow, findWebhook, insertWebhook } from "../../service/src/webhook/table.ts";
import {
  begin,
  createFixtureEngine,
  createGate,
  createTestAlarm,
  invariant,
  mustFind,
} from "../support/enginefixture.ts";
import { openServerFixture } from "../support/serverfixture.ts";
import { createTestService } from "../support/testservice.ts";
import { waitUntil } from "../support/waituntil.ts";

const minute = 60_000;
const days = 24 * 60 * minute;

/** A wall clock that can be set, over a monotonic clock. */
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

  invariant(`a reconciler keeps its period when the clock is set ${way}`, async (store) => {
    const alarm = createSettable();
    let runs = 0;
    const counting = defineReconciler({
      name: "sample.count",
      subject: "sample",
      period: minute,
      run: async () => void (runs += 1),
    });
    const engine = createFixtureEngine(store, alarm, { reconcilers: [counting], alone: true });
    engine.run();
    await store.write((tx) => requestReconcile(tx, counting, 1));
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

  invariant(`a step reports its progress after the clock was set ${way}`, async (store) => {
    const alarm = createSettable();
    const [begun, end] = [createGate(), createGate()];
    const told: string[] = [];
    const busy = flow({
      name: "sample.busy",
      subject: "sample",
      time: 5 * minute,
      steps: [
        {
          name: "Disk",
          async do({ note }) {
            await begun.pass();
            note?.("10 %");
            await end.pass();
          },
        },
      ],
      announce: async (_tx, { steps }) => void told.push(`${steps[0]?.detail}`),
    });
    const engine = createFixtureEngine(store, alarm, { flows: [busy], alone: true });
    engine.run();
    await begin(store, busy, 1, alarm.now());
    await begun.reached;
    alarm.set(by);
    begun.open();
    await end.reached;
    alarm.pass(1000);
    // A commit takes as long as the database needs.
    await waitUntil(
      "the note",
      () => told,
      (notes) => notes.includes("10 %"),
    );
    end.open();
    await engine.idle();
    await engine.drain();
  });

  invariant(`a step that runs while the clock is set ${way} keeps its timeout`, async (store) => {
    const alarm = createSettable();
    const gate = createGate();
    let tries = 0;
    const slow = flow({
      name: "sample.slow",
      subject: "sample",
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
    const engine = createFixtureEngine(store, alarm, { flows: [slow], alone: true });
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

invariant("a due time beyond the longest interval is corrected at a start", async (store) => {
  const alarm = createSettable();
  let runs = 0;
  const counting = defineReconciler({
    name: "sample.count",
    subject: "sample",
    period: minute,
    run: async () => void (runs += 1),
  });
  await store.write((tx) => requestReconcile(tx, counting, 1, { notBefore: alarm.now() + 10 * days }));
  const engine = createFixtureEngine(store, alarm, { reconcilers: [counting], alone: true });
  engine.run();
  await engine.idle();
  assert.equal(runs, 1);
  await engine.drain();
});

invariant("a backup with a future date does not prevent the next one", async (store) => {
  const now = Date.UTC(2026, 10, 20);
  const fixture = await openServerFixture(store, () => now);
  const server = await fixture.makeServer();
  const reconciler =
    fixture.servers.reconcilers.find(({ name }) => name === "server.backup") ?? assert.fail("no reconciler");
  const made = async (change: Parameters<typeof updateServer>[2]): Promise<boolean> => {
    await store.write((tx) => updateServer(tx, server.id, { is_backup_active: 1, ...change }));
    const before = (await list(store.read, { kind: "server", id: server.id }, 99)).length;
    await reconciler.run({ subject: 0, attempt: 1, signal: new AbortController().signal });
    return (await list(store.read, { kind: "server", id: server.id }, 99)).length > before;
  };
  try {
    assert.equal(await made({ backed_up: now - 1000 }), false, "it was made a second ago");
    assert.equal(await made({ backed_up: now + 1000 }), false, "the clock was set by little");
    assert.equal(await made({ backed_up: null, backup_failed: now - 1000 }), false, "it failed a second ago");
    assert.equal(await made({ backed_up: now + 10 * days, backup_failed: now + 10 * days }), true);
    assert.equal((await fixture.row(server.id)).backed_up, now);
  } finally {
    fixture.servers.close();
  }
});

test("tasks with future dates are not counted", () => {
  const now = Date.UTC(2026, 10, 20);
  assert.equal(since(now - minute, now), minute);
  assert.equal(since(now + 1000, now, minute), -1000);
  assert.equal(since(now + 10 * days, now, minute), Infinity);
});

test("a delivery that is due beyond the longest pause is sent now", () => {
  const now = Date.UTC(2026, 10, 20);
  const queue = createQueue();
  const row = { id: 1, is_resend: 0, resource: "sample", resource_id: 1, attempts: 1, due: now + minute };
  const find = (due: number): number => {
    queue.rows.set(1, { ...row, due } as unknown as DeliveryRow);
    return findDue(queue, "Active", () => false, now).length;
  };
  assert.equal(find(now + minute), 0);
  assert.ok(isQuiet(queue, now));
  assert.ok(!isQuiet({ ...queue, quietUntil: now + 10 * days }, now), "the clock was set back since it was noted");
  assert.equal(find(now + 10 * days), 1);
});

invariant("an endpoint with a failure date in the future gets a day from now", async (store) => {
  const now = Date.UTC(2026, 10, 20);
  await ensureFirst(store, { now: () => now }, "0".repeat(64));
  const webhook = await store.write((tx) =>
    insertWebhook(tx, {
      project_id: 1,
      url: "https://example.com/",
      types: "[]",
      secret: new Uint8Array(1),
      state: "Active",
      cursor: 0,
      failing_since: now + 10 * days,
      error: "before",
      created: now,
      labels: "{}",
      version: 1,
    }),
  );
  const row = {
    webhook_id: webhook.id,
    event_id: 1,
    type: "sample.made",
    resource: "sample",
    resource_id: 1,
    state: "Waiting" as const,
    created: now + 10 * days,
    due: now,
  };
  const [fresh, worn] = await store.write(async (tx) => {
    const insert = (attempts: number) =>
      tx
        .insertInto("webhook_delivery")
        .values({ ...row, attempts })
        .returningAll()
        .executeTakeFirstOrThrow();
    return [await insert(1), await insert(100)];
  });
  const answer = { status: 500, error: "500" };
  const results = [fresh, worn].map((each) => ({ row: each, answer }));
  const { ended, again } = await store.write((tx) => record(tx, { webhook, results, surplus: [] }, now, () => 0));
  assert.deepEqual(ended, [worn?.id], "attempts are bounded at any time of the clock");
  assert.deepEqual(
    again.map(({ id }) => id),
    [fresh?.id],
  );
  assert.equal((await findWebhook(store.read, 1, webhook.id))?.failing_since, now);
});

test("a ticket is valid for a minute, also if the clock is set", () => {
  const clock = createSettable();
  const tickets = createTickets(clock, (bytes) => new Uint8Array(bytes).fill(clock.steady() % 251));
  const open = () => Promise.reject(new Error("not called"));
  const early = tickets.issue("/console", open);
  clock.set(10 * days);
  assert.ok(tickets.has(early.path));
  clock.set(-20 * days);
  clock.pass(minute + 1);
  assert.ok(!tickets.has(early.path));
});

test("an unconfirmed firewall is reverted in time although the clock was set back", async () => {
  let offset = 0;
  const clock = { now: () => Date.now() + offset, steady: () => performance.now() };
  const brume = await createTestService("sqlite", { clock });
  try {
    const network = await brume.client.createPublicNetwork({ body: { Name: "dmz" } });
    const path = { id: network.Id };
    await brume.client.configureFirewall({ path, body: { Rules: [], ConfirmWithin: 10 } });
    offset = -10 * days;
    for (;;) {
      const { Firewall } = await brume.client.readPublicNetwork({ path });
      if (Firewall.ConfirmBy === null) break;
      await sleep(200);
    }
  } finally {
    await brume.close();
  }
});
