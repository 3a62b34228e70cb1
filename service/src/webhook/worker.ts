/**
 * Delivers events to webhooks. One worker for all of them runs as long as there is one: a lease makes it the only one, also where
 * processes share a database. What it holds in memory is in rows as well but for what is under way, so a crash repeats at most that.
 *
 * Each webhook takes events behind its cursor into rows, a few at a time. Of each resource the oldest row is sent first; those behind it
 * wait until its result is stored. An endpoint that fails gets one attempt at a time, and failing ones together half of all places,
 * so a dead one delays no other. All that a round writes is one transaction, and the number of sendings a second is limited, so that
 * requests to the API are answered meanwhile.
 */
import { createHmac } from "node:crypto";
import { setImmediate as nextTurn, setTimeout as sleep } from "node:timers/promises";
import { type Clock, steadyOf } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { Sealer } from "../base/secret.ts";
import type { Answer, Sender } from "../drivers/webhook/interface.ts";
import { type ObservedStore, skipFreshness } from "../engine/commit.ts";
import type { EventRow, Feed } from "../engine/event.ts";
import { defineReconciler, type Reconciler } from "../engine/flow.ts";
import { type EventRange, findEvents, insertDeliveries } from "./enqueue.ts";
import { createQueue, findDue, isQuiet, type Queue } from "./model/queue.ts";
import { everyType, mostWaiting } from "./model/rules.ts";
import { type Recorded, type Report, type Result, record } from "./outcome.ts";
import * as table from "./table.ts";

export interface WebhookTools {
  readonly store: ObservedStore;
  readonly feed: Feed;
  readonly clock: Clock;
  readonly log: Log;
  readonly sealer: Sealer;
  readonly sender: Sender;
  /** In [0, 1). */
  readonly random: () => number;
  /** The event as `GET /event` shows it. */
  readonly print: (row: EventRow) => string;
}

export interface Webhooks {
  readonly reconciler: Reconciler;
  /** Rows of this webhook were changed by others. */
  wake(webhook: number): void;
  /** Events with higher ids are still wanted; null: none is. */
  taken(): Promise<number | null>;
  /** Ends the work; what is under way gets `graceMs` milliseconds. */
  stop(graceMs: number): Promise<void>;
}

const places = { all: 64, failing: 32, ofOne: 16 };
/** Events taken at once, and deliveries not yet tried below which more are taken. */
const batch = 100;
const fewFresh = 50;
/** Events looked at in one query, and those that were not wanted after which the cursor is stored. */
const mostLooked = 5000;
/** Milliseconds between two rounds at least and at most, and sendings begun in one. */
const round = 100;
const longestPause = 1000;
const mostBegun = 50;
/** Milliseconds between looks for what other processes did. */
const poll = 5000;
const retry = 1000;
const day = 24 * 3_600_000;

/** Events that a webhook takes in this round: those of the range, none if it is null. */
interface Take {
  readonly webhook: number;
  readonly range: EventRange | null;
  readonly cursor: number;
  /** The first of those that were deleted before it took them; null: none was. */
  readonly lostFrom: number | null;
}

