import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { Answer } from "../drivers/webhook/interface.ts";
import type { EventRow } from "../engine/eventquery.ts";
import { createQueue, findDue } from "./model/queue.ts";
import { createSends } from "./send.ts";
import type { DeliveryRow, WebhookRow } from "./table.ts";

const webhook = { id: 7, url: "http://127.0.0.1/", secret: new Uint8Array(), failing_since: null, state: "Active" };
const row = (id: number, resource: number) =>
  ({
    id,
    webhook_id: 7,
    event_id: id,
    resource: "record",
    resource_id: resource,
    attempts: 0,
    due: 0,
    is_resend: 0,
  }) as DeliveryRow;

/** Opens a queue with these deliveries, and an endpoint whose answers the test gives. */
function open(rows: readonly DeliveryRow[], failingSince: number | null = null) {
  const queue = createQueue();
  for (const one of rows) queue.rows.set(one.id, one);
  const sent: { readonly id: number; readonly answer: (answer: Answer) => void }[] = [];
  const sends = createSends({
    findEvent: async (id) => ({ id, type: "record.created" }) as EventRow,
    clock: { now: () => 0 },
    log: () => {},
    sealer: { seal: (text: string) => Buffer.from(text), open: () => "secret" },
    sender: {
      send: ({ headers }) =>
        new Promise((answer) => {
          sent.push({ id: Number(headers["brume-delivery"]), answer });
        }),
      judge: async () => null,
      close: () => {},
    },
    print: () => "{}",
    hasRequests: () => false,
    isQueued: (one) => queue.rows.get(one.id) === one,
    onEnd: () => {},
  });
  const offered = { ...webhook, failing_since: failingSince } as WebhookRow;
  const offer = () =>
    sends.offer([{ webhook: offered, queue, due: findDue(queue, "Active", ({ id }) => sends.has(id), 1) }]);
  const untilSent = async (count: number) => {
    while (sent.length < count) await nextTurn();
    for (let turn = 0; turn < 5; turn++) await nextTurn();
    assert.equal(sent.length, count);
  };
  return { sends, queue, sent, offer, untilSent };
}

const taken: Answer = { status: 204, error: null };
const rejected: Answer = { status: 500, error: "The endpoint returned status 500." };

test("the next delivery starts when one ends, not when its result is stored", async () => {
  const { sends, sent, offer, untilSent } = open(Array.from({ length: 40 }, (_, i) => row(i + 1, i + 1)));
  offer();
  await untilSent(16);
  for (const each of sent.slice(0, 10)) each.answer(taken);
  await untilSent(26);
  for (const each of sent) each.answer(taken);
  await untilSent(40);
  assert.deepEqual(sends.counts.inFlight, 40);
  assert.deepEqual(new Set(sent.map(({ id }) => id)).size, 40);
});

test("the next delivery of a resource waits until the result is stored", async () => {
  const { sends, queue, sent, offer, untilSent } = open([row(1, 5), row(2, 5), row(3, 6)]);
  offer();
  await untilSent(2);
  assert.deepEqual(
    sent.map(({ id }) => id),
    [1, 3],
  );
  for (const each of sent) each.answer(taken);
  await untilSent(2);
  offer();
  await untilSent(2);
  const stored = [...sends.results()];
  sends.settle(stored);
  for (const { row: one } of stored) queue.rows.delete(one.id);
  offer();
  await untilSent(3);
  assert.equal(sent[2]?.id, 2);
});

test("a rejected delivery keeps its slot until the result is stored, and a failing endpoint has one", async () => {
  const many = open(Array.from({ length: 40 }, (_, i) => row(i + 1, i + 1)));
  many.offer();
  await many.untilSent(16);
  for (const each of many.sent) each.answer(rejected);
  await many.untilSent(16);
  many.sends.settle([...many.sends.results()]);
  many.offer();
  await many.untilSent(32);

  const failing = open(
    Array.from({ length: 5 }, (_, i) => row(i + 1, i + 1)),
    1,
  );
  failing.offer();
  await failing.untilSent(1);
});

test("a delivery that was removed since the offer is not sent", async () => {
  const { queue, sent, offer, untilSent } = open(Array.from({ length: 20 }, (_, i) => row(i + 1, i + 1)));
  offer();
  queue.rows.delete(12);
  await untilSent(16);
  assert.ok(!sent.some(({ id }) => id === 12));
});
