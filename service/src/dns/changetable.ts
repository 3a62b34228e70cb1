/**
 * Which domains were changed, by the numbers of the changes. Every change of a domain or of its records stores an event in its
 * transaction, and events are numbered in the order of their commits: who has read up to a number finds all that is newer above it.
 */
import type { Reader } from "../store/db.ts";

/** The number of the newest change; 0: there was none. */
export async function newestChange(db: Reader): Promise<number> {
  const row = await db.selectFrom("event").select("id").orderBy("id", "desc").limit(1).executeTakeFirst();
  return row?.id ?? 0;
}

/** Ids of the domains with a change numbered above `after`, up to `last`. Some may be deleted. */
export async function listChangedDomains(db: Reader, after: number, last: number): Promise<number[]> {
  const changes = db.selectFrom("event").where("id", ">", after).where("id", "<=", last).distinct();
  const domains = await changes.select("resource_id as id").where("resource", "=", "domain").execute();
  const parents = await changes.select("parent_id as id").where("resource", "=", "record").execute();
  return [...new Set([...domains, ...parents].flatMap(({ id }) => (id === null ? [] : [id])))];
}
