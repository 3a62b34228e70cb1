/**
 * Writes events into the query cache. An event contains the object as `GET` returns it, so nothing is read again, except which objects a
 * list contains after a creation.
 *
 * Keys: `[kind, "one", id]` is an object; `[kind, "list", …]` a list of objects. Lists below another object have its id as third part.
 */
import type { Event } from "@brume/api/event.ts";
import type { QueryClient, QueryKey } from "@tanstack/react-query";

type Row = Readonly<Record<string, unknown>> & { readonly ID?: number; readonly Id?: number };

/** Kinds whose lists are below the object of `ParentID`. */
const nested: ReadonlySet<string> = new Set(["action", "record"]);
/** Fields that events never contain. */
const secrets = ["AdminPassword", "SharedKey"];

const idOf = (row: Row): number | undefined => row.ID ?? row.Id;

/** Returns the object after the event. Secrets, and records that the event leaves out, keep their value. */
export function merge(before: Row, after: Row): Row {
  const kept: Record<string, unknown> = {};
  for (const name of secrets) if (after[name] === "" && typeof before[name] === "string") kept[name] = before[name];
  const records = before["LinkedRecords"];
  if (Array.isArray(records) && Array.isArray(after["LinkedRecords"])) kept["LinkedRecords"] = records;
  const rules = after["Firewall"] as Counted | undefined;
  if (rules?.Rules) kept["Firewall"] = withCounters(before["Firewall"] as Counted | undefined, rules);
  return { ...after, ...kept };
}

interface Counted {
  readonly Rules: readonly Readonly<Record<string, unknown>>[];
  /** Rules that the event leaves out. */
  readonly Omitted?: number;
}

/** Events contain no counters and not always all rules: these stay as they were until the network is read again. */
function withCounters(before: Counted | undefined, after: Counted): Counted {
  if (after.Omitted !== undefined) return before ?? after;
  const Rules = after.Rules.map((rule, index) => {
    const { Packets, Bytes, LastHit, ...known } = before?.Rules[index] ?? {};
    const { Packets: _, Bytes: __, LastHit: ___, ...now } = rule;
    return JSON.stringify(known) === JSON.stringify(now) ? { ...rule, Packets, Bytes, LastHit } : rule;
  });
  return { ...after, Rules };
}

/** Keeps only the last event of each object: the ones before it are outdated. */
export function collapse(events: readonly Event[]): Event[] {
  const last = new Map<string, Event>();
  const created = new Set<string>();
  for (const event of events) {
    const key = `${event.Resource}:${event.ResourceID}`;
    if (event.Type.endsWith(".created")) created.add(key);
    last.delete(key);
    last.set(key, event);
  }
  return [...last].map(([key, event]) =>
    created.has(key) && event.Data !== null ? { ...event, Type: `${event.Resource}.created` as Event["Type"] } : event,
  );
}

function patchList(rows: readonly Row[], changes: ReadonlyMap<number, Row | null>): readonly Row[] {
  let isChanged = false;
  const next: Row[] = [];
  for (const row of rows) {
    const id = idOf(row);
    const change = id === undefined ? undefined : changes.get(id);
    if (change === undefined) next.push(row);
    else {
      isChanged = true;
      if (change !== null) next.push(merge(row, change));
    }
  }
  return isChanged ? next : rows;
}

/** Returns true if the query of the key contains the object of the event. */
export function concerns([kind, form, id]: QueryKey, { Resource, ResourceID, ParentID }: Event): boolean {
  if (kind !== Resource) return false;
  if (form === "one") return id === ResourceID;
  return form === "list" && (!nested.has(Resource) || id === undefined || id === ParentID);
}

/**
 * Writes into one query what it shows. What must be read again, as its read failed or no page shows it, stays so: the event contains
 * only one object of it.
 */
function write<T>(queries: QueryClient, key: QueryKey, change: (before: T) => T): void {
  const isStale = queries.getQueryState(key)?.isInvalidated === true;
  queries.setQueryData<T>(key, (before) => before && change(before));
  if (isStale) void queries.invalidateQueries({ queryKey: key, exact: true, refetchType: "none" });
}

/** Writes events, which `concerns` has selected, into one query. */
export function patchQuery(queries: QueryClient, key: QueryKey, events: readonly Event[]): void {
  const changes = new Map(collapse(events).map((event) => [event.ResourceID, rowOf(event)]));
  if (key[1] === "list") write<readonly Row[]>(queries, key, (rows) => patchList(rows, changes));
  // A deleted object was reset with its event.
  for (const row of key[1] === "one" ? changes.values() : [])
    if (row !== null) write<Row>(queries, key, (before) => merge(before, row));
}

/** Returns the object after the event; null: the project does not have it any more, as it was deleted or withdrawn. */
function rowOf({ Type, Data }: Event): Row | null {
  return Data === null || Type.endsWith(".deleted") || Type.endsWith(".withdrawn") ? null : (Data as Row);
}

/** Writes events into the cache. Returns the keys of lists that must be read again, because objects were created. */
export function applyEvents(queries: QueryClient, events: readonly Event[]): QueryKey[] {
  const stale: QueryKey[] = [];
  const groups = new Map<string, { readonly key: QueryKey; readonly changes: Map<number, Row | null> }>();
  for (const event of collapse(events)) {
    const { Type, Resource, ResourceID, ParentID } = event;
    const row = rowOf(event);
    const one = [Resource, "one", ResourceID];
    // A page that shows the object reads it again, and shows that it does not exist.
    if (row === null) void queries.resetQueries({ queryKey: one });
    else write<Row>(queries, one, (before) => merge(before, row));
    const key = nested.has(Resource) && ParentID !== null ? [Resource, "list", ParentID] : [Resource, "list"];
    const name = key.join();
    const group = groups.get(name) ?? { key, changes: new Map<number, Row | null>() };
    groups.set(name, group);
    group.changes.set(ResourceID, row);
    if (Type.endsWith(".created") && !groups.has(`${name}!`)) stale.push(key);
  }
  for (const { key, changes } of groups.values())
    for (const { queryKey } of queries.getQueryCache().findAll({ queryKey: key }))
      write<readonly Row[]>(queries, queryKey, (rows) => patchList(rows, changes));
  return stale;
}
