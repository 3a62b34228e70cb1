/**
 * Delivers events to webhooks. One worker for all of them runs as long as there is one: a lease makes it the only one, also where
 * processes share a database. It keeps nothing in memory that is not in rows but what is under way, so a crash repeats at most that.
 *
 * Each webhook takes events behind its cursor into rows, a few at a time. Of each resource the oldest row is sent first; those behind it
 * wait until it was taken or given up. An endpoint that fails gets one attempt at a time, and failing ones together half of all places,
 * so a dead one delays no other. The number of sendings a second is limited, so that requests to the API are answered meanwhile.
 */
import { createHmac } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { Sealer } from "../base/secret.ts";
import type { Answer, Sender } from "../drivers/webhook/port.ts";
import { type HeardStore, hide } from "../engine/commit.ts";
import type { EventRow, Feed } from "../engine/event.ts";
import { type Keeper, keeper } from "../engine/flow.ts";
import { type Result, record } from "./outcome.ts";
import { everyType } from "./rules.ts";
import * as table from "./table.ts";

export interface WebhookTools {
  readonly store: HeardStore;
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
  readonly keeper: Keeper;
  /** There is something new. */
  wake(): void;
  /** Ends the work; what is under way gets `graceMs` milliseconds. */
  stop(graceMs: number): Promise<void>;
}

const places = { all: 64, failing: 32, ofOne: 4 };
/** Rows of one webhook that wait; the other events wait in their table. */
const mostWaiting = 300;
/** Events taken at once, and rows not yet tried below which more are taken. */
const batch = 100;
const fewFresh = 50;
/** Milliseconds between two rounds, and sendings begun in one. */
const round = 50;
const mostBegun = 25;
/** Milliseconds between looks for what other processes did. */
const poll = 5000;
const retry = 1000;
const day = 24 * 3_600_000;

const laneOf = (row: table.DeliveryRow): string =>
  row.is_resend === 1 ? `#${row.id}` : `${row.resource}:${row.resource_id}`;

