/**
 * Delivers events to webhooks. One worker serves all webhooks; a lease ensures that there is only one, even if processes share a database.
 * All its state is in rows too, except the deliveries in flight, so a crash repeats at most those.
 *
 * Each webhook reads events after its cursor and stores a delivery row per event, in batches. Deliveries of one resource are sent in order,
 * each after the result of the previous one is stored. A failing endpoint gets one attempt at a time, and all failing endpoints together at
 * most half of the send slots, so they delay no others. A round stores the results and new deliveries of all webhooks in one transaction, and
 * finds what can be sent; `send.ts` sends it meanwhile. Rounds take at most half of the time, so that the API remains responsive.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { fittingTypes } from "@brume/api/event.ts";
import { type Clock, steadyOf } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { Sealer } from "../base/secret.ts";
import type { Sender } from "../drivers/webhook/interface.ts";
import { hideCommit, type ObservedStore } from "../engine/commit.ts";
import type { Feed } from "../engine/event.ts";
import type { EventRow } from "../engine/eventquery.ts";
import { defineReconciler, type Reconciler } from "../engine/flow.ts";
import { type EnqueueRange, findEventIds, insertDeliveries } from "./enqueue.ts";
import { createQueue, findDue, isQuiet, type Queue } from "./model/queue.ts";
import { everyType, maxWaiting } from "./model/rules.ts";
import { type Recorded, type Report, type Result, record } from "./outcome.ts";
import { createSends } from "./send.ts";
import * as table from "./table.ts";

export interface WebhookWorkerOptions {
  readonly store: ObservedStore;
  readonly feed: Feed;
  readonly clock: Clock;
  readonly log: Log;
  readonly sealer: Sealer;
  readonly sender: Sender;
  /** Returns whether requests of clients are being processed. Then fewer deliveries start. */
  readonly hasRequests: () => boolean;
  /** Returns a random number in [0, 1), for the jitter of retries. */
  readonly random: () => number;
  /** Returns the event as JSON, as `GET /event` shows it. */
  readonly print: (row: EventRow) => string;
}

/** The worker of all webhooks. */
export interface Webhooks {
  /** Runs the worker as long as a webhook exists. */
  readonly reconciler: Reconciler;
  /** Notifies the worker that rows of this webhook were changed. */
  wake(webhook: number): void;
  /** Resolves to the highest event id that all webhooks have processed; later events must be kept. Null: no event must be kept. */
  processed(): Promise<number | null>;
  /** Stops the worker. Deliveries in flight get `graceMs` ms to end. */
  stop(graceMs: number): Promise<void>;
}

/** Events stored as deliveries at once; more are read when fewer than `lowWater` new deliveries wait. */
const batch = 200;
const lowWater = 100;
/** Events scanned by one query, and events without a match after which the cursor is stored. */
const maxScanned = 5000;
/** Minimum pause between two rounds in ms, without and with requests of clients, and the maximum. */
const round = 25;
const requestRound = 100;
const longestPause = 1000;
/** Ms between reads of changes by other processes. */
const poll = 5000;
/** Ms before the next round after a database error. */
const retry = 1000;
const day = 24 * 3_600_000;

/** What one webhook enqueues in this round: the events of the range, or none if it is null; then its cursor is advanced. */
interface Enqueue {
  readonly webhook: number;
  readonly range: EnqueueRange | null;
  readonly cursor: number;
  /** First event that was deleted before it was enqueued (up to `cursor`), or null. */
  readonly lostFrom: number | null;
}

