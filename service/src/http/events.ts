/**
 * Events in responses (docs/spec.md#event, #event-endpoints): the filter for the events of a caller, the JSON of an event, and the list.
 * The DNS feature supplies the filter for restricted tokens.
 */
import { formatDate } from "@brume/api/common.ts";
import { type Event, type eventOperations, eventResourceNames, eventResources } from "@brume/api/event.ts";
import { grants, type Query } from "@brume/api/operation.ts";
import { ApiError, fieldError } from "../base/error.ts";
import { type EventFilter, type EventRow, eventWindows, type Feed } from "../engine/event.ts";
import type { Reader } from "../store/db.ts";
import type { Caller, ListHandler, Page } from "./handler.ts";
import { defaultLimit } from "./list.ts";
import { decodeCursor, encodeCursor } from "./read/page.ts";

/** Query of the list and the stream of events. */
export type EventQuery = Query<typeof eventOperations.listEvents>;

/** Returns the part of an event that a restricted token may see; null: nothing. */
export type FilterEvent = (caller: Caller, row: EventRow) => EventRow | null;

/** Returns an event as one line of JSON. `data` of the row is JSON already. */
export function printEvent(row: EventRow): string {
  const { id, type, date, project_id, resource, resource_id, parent_id, token_id, request_id, data } = row;
  return (
    `{"ID":${id},"Type":${JSON.stringify(type)},"Date":"${formatDate(date)}","ProjectID":${project_id},` +
    `"Resource":${JSON.stringify(resource)},"ResourceID":${resource_id},"ParentID":${parent_id},"TokenID":${token_id},` +
    `"RequestID":${JSON.stringify(request_id)},"Data":${data ?? "null"}}`
  );
}

function queryError(name: string, detail: string): ApiError {
  return new ApiError("query_invalid", detail, [fieldError(`?${name}`, "query_invalid", detail)]);
}

const words = (text: string): string[] =>
  text
    .split(",")
    .map((word) => word.trim())
    .filter((word) => word !== "");

/** Returns the filter for the events that the caller may see and the query selects. Throws `query_invalid`. */
export function filterOf(caller: Caller, query: EventQuery): EventFilter {
  const resources = query.resource === undefined ? undefined : words(query.resource).map(readResource);
  const kinds = eventResourceNames.filter((kind) => grants(caller.scopes, eventResources[kind].scope));
  return {
    project: caller.projectId,
    // Without this condition, events are counted from an index.
    ...(kinds.length < eventResourceNames.length && { kinds }),
    ...(query.type !== undefined && { types: words(query.type.toLowerCase()) }),
    ...(resources !== undefined && { resources }),
    ...(caller.restriction !== null && { domain: caller.restriction.domainId }),
  };
}

const kinds: ReadonlySet<string> = new Set(eventResourceNames);

function readResource(text: string): { resource: string; id: number } {
  const [, resource, digits] = /^([a-z]+):(\d{1,10})$/i.exec(text) ?? [];
  if (resource === undefined)
    throw queryError(
      "resource",
      `resource must be a kind and an id such as domain:3, not ${JSON.stringify(text.slice(0, 40))}.`,
    );
  const kind = resource.toLowerCase();
  if (!kinds.has(kind))
    throw queryError(
      "resource",
      `resource must be one of ${eventResourceNames.join(", ")}, with an id, not ${JSON.stringify(text)}.`,
    );
  return { resource: kind, id: Number(digits) };
}

/** Rows per query if all rows must be filtered. */
const batch = 500;

/** Returns the number of matching events, for a token without restriction. */
async function countEvents(db: Reader, filter: EventFilter, after: number): Promise<number> {
  if (filter.resources !== undefined) return countWithin(db, filter, after, Number.MAX_SAFE_INTEGER);
  let sum = 0;
  for await (const { from, to } of eventWindows(db, after)) sum += await countWithin(db, filter, from, to);
  return sum;
}

/** Returns the number of matching events with ids above `from`, up to `to`. */
async function countWithin(db: Reader, filter: EventFilter, from: number, to: number): Promise<number> {
  const { project, kinds, types, resources } = filter;
  let query = db.selectFrom("event").where("project_id", "=", project).where("id", ">", from).where("id", "<=", to);
  if (kinds !== undefined) query = query.where((row) => row.or(kinds.map((kind) => row("resource", "=", kind))));
  if (types !== undefined)
    query = query.where((row) =>
      row.or(
        types.map((type) =>
          type.endsWith("*")
            ? row(row.fn<string>("substr", ["type", row.lit(1), row.lit(type.length - 1)]), "=", type.slice(0, -1))
            : row("type", "=", type),
        ),
      ),
    );
  if (resources !== undefined)
    query = query.where((row) =>
      row.or(resources.map((each) => row.and({ resource: each.resource, resource_id: each.id }))),
    );
  const row = await query.select((all) => all.fn.countAll<number>().as("count")).executeTakeFirstOrThrow();
  return row.count;
}

/** Creates the handler of `GET /event` without a stream. */
export function createEventList(feed: Feed, filterEvent: FilterEvent): ListHandler<typeof eventOperations.listEvents> {
  /** Reads all matching events, because `filterEvent` cannot run in SQL. Only for restricted tokens, which see one domain. */
  async function readFiltered(caller: Caller, filter: EventFilter, after: number): Promise<EventRow[]> {
    const visible: EventRow[] = [];
    for (let last = after; ; ) {
      const rows = await feed.after(filter, last, batch);
      for (const row of rows) {
        const part = filterEvent(caller, row);
        if (part !== null) visible.push(part);
      }
      if (rows.length < batch) return visible;
      last = rows[batch - 1]?.id ?? last;
    }
  }

  /** Reads the newest `limit` events after `start`, newest first: searches ever larger ranges below the newest event. */
  async function readNewest(db: Reader, filter: EventFilter, start: number, limit: number): Promise<EventRow[]> {
    const end = await feed.newest();
    for (let size = 4 * limit; ; size *= 4) {
      const from = Math.max(start, end - size);
      const count = await countEvents(db, filter, from);
      if (count < limit && from > start) continue;
      return (await feed.after(filter, from, count)).slice(-limit).reverse();
    }
  }

  return {
    async list({ caller, query }, db): Promise<Page<Event>> {
      const filter = filterOf(caller, query);
      const limit = query.limit ?? defaultLimit;
      const start = query.after ?? 0;
      const position = query.cursor === undefined ? start : Math.max(start, decodeCursor(query.cursor).id);
      const filtered = caller.restriction === null ? null : await readFiltered(caller, filter, start);
      const total = filtered?.length ?? (await countEvents(db, filter, start));
      if (query.newest === true) {
        if (query.cursor !== undefined) throw queryError("cursor", "cursor cannot be given with newest.");
        const newest = filtered?.slice(-limit).reverse() ?? (await readNewest(db, filter, start, limit));
        return { items: newest.map((row) => JSON.parse(printEvent(row)) as Event), total, next: null };
      }
      const rows = filtered?.filter((row) => row.id > position) ?? (await feed.after(filter, position, limit + 1));
      const items = rows.slice(0, limit);
      const last = items.at(-1);
      return {
        items: items.map((row) => JSON.parse(printEvent(row)) as Event),
        total,
        next: rows.length > limit && last !== undefined ? encodeCursor({ id: last.id }) : null,
      };
    },
  };
}