export function createWebhooks(tools: WebhookTools): Webhooks {
  const { store, feed, clock, log, sealer, sender } = tools;
  /** By delivery, until its result is stored. */
  const underWay = new Map<number, { readonly webhook: number; readonly isFailing: boolean }>();
  /** Events behind the stored cursor that a webhook does not want. */
  const skipped = new Map<number, number>();
  /** When a webhook whose endpoint fails has something to send next: its rows need not be read before. */
  const quiet = new Map<number, number>();
  let results: Result[] = [];
  let stopped = false;
  let news = false;
  let ring = (): void => {};
  let ended: Promise<void> = Promise.resolve();
  const stopping = new AbortController();

  /** No answer that is remembered shows deliveries. */
  const write: HeardStore["write"] = (change) =>
    store.write((tx) => {
      hide(tx);
      return change(tx);
    });

  function wake(): void {
    news = true;
    ring();
  }

  async function takeEvents(webhook: table.WebhookRow, most: number): Promise<boolean> {
    const newest = await feed.newest();
    const after = Math.max(webhook.cursor, skipped.get(webhook.id) ?? 0);
    if (newest <= after) return false;
    const types = JSON.parse(webhook.types) as string[];
    const filter = { project: webhook.project_id, ...(!types.includes(everyType) && { types }) };
    const events = await feed.after(filter, after, most);
    const last = events.at(-1)?.id ?? 0;
    const cursor = events.length === most ? last : Math.max(newest, last);
    skipped.set(webhook.id, cursor);
    if (events.length === 0) return false;
    const now = clock.now();
    await write(async (tx) => {
      await table.insertDeliveries(tx, webhook.id, events, now);
      await table.updateWebhook(tx, webhook.id, { cursor });
    });
    return true;
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

  async function storeResults(): Promise<void> {
    if (results.length === 0) return;
    const some = results;
    await record({ write, clock, random: tools.random }, some);
    results = results.slice(some.length);
    for (const { row } of some) underWay.delete(row.id);
  }

  /** What of the webhook can be sent now, and when the next can. */
  function dueOf(webhook: table.WebhookRow, waiting: readonly table.DeliveryRow[], now: number) {
    const lanes = new Set<string>();
    const due: table.DeliveryRow[] = [];
    let next = Number.POSITIVE_INFINITY;
    for (const row of waiting) {
      const lane = laneOf(row);
      if (lanes.has(lane)) continue;
      lanes.add(lane);
      if (underWay.has(row.id) || (webhook.state === "Failed" && row.is_resend === 0)) continue;
      if ((row.due ?? 0) <= now) due.push(row);
      else next = Math.min(next, row.due ?? next);
    }
    return { webhook, due, next };
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
    await storeResults();
    const webhooks = await table.listAllWebhooks(store.read);
    if (webhooks.length === 0 && underWay.size === 0) return null;
    const queues: ReturnType<typeof dueOf>[] = [];
    for (const webhook of webhooks) {
      const until = webhook.failing_since === null ? 0 : (quiet.get(webhook.id) ?? 0);
      if (clock.now() < until) queues.push({ webhook, due: [], next: until });
      if (clock.now() < until || !hasPlace(webhook)) continue;
      const read = () => table.listWaiting.all(store.read, { webhook: webhook.id, limit: mostWaiting });
      let waiting = await read();
      const fresh = waiting.filter(({ attempts }) => attempts === 0).length;
      const room = Math.min(batch, mostWaiting - waiting.length);
      if (webhook.state === "Active" && fresh < fewFresh && room > 0 && (await takeEvents(webhook, room)))
        waiting = await read();
      const queue = dueOf(webhook, waiting, clock.now());
      if (queue.due.length === 0) quiet.set(webhook.id, Math.min(queue.next, clock.now() + poll));
      queues.push(queue);
    }
    let begun = 0;
    // In rounds, each webhook one, so that none takes the places of the others.
    for (let isMore = true; isMore && begun < mostBegun; ) {
      isMore = false;
      for (const { webhook, due } of queues) {
        if (begun >= mostBegun || due.length === 0 || !hasPlace(webhook)) continue;
        void begin(webhook, due.shift() as table.DeliveryRow);
        begun += 1;
        isMore = true;
      }
    }
    const isLeft = queues.some(({ webhook, due }) => due.length > 0 && hasPlace(webhook));
    const next = Math.min(...queues.map((queue) => queue.next)) - clock.now();
    return isLeft ? round : Math.max(round, Math.min(poll, next));
  }

  /** Resolves after `ms` milliseconds, or when there is something new, but not before the end of a round. */
  async function wait(ms: number, signal: AbortSignal): Promise<void> {
    await sleep(round);
    if (news || ms <= round || stopped || signal.aborted) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms - round);
      ring = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  async function work(signal: AbortSignal): Promise<void> {
    const unsubscribe = feed.subscribe(wake);
    signal.addEventListener("abort", wake, { once: true });
    try {
      while (!stopped && !signal.aborted) {
        const next = await turn().catch((error: unknown) => {
          log("warn", "Webhooks wait for the database.", { error });
          return retry;
        });
        if (next === null) return;
        await wait(next, signal);
      }
    } finally {
      unsubscribe();
    }
  }

  return {
    keeper: keeper({
      name: "webhook.deliver",
      subject: "service",
      single: true,
      period: 3_600_000,
      time: day,
      async run({ signal }) {
        if (stopped) return;
        ended = work(signal);
        await ended;
      },
    }),
    wake() {
      quiet.clear();
      wake();
    },
    async stop(graceMs) {
      stopped = true;
      wake();
      await ended.catch(() => {});
      const end = clock.now() + graceMs;
      while (underWay.size > results.length && clock.now() < end) await sleep(20);
      stopping.abort();
      await storeResults().catch((error: unknown) =>
        log("warn", "Some webhooks were sent, which was not stored: they are sent again.", { error }),
      );
      sender.close();
    },
  };
}
