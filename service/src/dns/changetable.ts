/**
 * SQL that finds the changed domains by their events. Each change of a domain or its records stores an event in its transaction. Event ids
 * follow the order of commits, so a reader that has processed events up to an id finds all later changes above it.
 */
import type { Reader } from "../store/db.ts";

/** Returns the id of the newest event; 0 if there is none. */
export async function newestEventId(db: Reader): Promise<number> {
  const row = await db.selectFrom("event").select("id").orderBy("id", "desc").limit(1).executeTakeFirst();
  return row?.id ?? 0;
}

/** Returns the ids of the domains with an event above `after`, up to `last`. Some may have been deleted. */
export async function listChangedDomains(db: Reader, after: number, last: number): Promise<number[]> {
  const changes = db.selectFrom("event").where("id", ">", after).where("id", "<=", last).distinct();
  const domains = await changes.select("resource_id as id").where("resource", "=", "domain").execute();
  const parents = await changes.select("parent_id as id").where("resource", "=", "record").execute();
  return [...new Set([...domains, ...parents].flatMap(({ id }) => (id === null ? [] : [id])))];
}