/** Creates the worker. It starts with the reconciler `webhook.deliver`. */
export function createWebhooks(options: WebhookWorkerOptions): Webhooks {
  const { store, feed, clock, log, sender } = options;
  const queues = new Map<number, Queue>();
  const sends = createSends({
    ...options,
    findEvent: (id) => table.findEvent.first(store.read, { id }),
    isQueued: (row) => !stopped && queues.get(row.webhook_id)?.rows.get(row.id) === row,
    onEnd: wake,
  });
  let stopped = false;
  let hasNews = false;
  let readAt = 0;
  let endPause = (): void => {};
  let ended: Promise<void> = Promise.resolve();

  /** Writes without invalidating cached responses: none of them contains deliveries. */
  const write: ObservedStore["write"] = (change) =>
    store.write((tx) => {
      hideCommit(tx);
      return change(tx);
    });

  function wake(): void {
    hasNews = true;
    endPause();
  }

  const capacityOf = (queue: Queue): number => Math.min(batch, maxWaiting + batch - queue.rows.size);
  const canEnqueue = (webhook: table.WebhookRow, queue: Queue, newest: number): boolean =>
    webhook.state === "Active" &&
    newest > Math.max(webhook.cursor, queue.after) &&
    queue.ready < lowWater &&
    capacityOf(queue) > 0;

  /** Finds the events that the webhook enqueues in this round; null: there is nothing to store. */
  async function planEnqueue(
    webhook: table.WebhookRow,
    queue: Queue,
    newest: number,
    oldest: number,
  ): Promise<Enqueue | null> {
    if (!canEnqueue(webhook, queue, newest)) return null;
    const after = Math.max(webhook.cursor, queue.after);
    // A cursor of 0 means that there was no event yet; the first id may be higher than 1.
    if (after > 0 && oldest > after + 1)
      return { webhook: webhook.id, range: null, cursor: oldest - 1, lostFrom: after + 1 };
    const limit = capacityOf(queue);
    const types = JSON.parse(webhook.types) as string[];
    const until = Math.min(newest, after + maxScanned);
    const selected = types.includes(everyType) ? null : fittingTypes(types);
    const range = { project: webhook.project_id, types: selected, after, until };
    const ids = await findEventIds(store.read, range, limit);
    const last = ids.at(-1);
    const cursor = ids.length === limit && last !== undefined ? last : until;
    if (last !== undefined) return { webhook: webhook.id, range: { ...range, until: last }, cursor, lostFrom: null };
    queue.after = cursor;
    return cursor - webhook.cursor > maxScanned ? { webhook: webhook.id, range: null, cursor, lostFrom: null } : null;
  }

  function reportsOf(webhooks: readonly table.WebhookRow[], ended: readonly Result[]): Report[] {
    const byWebhook = Map.groupBy(ended, ({ row }) => row.webhook_id);
    return webhooks.flatMap((webhook) => {
      const ready = byWebhook.get(webhook.id);
      if (ready === undefined) return [];
      const waiting = [...(queues.get(webhook.id)?.rows.values() ?? [])];
      const idle = waiting.filter((row) => row.is_resend === 0 && !sends.has(row.id));
      const surplus = idle.slice(0, Math.max(0, waiting.length - maxWaiting)).map(({ id }) => id);
      return [{ webhook, results: ready, surplus }];
    });
  }

  /** Stores the results and the new deliveries of this round in one transaction. Resolves to false if there were none. */
  async function storeRound(webhooks: readonly table.WebhookRow[], plans: readonly Enqueue[]): Promise<boolean> {
    const batchOfResults = [...sends.results()];
    if (batchOfResults.length === 0 && plans.length === 0) return false;
    const now = clock.now();
    const reports = reportsOf(webhooks, batchOfResults);
    const { recorded, enqueued } = await write(async (tx) => {
      const recorded: [number, Recorded][] = [];
      for (const report of reports) recorded.push([report.webhook.id, await record(tx, report, now, options.random)]);
      const enqueued: [Enqueue, table.DeliveryRow[]][] = [];
      for (const plan of plans) {
        const { webhook, range, cursor, lostFrom } = plan;
        if (lostFrom !== null) await table.insertLost(tx, webhook, { from: lostFrom, to: cursor }, now);
        enqueued.push([plan, range === null ? [] : await insertDeliveries(tx, webhook, range, now)]);
        await table.updateWebhook(tx, webhook, { cursor });
      }
      return { recorded, enqueued };
    });
    for (const { webhook, cursor, lostFrom } of plans)
      if (lostFrom !== null)
        log("warn", "Events were deleted before they were enqueued for a webhook.", {
          webhook,
          from: lostFrom,
          to: cursor,
        });
    sends.settle(batchOfResults);
    for (const [id, { ended, again }] of recorded) {
      const queue = queues.get(id);
      if (queue === undefined) continue;
      for (const delivery of ended) queue.rows.delete(delivery);
      for (const row of again) queue.rows.set(row.id, row);
      queue.quietUntil = 0;
    }
    for (const [{ webhook, cursor }, rows] of enqueued) {
      const queue = queues.get(webhook);
      if (queue === undefined) continue;
      for (const row of rows) queue.rows.set(row.id, row);
      queue.after = cursor;
      if (rows.length > 0) queue.quietUntil = 0;
    }
    return true;
  }

  /** Brings `queues` to the rows of these webhooks: reads stale queues, and removes those of other webhooks. */
  async function readQueues(webhooks: readonly table.WebhookRow[]): Promise<void> {
    if (!store.alone && steadyOf(clock) >= readAt + poll) {
      readAt = steadyOf(clock);
      for (const queue of queues.values()) queue.isStale = true;
    }
    const ids = new Set(webhooks.map(({ id }) => id));
    for (const id of queues.keys()) if (!ids.has(id)) queues.delete(id);
    for (const id of ids) {
      const queue = queues.get(id) ?? createQueue();
      queues.set(id, queue);
      if (!queue.isStale) continue;
      queue.isStale = false;
      queue.rows.clear();
      queue.quietUntil = 0;
      for (const row of await table.listWaiting.all(store.read, { webhook: id })) queue.rows.set(row.id, row);
    }
  }

  /** Runs one round for all webhooks. Resolves to the ms until the next round, or to null if there is no webhook. */
  async function runRound(): Promise<number | null> {
    hasNews = false;
    const [newest, oldest] = [await feed.newest(), await feed.oldest()];
    const webhooks = await table.listAllWebhooks.all(store.read, {});
    await readQueues(webhooks);
    if (webhooks.length === 0 && sends.counts.inFlight === 0) return null;
    const plans: Enqueue[] = [];
    for (const webhook of webhooks) {
      const plan = await planEnqueue(webhook, queues.get(webhook.id) as Queue, newest, oldest);
      if (plan !== null) plans.push(plan);
    }
    const isChanged = await storeRound(webhooks, plans);
    return offerDue(isChanged ? await table.listAllWebhooks.all(store.read, {}) : webhooks, newest);
  }

  /** Offers the due deliveries for sending. Returns the ms until the next round. */
  function offerDue(webhooks: readonly table.WebhookRow[], newest: number): number {
    const now = clock.now();
    const waiting = webhooks.flatMap((webhook) => {
      const queue = queues.get(webhook.id);
      if (queue === undefined || isQuiet(queue, now)) return [];
      return [{ webhook, queue, due: findDue(queue, webhook.state, ({ id }) => sends.has(id), now) }];
    });
    sends.offer(waiting);
    if (waiting.some(({ webhook, due }) => due.length > 0 && sends.hasSlot(webhook))) return round;
    const hasMore = (webhook: table.WebhookRow): boolean => {
      const queue = queues.get(webhook.id);
      return queue !== undefined && canEnqueue(webhook, queue, newest);
    };
    if (webhooks.some(hasMore)) return round;
    // Deliveries without a slot are started in the round that follows the next result.
    const times = [...queues.values()].map(({ quietUntil }) => quietUntil).filter((time) => time > now);
    return Math.max(round, Math.min(poll, ...times.map((time) => time - now)));
  }

  /** Resolves after `ms`, or earlier when `wake` is called, but not before `least` ms. */
  async function pause(ms: number, least: number, signal: AbortSignal): Promise<void> {
    await sleep(least);
    if (hasNews || ms <= least || stopped || signal.aborted) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms - least);
      endPause = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  async function runRounds(signal: AbortSignal): Promise<void> {
    const unsubscribe = feed.subscribe(wake);
    signal.addEventListener("abort", wake, { once: true });
    // Another process may have held the lease and changed the rows.
    queues.clear();
    try {
      while (!stopped && !signal.aborted) {
        const startedAt = steadyOf(clock);
        const next = await runRound().catch((error: unknown) => {
          log("warn", "Could not run a round of webhook deliveries; retrying.", { error });
          return retry;
        });
        if (next === null) return;
        // A long round delays API requests: the pause is at least as long as the round.
        const took = steadyOf(clock) - startedAt;
        await pause(next, Math.min(longestPause, Math.max(options.hasRequests() ? requestRound : round, took)), signal);
      }
    } finally {
      sends.offer([]);
      unsubscribe();
    }
  }

  return {
    reconciler: defineReconciler({
      name: "webhook.deliver",
      subject: "service",
      single: true,
      period: 3_600_000,
      time: day,
      async run({ signal }) {
        if (stopped) return;
        // A run whose lease was lost may still be in its last round, and two runs must not share the state in memory.
        const before = ended.catch(() => {});
        ended = before.then(() => runRounds(signal));
        await ended;
      },
    }),
    wake(webhook) {
      const queue = queues.get(webhook);
      if (queue !== undefined) queue.isStale = true;
      wake();
    },
    async processed() {
      const all = await table.listAllWebhooks.all(store.read, {});
      const active = all.filter(({ state }) => state === "Active");
      const waiting = await table.listOldestWaiting.all(store.read, {});
      return [
        ...active.map(({ id, cursor }) => Math.max(cursor, queues.get(id)?.after ?? 0)),
        ...waiting.map(({ event }) => event - 1),
      ].reduce<number | null>((least, id) => Math.min(least ?? id, id), null);
    },
    async stop(graceMs) {
      stopped = true;
      wake();
      await ended.catch(() => {});
      const end = steadyOf(clock) + graceMs;
      while (sends.counts.open > 0 && steadyOf(clock) < end) await sleep(20);
      sends.abort();
      const storeLast = async () => storeRound(await table.listAllWebhooks.all(store.read, {}), []);
      await storeLast().catch((error: unknown) =>
        log("warn", "Could not store the results of webhook deliveries; they are sent again after the next start.", {
          error,
        }),
      );
      sender.close();
    },
  };
}
