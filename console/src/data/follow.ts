/**
 * Keeps the query cache current by events. A response may be older than an event that arrives before it, and would replace the newer
 * object: so events of what is being read are written into the cache again when the read has ended.
 */
import { ApiError } from "@brume/api/client.ts";
import type { Event } from "@brume/api/event.ts";
import type { Query, QueryClient, QueryKey } from "@tanstack/react-query";
import { applyEvents, concerns, patchQuery } from "./patch.ts";

export interface CacheUpdates {
  /** Writes events into the cache. */
  apply(events: readonly Event[]): void;
  /** Reads what a page shows of a key again: after a pause, so that many events cause one read. Reads in progress are repeated when they end. */
  readAgain(key: QueryKey): void;
  /** The same after a longer pause, for lists that every change of any object changes. */
  readLater(key: QueryKey): void;
  /** Reads everything that a page shows again. */
  readAllAgain(): void;
  /** Reads what a page shows again if its last read failed. That an object does not exist is no failure: its events would tell of it. */
  readFailedAgain(): void;
  /** Forgets what is to be read again. */
  clear(): void;
}

/** Returns whether the last read failed. A change may be missing in what an earlier one has read. */
const hasFailed = ({ state }: Query): boolean => state.status === "error" && state.fetchStatus === "idle";

/** Returns whether the service, not a proxy before it, answered that the object does not exist. */
export const isMissing = (error: unknown): boolean =>
  error instanceof ApiError && error.status === 404 && error.problem !== null;

/** What arrived while a query was read. */
interface Missed {
  readonly key: QueryKey;
  readonly events: Event[];
  isStale: boolean;
}

/** Milliseconds between two reads of what has changed. */
const readPause = 250;
/** The same for long lists that always change. */
const longPause = 3000;

/** Creates the updates of a cache; they last as long as the cache. */
export function createCacheUpdates(queries: QueryClient): CacheUpdates {
  const cache = queries.getQueryCache();
  const missed = new Map<string, Missed>();
  const stale = new Map<string, QueryKey>();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const later = new Map<string, ReturnType<typeof setTimeout>>();

  const missedBy = ({ queryHash, queryKey }: { queryHash: string; queryKey: QueryKey }): Missed => {
    const known = missed.get(queryHash);
    if (known !== undefined) return known;
    const created: Missed = { key: queryKey, events: [], isStale: false };
    missed.set(queryHash, created);
    return created;
  };
  const invalidate = (queryKey?: QueryKey): void => {
    for (const query of cache.findAll(queryKey && { queryKey })) {
      // The read in progress may be older: a second one cannot start before it has ended.
      if (query.state.fetchStatus !== "idle") missedBy(query).isStale = true;
      else void queries.invalidateQueries({ queryKey: query.queryKey, exact: true });
    }
  };
  const refresh = (): void => {
    timer = undefined;
    const keys = [...stale.values()];
    stale.clear();
    for (const key of keys) invalidate(key);
  };
  const readAgain = (key: QueryKey): void => {
    stale.set(JSON.stringify(key), key);
    timer ??= setTimeout(refresh, readPause);
  };
  const readLater = (key: QueryKey): void => {
    const name = JSON.stringify(key);
    const start = (): void => {
      later.delete(name);
      readAgain(key);
    };
    if (!later.has(name)) later.set(name, setTimeout(start, longPause));
  };

  cache.subscribe(({ query, type }) => {
    const { queryHash, state } = query;
    const found = missed.get(queryHash);
    if (found === undefined || (state.fetchStatus !== "idle" && type !== "removed")) return;
    missed.delete(queryHash);
    if (type === "removed") return;
    patchQuery(queries, found.key, found.events);
    if (found.isStale) readAgain(found.key);
  });

  return {
    apply(events) {
      for (const query of cache.findAll({ predicate: ({ state }) => state.fetchStatus !== "idle" })) {
        const found = events.filter((event) => concerns(query.queryKey, event));
        if (found.length > 0) missedBy(query).events.push(...found);
      }
      // The events end the error of a query, so it must be found before.
      for (const { queryKey } of cache.findAll({ predicate: hasFailed }))
        if (events.some((event) => concerns(queryKey, event))) readAgain(queryKey);
      for (const key of applyEvents(queries, events)) readAgain(key);
    },
    readAgain,
    readLater,
    readAllAgain: () => invalidate(),
    readFailedAgain() {
      const isUnread = (query: Query): boolean => hasFailed(query) && !isMissing(query.state.error);
      for (const { queryKey } of cache.findAll({ predicate: isUnread })) readAgain(queryKey);
    },
    clear() {
      clearTimeout(timer);
      for (const each of later.values()) clearTimeout(each);
      timer = undefined;
      later.clear();
      stale.clear();
      missed.clear();
    },
  };
}
