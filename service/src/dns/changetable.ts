/**
 * SQL of changes of domains: their versions, which contain what each change did, and their events. Event ids follow the order of commits,
 * so a reader that has processed the events up to an id finds all later changes above it.
 */
import type { Selectable } from "kysely";
import { journal, prepare, type Reader, type Tx } from "../store/db.ts";
import type { DomainVersionTable } from "../store/schema/dns.ts";

export type VersionRow = Selectable<DomainVersionTable>;

/** Queues a version row. The transaction can read it only after `flushJournals`. */
export const putVersion = journal("domain_version", [
  "domain_id",
  "serial",
  "date",
  "token_id",
  "request_id",
  "changes",
]);

/** Lists the sizes of versions in bytes, the newest first, below serial `before`. */
export const listVersionSizes = prepare<{ domain: number; before: number; limit: number }>()((db, p) =>
  db
    .selectFrom("domain_version")
    .select((e) => ["serial", e.fn<number>("octet_length", ["changes"]).as("size")])
    .where("domain_id", "=", p("domain"))
    .where("serial", "<", p("before"))
    .orderBy("serial", "desc")
    .limit(p("limit")),
);

/** Lists versions, the newest first, below serial `before`. */
export const listVersions = prepare<{ domain: number; before: number; limit: number }>()((db, p) =>
  db
    .selectFrom("domain_version")
    .selectAll()
    .where("domain_id", "=", p("domain"))
    .where("serial", "<", p("before"))
    .orderBy("serial", "desc")
    .limit(p("limit")),
);

export async function countVersions(db: Reader, domain: number): Promise<number> {
  const row = await db
    .selectFrom("domain_version")
    .select((e) => e.fn.countAll<number>().as("count"))
    .where("domain_id", "=", domain)
    .executeTakeFirstOrThrow();
  return row.count;
}

/** Domains of a page of `pageHistories`: few enough that reading one takes less than 5 ms. */
export const historiesPerPage = 100;

/**
 * Returns up to `limit` domains after an id, each with the date of its version of the lowest serial, and the serial of the newest version
 * that has `count` newer ones. Both are null if there is none. It reads no other versions.
 */
export const pageHistories = prepare<{ after: number; limit: number; count: number }>()((db, p) =>
  db
    .selectFrom("domain")
    .select((e) => {
      const versions = e.selectFrom("domain_version").whereRef("domain_version.domain_id", "=", "domain.id");
      return [
        "id",
        versions.select("date").orderBy("serial").limit(1).as("oldest"),
        versions.select("serial").orderBy("serial", "desc").limit(1).offset(p("count")).as("surplus"),
      ];
    })
    .where("id", ">", p("after"))
    .orderBy("id")
    .limit(p("limit")),
);

/** Finds the `place`th newest version of a domain; undefined: there are fewer. */
export const findNewest = (db: Reader, domain: number, place: number): Promise<{ serial: number } | undefined> =>
  db
    .selectFrom("domain_version")
    .select("serial")
    .where("domain_id", "=", domain)
    .orderBy("serial", "desc")
    .offset(place - 1)
    .limit(1)
    .executeTakeFirst();

/** Deletes at most `limit` versions below a serial that are older than `before` (ms). Resolves to their number. */
export async function pruneVersions(
  tx: Tx,
  domain: number,
  below: number,
  before: number,
  limit: number,
): Promise<number> {
  const oldest = tx
    .selectFrom("domain_version as old")
    .select("old.serial")
    .where("old.domain_id", "=", domain)
    .where("old.serial", "<", below)
    .where("old.date", "<", before)
    .orderBy("old.serial")
    .limit(limit);
  const { numDeletedRows } = await tx
    .deleteFrom("domain_version")
    .where("domain_id", "=", domain)
    .where("serial", "in", oldest)
    .executeTakeFirst();
  return Number(numDeletedRows);
}

/** Returns the ids of the domains with an event above `after`, up to `last`. Some may have been deleted. */
export async function listChangedDomains(db: Reader, after: number, last: number): Promise<number[]> {
  const changes = db.selectFrom("event").where("id", ">", after).where("id", "<=", last).distinct();
  const domains = await changes.select("resource_id as id").where("resource", "=", "domain").execute();
  const parents = await changes.select("parent_id as id").where("resource", "=", "record").execute();
  return [...new Set([...domains, ...parents].flatMap(({ id }) => (id === null ? [] : [id])))];
}
