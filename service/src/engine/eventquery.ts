/**
 * SQL queries over the event table (docs/spec.md#event). Their cost grows with the number of returned or counted events, not with that of
 * stored ones: each event that can match is in an index (migration 0027).
 */
import {
  type Expression,
  type ExpressionBuilder,
  type Selectable,
  type SelectQueryBuilder,
  type SqlBool,
  sql,
} from "kysely";
import type { Reader } from "../store/db.ts";
import type { EventTable } from "../store/schema/infrastructure.ts";
import type { Tables } from "../store/schema.ts";

/** A row of the table `event`. */
export type EventRow = Selectable<EventTable>;

/** Which events a client requests and may read. All conditions must match; an absent field matches every event. */
export interface EventFilter {
  readonly project: number;
  /** Without duplicates. */
  readonly types?: readonly string[];
  /** Without duplicates. */
  readonly resources?: readonly { readonly resource: string; readonly id: number }[];
  /** Only this domain and its records. */
  readonly domain?: number;
}

/** Ids of the events to return, and their order. */
export interface EventRange {
  /** Only events with higher ids. */
  readonly after: number;
  /** Only events with lower ids. */
  readonly before?: number;
  /** The newest events, newest first; otherwise the oldest, oldest first. */
  readonly newest?: boolean;
}

/** Returns the id of the newest event; 0 if there is none. The newest event is never pruned. */
export async function newestEventId(db: Reader): Promise<number> {
  const row = await db.selectFrom("event").select("id").orderBy("id", "desc").limit(1).executeTakeFirst();
  return row?.id ?? 0;
}

type Row = ExpressionBuilder<Tables, "event">;
type Condition = (row: Row) => Expression<SqlBool>;

const isObject =
  ({ resource, id }: { readonly resource: string; readonly id: number }): Condition =>
  (row) =>
    row.and({ resource, resource_id: id });

/** An index contains records only, so that the word must be a part of the statement. */
const isRecordOf =
  (domain: number): Condition =>
  (row) =>
    row.and([row("resource", "=", sql.lit("record")), row("parent_id", "=", domain)]);

const partsOf = (domain: number): readonly Condition[] => [
  isObject({ resource: "domain", id: domain }),
  isRecordOf(domain),
];

const hasType =
  (types: readonly string[]): Condition =>
  (row) =>
    row("type", "in", types);

const all =
  (...conditions: readonly Condition[]): Condition =>
  (row) =>
    row.and(conditions.map((condition) => condition(row)));

const any =
  (conditions: readonly Condition[]): Condition =>
  (row) =>
    row.or(conditions.map((condition) => condition(row)));

/** Returns disjoint conditions. An event that fits the filter meets one of them, and an index has the events of each in the order of ids. */
function branchesOf({ project, types, resources, domain }: EventFilter): readonly Condition[] {
  if (types?.length === 0) return [];
  const isOfProject: Condition = (row) => row("project_id", "=", project);
  const ofTypes = types === undefined ? [] : [hasType(types)];
  const ofDomain = domain === undefined ? [] : partsOf(domain);
  if (resources !== undefined) {
    const rest = ofDomain.length === 0 ? ofTypes : [...ofTypes, any(ofDomain)];
    return resources.map((object) => all(isOfProject, isObject(object), ...rest));
  }
  if (domain !== undefined) return ofDomain.map((part) => all(isOfProject, part, ...ofTypes));
  if (types !== undefined) return types.map((type) => all(isOfProject, (row) => row("type", "=", type)));
  return [isOfProject];
}

/** Returns the condition of the filter as a whole. Types are one list, which is tested faster than a condition for each. */
function fits(filter: EventFilter): Condition {
  const { project, types, resources, domain } = filter;
  if (types === undefined || resources !== undefined || domain !== undefined) return any(branchesOf(filter));
  return all((row) => row("project_id", "=", project), types.length === 0 ? any([]) : hasType(types));
}

type IdQuery = SelectQueryBuilder<Tables, "event", { id: number }>;

/** Returns the ids that `select` finds in each branch, as one query; null: the filter has no branch. */
function uniteBranches(db: Reader, filter: EventFilter, select: (query: IdQuery) => IdQuery) {
  const [first, ...others] = branchesOf(filter).map((branch) => {
    const found = select(db.selectFrom("event").select("id").where(branch));
    // A query with a limit cannot be a part of a union itself.
    return db.selectFrom(found.as("branch")).select("branch.id");
  });
  return first === undefined ? null : others.reduce((union, next) => union.unionAll(next), first);
}

/** Ids that are searched first, with the whole condition: for most filters they contain a page, and for a stream all that it has missed. */
const near = 5000;

/** Returns up to `limit` events of the range. */
export async function findEvents(
  db: Reader,
  filter: EventFilter,
  { after, before, newest = false }: EventRange,
  limit: number,
): Promise<EventRow[]> {
  const order = newest ? "desc" : "asc";
  const last = before === undefined ? await newestEventId(db) : before - 1;
  const select = (from: number, to: number) =>
    db
      .selectFrom("event")
      .selectAll()
      .where("id", ">", from)
      .where("id", "<=", to)
      .where(fits(filter))
      .orderBy("id", order)
      .limit(limit)
      .execute();
  // Most filters match many events, and streams read the newest: these are found without a search in each branch.
  const [from, to] = newest ? [Math.max(after, last - near), last] : [after, Math.min(after + near, last)];
  const found = await select(from, to);
  if (found.length >= limit || (from <= after && to >= last)) return found;
  const ids = uniteBranches(db, filter, (query) =>
    query.where("id", ">", after).where("id", "<=", last).orderBy("id", order).limit(limit),
  );
  if (ids === null) return [];
  return db.selectFrom("event").selectAll().where("id", "in", ids).orderBy("id", order).limit(limit).execute();
}

/** Returns the number of events with ids above `after`, at most `most`. */
export async function countEvents(db: Reader, filter: EventFilter, after: number, most: number): Promise<number> {
  // Without order PostgreSQL would read the table instead of the index of a frequent type.
  const ids = uniteBranches(db, filter, (query) => query.where("id", ">", after).orderBy("id").limit(most));
  if (ids === null) return 0;
  const row = await db
    .selectFrom(db.selectFrom(ids.as("found")).select("found.id").limit(most).as("counted"))
    .select((counted) => counted.fn.countAll<number>().as("count"))
    .executeTakeFirstOrThrow();
  return row.count;
}
