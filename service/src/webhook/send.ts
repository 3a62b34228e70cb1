/**
 * Sends due deliveries, and keeps their results until they are stored. The next delivery starts when one ends, not with the next round of the
 * worker. A delivery whose result is not stored counts as in flight, so the next one of its resource waits for the commit. A crash
 * repeats at most the deliveries in flight.
 */
import { createHmac } from "node:crypto";
import { setImmediate as nextTurn, setTimeout as sleep } from "node:timers/promises";
import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { Sealer } from "../base/secret.ts";
import type { Answer, Sender } from "../drivers/webhook/interface.ts";
import type { EventRow } from "../engine/eventquery.ts";
import type { Queue } from "./model/queue.ts";
import type { Result } from "./outcome.ts";
import type { DeliveryRow, WebhookRow } from "./table.ts";

/** Concurrent sends: in total, to failing endpoints, and to one endpoint. */
const slots = { all: 64, failing: 32, perWebhook: 16 };
/** Results that wait to be stored; with more, for example while the database fails, nothing is sent. */
const maxUnstored = 500;

/** Deliveries started in one turn of the event loop; and ms after each start while requests are being processed. */
const startsPerTurn = 8;
const requestPause = 2;

/** The due deliveries of one webhook, in the order in which they are sent. */
export interface Offer {
  readonly webhook: WebhookRow;
  readonly queue: Queue;
  readonly due: DeliveryRow[];
}

/** Dependencies of `createSends`. */
export interface SendOptions {
  readonly findEvent: (id: number) => Promise<EventRow | undefined>;
  readonly clock: Pick<Clock, "now">;
  readonly log: Log;
  readonly sealer: Sealer;
  readonly sender: Sender;
  /** Returns the event as JSON. */
  readonly print: (row: EventRow) => string;
  /** Returns whether requests of clients are being processed. */
  readonly hasRequests: () => boolean;
  /** Returns whether the queue of the webhook still contains this row. */
  readonly isQueued: (row: DeliveryRow) => boolean;
  /** Called after each end of a delivery. */
  readonly onEnd: () => void;
}

/** The deliveries in flight. */
export interface Sends {
  /** Returns whether this delivery is being sent or its result is not stored. */
  has(id: number): boolean;
  /** Returns whether another delivery of the webhook may start. */
  hasSlot(webhook: WebhookRow): boolean;
  /** Replaces the deliveries that can be sent, and starts as many as have a slot. */
  offer(offers: readonly Offer[]): void;
  /** Number of deliveries in flight, and of those without a result. */
  readonly counts: { readonly inFlight: number; readonly open: number };
  /** Returns the results that are not stored. */
  results(): readonly Result[];
  /** Releases deliveries whose results are stored. */
  settle(stored: readonly Result[]): void;
  /** Aborts deliveries without a result; they are sent again after the next start. */
  abort(): void;
}

interface Flight {
  readonly webhook: number;
  readonly isFailing: boolean;
  /** Whether it occupies a slot: until its result, or with a failure until the result is stored. */
  isSlotUsed: boolean;
}

/** Creates the sender of deliveries. */
export function createSends(options: SendOptions): Sends {
  const { findEvent, clock, log, sealer, sender, print, hasRequests, isQueued, onEnd } = options;
  const flights = new Map<number, Flight>();
  const used = { all: 0, failing: 0, byWebhook: new Map<number, number>() };
  const stopping = new AbortController();
  let results: Result[] = [];
  let offers: readonly Offer[] = [];
  let isFilling = false;

  function useSlot({ webhook, isFailing }: Flight, change: 1 | -1): void {
    used.all += change;
    if (isFailing) used.failing += change;
    const inFlight = (used.byWebhook.get(webhook) ?? 0) + change;
    if (inFlight === 0) used.byWebhook.delete(webhook);
    else used.byWebhook.set(webhook, inFlight);
  }

  function releaseSlot(flight: Flight | undefined): void {
    if (flight?.isSlotUsed !== true) return;
    flight.isSlotUsed = false;
    useSlot(flight, -1);
  }

  function hasSlot(webhook: WebhookRow): boolean {
    if (used.all >= slots.all || results.length >= maxUnstored) return false;
    const inFlight = used.byWebhook.get(webhook.id) ?? 0;
    return webhook.failing_since === null ? inFlight < slots.perWebhook : inFlight < 1 && used.failing < slots.failing;
  }

  async function send(webhook: WebhookRow, row: DeliveryRow): Promise<Answer> {
    const event = await findEvent(row.event_id);
    if (event === undefined) return { status: null, error: "The event has been deleted." };
    const body = print(event);
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

  async function start(webhook: WebhookRow, row: DeliveryRow): Promise<void> {
    const flight = { webhook: webhook.id, isFailing: webhook.failing_since !== null, isSlotUsed: true };
    flights.set(row.id, flight);
    useSlot(flight, 1);
    const answer = await send(webhook, row).catch((error: unknown): Answer => {
      log("error", "Could not send a webhook delivery.", { webhook: webhook.id, delivery: row.id, error });
      return {
        status: null,
        error: "Internal error: the service could not send this delivery and has logged the cause.",
      };
    });
    // Interrupted by the end of the service: it is sent again after the next start.
    const isInterrupted = stopping.signal.aborted && answer.status === null;
    if (isInterrupted) flights.delete(row.id);
    else results.push({ row, answer });
    // The result of a failure may make the webhook failing, so the next delivery waits until it is stored.
    if (isInterrupted || answer.error === null) releaseSlot(flight);
    onEnd();
    void fill();
  }

  /** Starts deliveries until no slot is free. Round robin: each webhook starts one per pass, so that none occupies all slots. */
  async function fill(): Promise<void> {
    if (isFilling) return;
    isFilling = true;
    let started = 0;
    for (let isMore = true; isMore; ) {
      isMore = false;
      for (const { webhook, queue, due } of offers) {
        if (due.length === 0 || !hasSlot(webhook)) continue;
        const row = due.shift() as DeliveryRow;
        isMore = true;
        // It may have been sent, changed or removed since the offer.
        if (flights.has(row.id) || !isQueued(row)) continue;
        if (row.attempts === 0) queue.ready -= 1;
        void start(webhook, row);
        started += 1;
        if (hasRequests()) await sleep(requestPause);
        else if (started % startsPerTurn === 0) await nextTurn();
      }
    }
    isFilling = false;
  }

  return {
    has: (id) => flights.has(id),
    hasSlot,
    offer(next) {
      offers = next;
      void fill();
    },
    get counts() {
      return { inFlight: flights.size, open: flights.size - results.length };
    },
    results: () => results,
    settle(stored) {
      for (const { row } of stored) {
        releaseSlot(flights.get(row.id));
        flights.delete(row.id);
      }
      const gone = new Set(stored);
      results = results.filter((result) => !gone.has(result));
    },
    abort: () => stopping.abort(),
  };
}
