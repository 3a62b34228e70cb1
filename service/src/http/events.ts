/**
 * Events in responses (docs/spec.md#event, #event-endpoints): the filter for the events of a caller, the JSON of an event, and the list.
 * The DNS feature supplies the filter for restricted tokens.
 */
import { formatDate } from "@brume/api/common.ts";
import {
  type Event,
  type eventOperations,
  eventResourceNames,
  eventResources,
  eventTypes,
  fittingTypes,
  mostCounted,
} from "@brume/api/event.ts";
import { grants, type Query } from "@brume/api/operation.ts";
import { ApiError, fieldError } from "../base/error.ts";
import type { Feed } from "../engine/event.ts";
import { countEvents, type EventFilter, type EventRange, type EventRow } from "../engine/eventquery.ts";
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
  const readable = eventResourceNames.filter((kind) => grants(caller.scopes, eventResources[kind].scope));
  const fitting = fittingTypes(query.type === undefined ? ["*"] : words(query.type.toLowerCase()));
  const types = readable.flatMap((kind) => eventResources[kind].types.filter((type) => fitting.includes(type)));
  return {
    project: caller.projectId,
    ...(types.length < eventTypes.length && { types }),
    ...(query.resource !== undefined && { resources: readResources(query.resource) }),
    ...(caller.restriction !== null && { domain: caller.restriction.domainId }),
  };
}

/** Most objects of the filter `resource`: each is a part of one SQL statement. */
const mostResources = 100;

function readResources(text: string): { resource: string; id: number }[] {
  const resources = new Map(
    words(text)
      .map(readResource)
      .map((object) => [`${object.resource}:${object.id}`, object]),
  );
  if (resources.size > mostResources)
    throw queryError("resource", `resource must name at most ${mostResources} objects, not ${resources.size}.`);
  return [...resources.values()];
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

/** Creates the handler of `GET /event` without a stream. */
export function createEventList(feed: Feed, filterEvent: FilterEvent): ListHandler<typeof eventOperations.listEvents> {
  /** Yields what a restricted token may see of matching events. `filterEvent` cannot run in SQL. */
  async function* visible(caller: Caller, filter: EventFilter, range: EventRange): AsyncGenerator<EventRow> {
    for (let next = range; ; ) {
      const rows = await feed.find(filter, next, batch);
      for (const row of rows) {
        const part = filterEvent(caller, row);
        if (part !== null) yield part;
      }
      const last = rows[batch - 1];
      if (last === undefined) return;
      next = range.newest === true ? { ...next, before: last.id } : { ...next, after: last.id };
    }
  }

  async function find(caller: Caller, filter: EventFilter, range: EventRange, limit: number): Promise<EventRow[]> {
    if (caller.restriction === null) return feed.find(filter, range, limit);
    const rows: EventRow[] = [];
    for await (const row of visible(caller, filter, range)) if (rows.push(row) === limit) break;
    return rows;
  }

  async function count(db: Reader, caller: Caller, filter: EventFilter, after: number): Promise<number> {
    if (caller.restriction === null) return countEvents(db, filter, after, mostCounted);
    let sum = 0;
    for await (const _ of visible(caller, filter, { after })) if (++sum === mostCounted) break;
    return sum;
  }

  return {
    async list({ caller, query }, db): Promise<Page<Event>> {
      const filter = filterOf(caller, query);
      const limit = query.limit ?? defaultLimit;
      const start = query.after ?? 0;
      const position = query.cursor === undefined ? start : Math.max(start, decodeCursor(query.cursor).id);
      const newest = query.newest === true;
      if (newest && query.cursor !== undefined) throw queryError("cursor", "cursor cannot be given with newest.");
      const total = await count(db, caller, filter, start);
      const rows = await find(caller, filter, { after: position, newest }, limit + 1);
      const items = rows.slice(0, limit);
      const last = items.at(-1);
      const hasNext = !newest && rows.length > limit && last !== undefined;
      return {
        items: items.map((row) => JSON.parse(printEvent(row)) as Event),
        total,
        next: hasNext ? encodeCursor({ id: last.id }) : null,
      };
    },
  };
}
