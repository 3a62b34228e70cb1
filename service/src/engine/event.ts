/**
 * What happened, as rows: events are stored in the transaction of the change they tell of, and read in the order of their
 * ids by lists and streams. The order is a promise: whoever has seen an id never finds a smaller one later. That is what a journal is.
 */

import type { Expression, ExpressionBuilder, Selectable, SqlBool } from "kysely";
import { sql } from "kysely";
import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { Tx } from "../store/db.ts";
import { journal } from "../store/db.ts";
import type { EventTable, Tables } from "../store/schema.ts";
import type { Alarm } from "./alarm.ts";
import { createAlarm } from "./alarm.ts";
import type { ObservedStore } from "./commit.ts";
import { notifyTopic } from "./commit.ts";
import type { Reconciler } from "./flow.ts";
import { defineReconciler } from "./flow.ts";
import type { PruneTime } from "./prunetime.ts";

export type EventRow = Selectable<EventTable>;

export interface NewEvent {
  /** Such as `server.created`. */
  readonly type: string;
  /** Milliseconds since 1970. */
  readonly date: number;
  readonly project: number;
  readonly resource: string;
  readonly id: number;
  readonly parent?: number | null;
  /** Who caused it; nothing if the service itself. */
  readonly token?: number | null;
  readonly request?: string | null;
  /** JSON of the object as GET shows it, secrets empty; null after deletion. */
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

/** Stores events with the transaction, in the order given. They are written at its end. */
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

/** What somebody wants to see and may see; all of it must fit. A field that is absent lets everything pass. */
export interface EventFilter {
  readonly project: number;
  /** Names, or beginnings of names with `*` at the end (`server.*`). */
  readonly types?: readonly string[];
  readonly resources?: readonly { readonly resource: string; readonly id: number }[];
  /** Kinds of resource that may be read. */
  readonly kinds?: readonly string[];
  /** This domain and its records only. */
  readonly domain?: number;
}

export interface Feed {
  /**
   * Events with ids above `after`, oldest first. A stream that got fewer than `limit` may go on after what `newest` said *before*
   * this call, and so never looks at the same events twice.
   */
  after(filter: EventFilter, after: number, limit: number): Promise<EventRow[]>;
  /** Id of the oldest event kept, 0 if there was none yet: with `after` below it by more than one, some are no longer kept. */
  oldest(): Promise<number>;
  /** Id of the newest event, 0 if there was none yet. */
  newest(): Promise<number>;
  /** Calls soon after commits that appended, once for several. Returns how to stop. */
  subscribe(listener: () => void): () => void;
  /** Deletes what is older than 30 days or beyond a million, but for what is still wanted, and resolves to how many those were. */
  prune(now: number): Promise<number>;
  /** Ends listening and looking. */
  close(): void;
}

export interface FeedOptions {
  readonly store: ObservedStore;
  readonly clock: Clock;
  readonly log: Log;
  readonly alarm?: Alarm;
  /** Milliseconds between looks for events of other processes while anybody listens. SQLite has no other processes. */
  readonly poll?: number;
  /** Kept at least so many milliseconds and at most so many events. */
  readonly age?: number;
  readonly count?: number;
  /** Events with higher ids are still wanted, and kept up to twice that many; null: none is. */
  readonly taken?: () => Promise<number | null>;
}

const day = 24 * 3600 * 1000;

/** Rows deleted in one transaction, so that other writers get their turn. */
const pruned = 500;

export function createFeed({ store, clock, log, alarm = createAlarm(clock), ...options }: FeedOptions): Feed {
  const { poll = store.processes === "one" ? null : 1_000, age = 30 * day, count = 1_000_000, taken } = options;
  const listeners = new Set<() => void>();
  let told = false;
  let last = 0;
  let callOff: (() => void) | null = null;

  function tell(): void {
    if (told || listeners.size === 0) return;
    told = true;
    setImmediate(() => {
      told = false;
      for (const listener of listeners) listener();
    });
  }

  function watch(): void {
    if (poll === null || callOff !== null) return;
    callOff = alarm.at(alarm.now() + poll, () => {
      callOff = null;
      if (listeners.size === 0) return;
      look().catch((error: unknown) => log("warn", "events of other processes are seen later", { error }));
      watch();
    });
  }

  async function look(): Promise<void> {
    const found = await newest();
    if (found > last) tell();
    last = found;
  }

  const edge = (direction: "asc" | "desc") =>
    store.read.selectFrom("event").select(["id", "date"]).orderBy("id", direction).limit(1).executeTakeFirst();
  const newest = async () => (await edge("desc"))?.id ?? 0;

  async function pruneSome(now: number): Promise<number> {
    const end = await newest();
    const wanted = Math.max((await taken?.()) ?? end, end - 2 * count);
    const oldest = await store.read.selectFrom("event").select(["id", "date"]).orderBy("id").limit(pruned).execute();
    // The newest one stays always: it tells which ids there have been.
    const kept = oldest.findIndex(
      (row) => row.id === end || row.id > wanted || (row.date >= now - age && row.id > end - count),
    );
    const over = kept < 0 ? oldest : oldest.slice(0, kept);
    const edge = over.at(-1);
    if (edge === undefined) return 0;
    await store.write((tx) => tx.deleteFrom("event").where("id", "<=", edge.id).execute());
    return over.length;
  }

  const stop = store.onCommit("event", tell);
  return {
    after(filter, after, limit) {
      const query = store.read.selectFrom("event").selectAll().where("id", ">", after);
      return query
        .where("project_id", "=", filter.project)
        .where((row) => row.and(conditions(row, filter)))
        .orderBy("id")
        .limit(limit)
        .execute();
    },
    oldest: async () => (await edge("asc"))?.id ?? 0,
    newest,
    subscribe(listener) {
      const own = () => listener();
      listeners.add(own);
      watch();
      return () => listeners.delete(own);
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
      callOff?.();
      listeners.clear();
    },
  };
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

/** Anything else names no event, and some of it no database takes as text. */
const isName = (type: string): boolean => /^[a-z.]*\*?$/.test(type);

/** One of the names fits the type of the event; a name may end in `*`. */
export const typesFit = (row: ExpressionBuilder<Tables, "event">, types: readonly string[]): Expression<SqlBool> =>
  row.or(types.filter(isName).map((type) => typeFits(row, type)));

function typeFits(row: ExpressionBuilder<Tables, "event">, type: string): Expression<SqlBool> {
  if (!type.endsWith("*")) return row("type", "=", type);
  const beginning = type.slice(0, -1);
  return sql<SqlBool>`substr(type, 1, ${sql.lit(beginning.length)}) = ${beginning}`;
}

/** `time`: the one that ages are counted up to. */
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
