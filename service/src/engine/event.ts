/**
 * The event table. Events are stored in the transaction of the change that they report. Lists and streams read them in the order of
 * their ids. A reader that has seen an id never finds a smaller one later: the table is a journal (`store/journal.ts`).
 */

import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import { journal, type Reader, type Tx } from "../store/db.ts";
import type { Alarm } from "./alarm.ts";
import { createAlarm } from "./alarm.ts";
import type { ObservedStore } from "./commit.ts";
import { notifyTopic } from "./commit.ts";
import { type EventFilter, type EventRange, type EventRow, findEvents, newestEventId } from "./eventquery.ts";
import type { Reconciler } from "./flow.ts";
import { defineReconciler } from "./flow.ts";
import type { PruneTime } from "./prunetime.ts";

/** An event to append. */
export interface NewEvent {
  /** Such as `server.created`. */
  readonly type: string;
  /** Milliseconds since 1970. */
  readonly date: number;
  readonly project: number;
  /** Kind of the object, such as `server`. */
  readonly resource: string;
  /** Id of the object. */
  readonly id: number;
  /** Id of the object that contains it, such as the domain of a record. */
  readonly parent?: number | null;
  /** Id of the token that caused it; null for the service itself. */
  readonly token?: number | null;
  /** Id of the request that caused it. */
  readonly request?: string | null;
  /** JSON of the object as GET returns it, with empty secrets; null after deletion. */
  readonly data: string | null;
}

const put = journal("event", [
  "type",
  "date",
  "project_id",
  "resource",
  "resource_id",
  "parent_id",
  "token_id",
  "request_id",
  "data",
]);

/** Appends events to the journal, in this order. They are written at the end of the transaction. */
export function append(tx: Tx, events: readonly NewEvent[]): Promise<void> {
  if (events.length === 0) return Promise.resolve();
  notifyTopic(tx, "event");
  for (const event of events)
    put(tx, {
      type: event.type,
      date: event.date,
      project_id: event.project,
      resource: event.resource,
      resource_id: event.id,
      parent_id: event.parent ?? null,
      token_id: event.token ?? null,
      request_id: event.request ?? null,
      data: event.data,
    });
  return Promise.resolve();
}

/** Returns the newest event without its data, or that with an id; undefined: there is none. */
export const findEvent = (db: Reader, id?: number): Promise<Omit<EventRow, "data"> | undefined> =>
  db
    .selectFrom("event")
    .select(["id", "type", "date", "project_id", "resource", "resource_id", "parent_id", "token_id", "request_id"])
    .$if(id !== undefined, (query) => query.where("id", "=", id as number))
    .orderBy("id", "desc")
    .limit(1)
    .executeTakeFirst();

/** Read access to the events, and notification of new ones. */
export interface Feed {
  /**
   * Returns up to `limit` events of the range. If it returns fewer than `limit`, a stream may continue after the id that `newest`
   * returned *before* this call, so that it never reads an event twice.
   */
  find(filter: EventFilter, range: EventRange, limit: number): Promise<EventRow[]>;
  /** Returns the id of the oldest stored event, 0 if there was none yet. If `after` + 1 is below it, events in between were pruned. */
  oldest(): Promise<number>;
  /** Returns the id of the newest event, 0 if there was none yet. */
  newest(): Promise<number>;
  /** Calls `listener` soon after commits with events, once for several commits. Returns a function that unsubscribes. */
  subscribe(listener: () => void): () => void;
  /** Deletes events that are too old or too many, except those in `taken`. Returns their number. `now`: milliseconds since 1970. */
  prune(now: number): Promise<number>;
  /** Removes all listeners and stops polling. */
  close(): void;
}

/** Options of `createFeed`. */
export interface FeedOptions {
  readonly store: ObservedStore;
  readonly clock: Clock;
  readonly log: Log;
  readonly alarm?: Alarm;
  /** Milliseconds between polls for events of other processes, while there are listeners. Default 1000; no polls with SQLite. */
  readonly poll?: number;
  /** Milliseconds after which an event is deleted. Default 30 days. */
  readonly age?: number;
  /** Most events that are kept. Default 1,000,000. */
  readonly count?: number;
  /** Returns the id above which events are still to be delivered; these are kept, up to twice `count`. Null: none. */
  readonly taken?: () => Promise<number | null>;
}

const day = 24 * 3600 * 1000;

/** Rows deleted in one transaction, so that other writers can run in between. */
const pruned = 500;

/** Creates the feed of a store. It notifies listeners after commits of this process, and polls for those of other processes. */
export function createFeed({ store, clock, log, alarm = createAlarm(clock), ...options }: FeedOptions): Feed {
  const { poll = store.processes === "one" ? null : 1_000, age = 30 * day, count = 1_000_000, taken } = options;
  const listeners = new Set<() => void>();
  let isPlanned = false;
  let last = 0;
  let cancelTimer: (() => void) | null = null;

  function notify(): void {
    if (isPlanned || listeners.size === 0) return;
    isPlanned = true;
    setImmediate(() => {
      isPlanned = false;
      for (const listener of listeners) listener();
    });
  }

  function watch(): void {
    if (poll === null || cancelTimer !== null) return;
    cancelTimer = alarm.at(alarm.now() + poll, () => {
      cancelTimer = null;
      if (listeners.size === 0) return;
      pollOnce().catch((error: unknown) =>
        log("warn", "Could not poll for events of other processes; the next poll tries again.", { error }),
      );
      watch();
    });
  }

  async function pollOnce(): Promise<void> {
    const found = await newest();
    if (found > last) notify();
    last = found;
  }

  const newest = () => newestEventId(store.read);

  async function pruneSome(now: number): Promise<number> {
    const end = await newest();
    const wanted = Math.max((await taken?.()) ?? end, end - 2 * count);
    const oldest = await store.read.selectFrom("event").select(["id", "date"]).orderBy("id").limit(pruned).execute();
    // The newest event stays: `newestEventId` needs its id.
    const kept = oldest.findIndex(
      (row) => row.id === end || row.id > wanted || (row.date >= now - age && row.id > end - count),
    );
    const over = kept < 0 ? oldest : oldest.slice(0, kept);
    const edge = over.at(-1);
    if (edge === undefined) return 0;
    await store.write((tx) => tx.deleteFrom("event").where("id", "<=", edge.id).execute());
    return over.length;
  }

  const stop = store.onCommit("event", notify);
  return {
    find: (filter, range, limit) => findEvents(store.read, filter, range, limit),
    async oldest() {
      const row = await store.read.selectFrom("event").select("id").orderBy("id").limit(1).executeTakeFirst();
      return row?.id ?? 0;
    },
    newest,
    subscribe(listener) {
      const once = () => listener();
      listeners.add(once);
      watch();
      return () => listeners.delete(once);
    },
    async prune(now) {
      let sum = 0;
      for (;;) {
        const some = await pruneSome(now);
        sum += some;
        if (some < pruned) return sum;
      }
    },
    close() {
      stop();
      cancelTimer?.();
      listeners.clear();
    },
  };
}

/** Returns the reconciler that prunes events. `time`: time that ages are measured against; `period`: milliseconds between runs. */
export function eventPruner(feed: Feed, time: Pick<PruneTime, "read">, period: number): Reconciler {
  return defineReconciler({
    name: "event.prune",
    subject: "service",
    single: true,
    period,
    async run() {
      await feed.prune(await time.read());
    },
  });
}