export function createWebhooks(tools: WebhookTools): Webhooks {
  const { store, feed, clock, log, sealer, sender } = tools;
  /** By delivery, until its result is stored. */
  const underWay = new Map<number, { readonly webhook: number; readonly isFailing: boolean }>();
  const queues = new Map<number, Queue>();
  let results: Result[] = [];
  let stopped = false;
  let news = false;
  let looked = 0;
  let ring = (): void => {};
  let ended: Promise<void> = Promise.resolve();
  const stopping = new AbortController();

  /** No answer that is remembered shows deliveries. */
  const write: ObservedStore["write"] = (change) =>
    store.write((tx) => {
      skipFreshness(tx);
      return change(tx);
    });

  function wake(): void {
    news = true;
    ring();
  }

  const roomOf = (queue: Queue): number => Math.min(batch, mostWaiting + batch - queue.rows.size);
  const canTake = (webhook: table.WebhookRow, queue: Queue, newest: number): boolean =>
    webhook.state === "Active" &&
    newest > Math.max(webhook.cursor, queue.after) &&
    queue.fresh < fewFresh &&
    roomOf(queue) > 0;

  /** The events that the webhook takes now, if it can and wants any. */
  async function findTake(
    webhook: table.WebhookRow,
    queue: Queue,
    newest: number,
    oldest: number,
  ): Promise<Take | null> {
    if (!canTake(webhook, queue, newest)) return null;
    const after = Math.max(webhook.cursor, queue.after);
    // At 0 there was no event yet, and ids may begin higher.
    if (after > 0 && oldest > after + 1)
      return { webhook: webhook.id, range: null, cursor: oldest - 1, lostFrom: after + 1 };
    const room = roomOf(queue);
    const types = JSON.parse(webhook.types) as string[];
    const until = Math.min(newest, after + mostLooked);
    const range = { project: webhook.project_id, types: types.includes(everyType) ? null : types, after, until };
    const ids = await findEvents(store.read, range, room);
    const last = ids.at(-1);
    const cursor = ids.length === room && last !== undefined ? last : until;
    if (last !== undefined) return { webhook: webhook.id, range: { ...range, until: last }, cursor, lostFrom: null };
    queue.after = cursor;
    return cursor - webhook.cursor > mostLooked ? { webhook: webhook.id, range: null, cursor, lostFrom: null } : null;
  }

  async function send(webhook: table.WebhookRow, row: table.DeliveryRow): Promise<Answer> {
    const event = await table.findEvent.first(store.read, { id: row.event_id });
    if (event === undefined) return { status: null, error: "The event is not kept any longer." };
    const body = tools.print(event);
    const seconds = Math.floor(clock.now() / 1000);
    const mac = createHmac("sha256", sealer.open(webhook.secret)).update(`${seconds}.${body}`).digest("hex");
    const headers = {
      "content-type": "application/json; charset=utf-8",
      "user-agent": "brume",
      "brume-webhook": String(webhook.id),
      "brume-delivery": String(row.id),
      "brume-event": event.type,
      "brume-signature": `t=${seconds},v1=${mac}`,
    };
    return sender.send({ url: webhook.url, headers, body }, stopping.signal);
  }

  async function begin(webhook: table.WebhookRow, row: table.DeliveryRow): Promise<void> {
    underWay.set(row.id, { webhook: webhook.id, isFailing: webhook.failing_since !== null });
    const answer = await send(webhook, row).catch((error: unknown): Answer => {
      log("error", "A webhook was not sent.", { webhook: webhook.id, delivery: row.id, error });
      return { status: null, error: "The service failed on this delivery and has logged why." };
    });
    // Interrupted by the end of the service: it is sent again.
    if (stopping.signal.aborted && answer.status === null) underWay.delete(row.id);
    else results.push({ row, answer });
    wake();
  }

  function reportsOf(webhooks: readonly table.WebhookRow[], some: readonly Result[]): Report[] {
    const byWebhook = Map.groupBy(some, ({ row }) => row.webhook_id);
    return webhooks.flatMap((webhook) => {
      const own = byWebhook.get(webhook.id);
      if (own === undefined) return [];
      const waiting = [...(queues.get(webhook.id)?.rows.values() ?? [])];
      const idle = waiting.filter((row) => row.is_resend === 0 && !underWay.has(row.id));
      const surplus = idle.slice(0, Math.max(0, waiting.length - mostWaiting)).map(({ id }) => id);
      return [{ webhook, results: own, surplus }];
    });
  }

  /** Writes all that this round has: results, and the events that are taken. False: there was nothing. */
  async function storeRound(webhooks: readonly table.WebhookRow[], takes: readonly Take[]): Promise<boolean> {
    const some = results;
    if (some.length === 0 && takes.length === 0) return false;
    const now = clock.now();
    const reports = reportsOf(webhooks, some);
    const { recorded, taken } = await write(async (tx) => {
      const recorded: [number, Recorded][] = [];
      for (const report of reports) recorded.push([report.webhook.id, await record(tx, report, now, tools.random)]);
      const taken: [Take, table.DeliveryRow[]][] = [];
      for (const take of takes) {
        const { webhook, range, cursor, lostFrom } = take;
        if (lostFrom !== null) await table.insertLost(tx, webhook, { from: lostFrom, to: cursor }, now);
        taken.push([take, range === null ? [] : await insertDeliveries(tx, webhook, range, now)]);
        await table.updateWebhook(tx, webhook, { cursor });
      }
      return { recorded, taken };
    });
    results = results.slice(some.length);
    for (const { webhook, cursor, lostFrom } of takes)
      if (lostFrom !== null)
        log("warn", "Events were deleted before a webhook took them.", { webhook, from: lostFrom, to: cursor });
    for (const { row } of some) underWay.delete(row.id);
    for (const [id, { ended, again }] of recorded) {
      const queue = queues.get(id);
      if (queue === undefined) continue;
      for (const delivery of ended) queue.rows.delete(delivery);
      for (const row of again) queue.rows.set(row.id, row);
      queue.quietUntil = 0;
    }
    for (const [{ webhook, cursor }, rows] of taken) {
      const queue = queues.get(webhook);
      if (queue === undefined) continue;
      for (const row of rows) queue.rows.set(row.id, row);
      queue.after = cursor;
      if (rows.length > 0) queue.quietUntil = 0;
    }
    return true;
  }

  /** The queues of these webhooks and no others, as their rows are. */
  async function readQueues(webhooks: readonly table.WebhookRow[]): Promise<void> {
    if (!store.alone && steadyOf(clock) >= looked + poll) {
      looked = steadyOf(clock);
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

  const count = (fits: (one: { readonly webhook: number; readonly isFailing: boolean }) => boolean): number =>
    [...underWay.values()].filter(fits).length;

  function hasPlace(webhook: table.WebhookRow): boolean {
    if (underWay.size >= places.all) return false;
    const own = count((one) => one.webhook === webhook.id);
    if (webhook.failing_since === null) return own < places.ofOne;
    return own < 1 && count((one) => one.isFailing) < places.failing;
  }

  /** One turn of all webhooks. Milliseconds until the next, null: there is no webhook. */
  async function turn(): Promise<number | null> {
    news = false;
    const [newest, oldest] = [await feed.newest(), await feed.oldest()];
    const webhooks = await table.listAllWebhooks.all(store.read, {});
    await readQueues(webhooks);
    if (webhooks.length === 0 && underWay.size === 0) return null;
    const takes: Take[] = [];
    for (const webhook of webhooks) {
      const take = await findTake(webhook, queues.get(webhook.id) as Queue, newest, oldest);
      if (take !== null) takes.push(take);
    }
    const isChanged = await storeRound(webhooks, takes);
    return beginSome(isChanged ? await table.listAllWebhooks.all(store.read, {}) : webhooks, newest);
  }

  /** Begins what has a place. Milliseconds until there is more to do. */
  async function beginSome(webhooks: readonly table.WebhookRow[], newest: number): Promise<number> {
    const now = clock.now();
    const waiting = webhooks.flatMap((webhook) => {
      const queue = queues.get(webhook.id);
      if (queue === undefined || isQuiet(queue, now) || !hasPlace(webhook)) return [];
      return [{ webhook, queue, due: findDue(queue, webhook.state, ({ id }) => underWay.has(id), now) }];
    });
    let begun = 0;
    // In rounds, each webhook one, so that none takes the places of the others.
    for (let isMore = true; isMore && begun < mostBegun; ) {
      isMore = false;
      for (const { webhook, queue, due } of waiting) {
        if (begun >= mostBegun || due.length === 0 || !hasPlace(webhook)) continue;
        const row = due.shift() as table.DeliveryRow;
        if (row.attempts === 0) queue.fresh -= 1;
        void begin(webhook, row);
        begun += 1;
        isMore = true;
        // Requests come in between.
        await nextTurn();
      }
    }
    if (waiting.some(({ webhook, due }) => due.length > 0 && hasPlace(webhook))) return round;
    const isHungry = (webhook: table.WebhookRow): boolean => {
      const queue = queues.get(webhook.id);
      return queue !== undefined && canTake(webhook, queue, newest);
    };
    if (webhooks.some(isHungry)) return round;
    // What has no place now is looked at when a result comes.
    const times = [...queues.values()].map(({ quietUntil }) => quietUntil).filter((time) => time > now);
    return Math.max(round, Math.min(poll, ...times.map((time) => time - now)));
  }

  /** Resolves after `ms` milliseconds, or when there is something new, but not before `least`. */
  async function wait(ms: number, least: number, signal: AbortSignal): Promise<void> {
    await sleep(least);
    if (news || ms <= least || stopped || signal.aborted) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms - least);
      ring = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  async function work(signal: AbortSignal): Promise<void> {
    const unsubscribe = feed.subscribe(wake);
    signal.addEventListener("abort", wake, { once: true });
    // Another process may have had the lease.
    queues.clear();
    try {
      while (!stopped && !signal.aborted) {
        const begun = steadyOf(clock);
        const next = await turn().catch((error: unknown) => {
          log("warn", "Webhooks wait for the database.", { error });
          return retry;
        });
        if (next === null) return;
        // Where a round takes long, requests wait as well: they get half of the time.
        const took = steadyOf(clock) - begun;
        await wait(next, Math.min(longestPause, Math.max(round, took)), signal);
      }
    } finally {
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
        // One whose lease was lost may still be in its last round, and two must not share what is in memory.
        const before = ended.catch(() => {});
        ended = before.then(() => work(signal));
        await ended;
      },
    }),
    wake(webhook) {
      const queue = queues.get(webhook);
      if (queue !== undefined) queue.isStale = true;
      wake();
    },
    async taken() {
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
      while (underWay.size > results.length && steadyOf(clock) < end) await sleep(20);
      stopping.abort();
      const storeLast = async () => storeRound(await table.listAllWebhooks.all(store.read, {}), []);
      await storeLast().catch((error: unknown) =>
        log("warn", "Some webhooks were sent, which was not stored: they are sent again.", { error }),
      );
      sender.close();
    },
  };
}
