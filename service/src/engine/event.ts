/**
 * The event table. Events are stored in the transaction of the change that they report. Lists and streams read them in the order of
 * their ids. A reader that has seen an id never finds a smaller one later: the table is a journal (`store/journal.ts`).
 */

import type { Expression, ExpressionBuilder, Selectable, SqlBool } from "kysely";
import { sql } from "kysely";
import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import { createTurn } from "../base/turn.ts";
import { journal, type Reader, type Tx } from "../store/db.ts";
import type { EventTable } from "../store/schema/infrastructure.ts";
import type { Tables } from "../store/schema.ts";
import type { Alarm } from "./alarm.ts";
import { createAlarm } from "./alarm.ts";
import type { ObservedStore } from "./commit.ts";
import { notifyTopic } from "./commit.ts";
import type { Reconciler } from "./flow.ts";
import { defineReconciler } from "./flow.ts";
import type { PruneTime } from "./prunetime.ts";

/** A row of the table `event`. */
export type EventRow = Selectable<EventTable>;

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

/** Returns the id of the newest event; 0 if there is none. The newest event is never pruned. */
export async function newestEventId(db: Reader): Promise<number> {
  const row = await db.selectFrom("event").select("id").orderBy("id", "desc").limit(1).executeTakeFirst();
  return row?.id ?? 0;
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

/** Which events a client requests and may read. All conditions must match; an absent field matches every event. */
export interface EventFilter {
  readonly project: number;
  /** Types, or prefixes that end with `*` (`server.*`). */
  readonly types?: readonly string[];
  readonly resources?: readonly { readonly resource: string; readonly id: number }[];
  /** Kinds of resource that the client may read. */
  readonly kinds?: readonly string[];
  /** Only this domain and its records. */
  readonly domain?: number;
}

/** Read access to the events, and notification of new ones. */
export interface Feed {
  /**
   * Returns up to `limit` events with ids above `after`, oldest first. If it returns fewer than `limit`, a stream may continue after
   * the id that `newest` returned *before* this call, so that it never reads an event twice.
   */
  after(filter: EventFilter, after: number, limit: number): Promise<EventRow[]>;
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
    async after(filter, after, limit) {
      const select = (from: number, to: number, most: number) =>
        store.read
          .selectFrom("event")
          .selectAll()
          .where("id", ">", from)
          .where("id", "<=", to)
          .where("project_id", "=", filter.project)
          .where((row) => row.and(conditions(row, filter)))
          .orderBy("id")
          .limit(most)
          .execute();
      // Resources have an index; other conditions may match few of many events, which are read in parts.
      if (filter.resources !== undefined) return select(after, Number.MAX_SAFE_INTEGER, limit);
      const rows: EventRow[] = [];
      for await (const { from, to } of eventWindows(store.read, after)) {
        rows.push(...(await select(from, to, limit - rows.length)));
        if (rows.length >= limit) break;
      }
      return rows;
    },
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

/** Ids of one query over events: searching them takes less than a slice. */
const windowSize = 5000;

/**
 * Yields ranges of ids above `after` (from, excluded, to, included) that together contain all events, in order. Other work runs between
 * two ranges. The last one has no end, so that it contains the newest events.
 */
export async function* eventWindows(db: Reader, after: number): AsyncGenerator<{ from: number; to: number }> {
  const edge = async (direction: "asc" | "desc") =>
    (await db.selectFrom("event").select("id").orderBy("id", direction).limit(1).executeTakeFirst())?.id ?? 0;
  const last = await edge("desc");
  const turn = createTurn();
  for (let from = Math.max(after, (await edge("asc")) - 1); ; from += windowSize) {
    const isLast = from + windowSize >= last;
    yield { from, to: isLast ? Number.MAX_SAFE_INTEGER : from + windowSize };
    if (isLast) return;
    if (turn.isOver()) await turn.next();
  }
}

function conditions(row: ExpressionBuilder<Tables, "event">, filter: EventFilter): Expression<SqlBool>[] {
  const { types, resources, kinds, domain } = filter;
  const all: Expression<SqlBool>[] = [];
  if (types !== undefined) all.push(typesFit(row, types));
  if (resources !== undefined) {
    all.push(row.or(resources.map((each) => row.and({ resource: each.resource, resource_id: each.id }))));
  }
  if (kinds !== undefined) all.push(row.or(kinds.map((kind) => row("resource", "=", kind))));
  if (domain !== undefined) {
    const itself = row.and({ resource: "domain", resource_id: domain });
    all.push(row.or([itself, row.and({ resource: "record", parent_id: domain })]));
  }
  return all;
}

/** Returns whether the text can be a type or prefix. Others match no event, and some of them are not valid text in a database. */
const isName = (type: string): boolean => /^[a-z.]*\*?$/.test(type);

/** Returns the condition that the event's type matches one of the types or prefixes (`server.*`). */
export const typesFit = (row: ExpressionBuilder<Tables, "event">, types: readonly string[]): Expression<SqlBool> =>
  row.or(types.filter(isName).map((type) => typeFits(row, type)));

function typeFits(row: ExpressionBuilder<Tables, "event">, type: string): Expression<SqlBool> {
  if (!type.endsWith("*")) return row("type", "=", type);
  const beginning = type.slice(0, -1);
  return sql<SqlBool>`substr(type, 1, ${sql.lit(beginning.length)}) = ${beginning}`;
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
