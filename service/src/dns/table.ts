/** SQL of domains and records; `changetable.ts` has that of their versions. Callers that change records of a domain hold `lockDomain`, so that changes are serialised. */
import type { Selectable, Updateable } from "kysely";
import { insertMany, lock, prepare, type Reader, rest, type Tx } from "../store/db.ts";
import type { DomainTable, RecordTable } from "../store/schema/dns.ts";
import { indexChange, indexObject } from "../store/term.ts";

export type DomainRow = Selectable<DomainTable>;
export type RecordRow = Selectable<RecordTable>;
export type NewRecord = Omit<RecordRow, "id">;

/** Locks one domain against other changes until commit. */
export const lockDomain = (tx: Tx, id: number): Promise<void> => lock(tx, `domain:${id}`);
/** Locks the decisions about free names until commit. */
export const lockNames = (tx: Tx): Promise<void> => lock(tx, "domain-names");

/** A domain of a project together with the project's quotas. */
export const findDomain = prepare<{ id: number; project: number }>()((db, p) =>
  db
    .selectFrom("domain")
    .innerJoin("project", "project.id", "domain.project_id")
    .selectAll("domain")
    .select("project.quotas")
    .where("domain.id", "=", p("id"))
    .where("domain.project_id", "=", p("project")),
);

export type OwnedDomain = DomainRow & { readonly quotas: string };

/** Finds a domain of any project. */
export const findAnyDomain = prepare<{ id: number }>()((db, p) =>
  db.selectFrom("domain").selectAll().where("id", "=", p("id")),
);

/** Domains of a project after `id` in order of id, at most `limit`. */
export const pageDomains = prepare<{ project: number; after: number; limit: number }>()((db, p) =>
  db
    .selectFrom("domain")
    .selectAll()
    .where("project_id", "=", p("project"))
    .where("id", ">", p("after"))
    .orderBy("id")
    .limit(p("limit")),
);

/** Lists the existing domains of the project among `ids`, by id. */
export const listDomainsOf = (db: Reader, project: number, ids: readonly number[]): Promise<DomainRow[]> =>
  db.selectFrom("domain").selectAll().where("project_id", "=", project).where("id", "in", ids).orderBy("id").execute();

/** All domains after `id` in order of id, at most `limit`: for walks over everything. */
export const listAllDomains = prepare<{ after: number; limit: number }>()((db, p) =>
  db.selectFrom("domain").selectAll().where("id", ">", p("after")).orderBy("id").limit(p("limit")),
);

/** Columns with an index that contains the id of every domain. */
export const indexedBy = ["ascii", "subtree", "project_id"] as const;

/** Lists all ids in order, from one index, so that damaged pages of the table hide none. */
export async function listDomainIds(db: Reader, index: (typeof indexedBy)[number]): Promise<number[]> {
  const rows = await db.selectFrom("domain").select("id").orderBy(index).execute();
  return rows.map(({ id }) => id).sort((a, b) => a - b);
}

/** All domains with ids from `first` to `last`, in order of id. */
export const listDomainRange = prepare<{ first: number; last: number }>()((db, p) =>
  db.selectFrom("domain").selectAll().where("id", ">=", p("first")).where("id", "<=", p("last")).orderBy("id"),
);

/** Domains of a page of `pageSerials`: few enough that reading one takes less than 5 ms. */
export const serialsPerPage = 1000;

/** Lists id, name, serial and project of the domains after an id: the desired state of the name server. */
export const pageSerials = prepare<{ after: number }>()((db, p) =>
  db
    .selectFrom("domain")
    .select(["id", "ascii", "serial", "project_id"])
    .where("id", ">", p("after"))
    .orderBy("id")
    .limit(serialsPerPage),
);

/** Lists id, name and serial of some domains. */
export async function listSerialsOf(
  db: Reader,
  ids: readonly number[],
): Promise<{ id: number; ascii: string; serial: number }[]> {
  const rows: { id: number; ascii: string; serial: number }[] = [];
  for (let from = 0; from < ids.length; from += maxKeys)
    rows.push(
      ...(await db
        .selectFrom("domain")
        .select(["id", "ascii", "serial"])
        .where("id", "in", ids.slice(from, from + maxKeys))
        .execute()),
    );
  return rows;
}

const countOf = prepare<{ project: number }>()((db, p) =>
  db
    .selectFrom("domain")
    .select((e) => e.fn.countAll<number>().as("count"))
    .where("project_id", "=", p("project")),
);

export const countDomains = async (db: Reader, project: number): Promise<number> =>
  (await countOf.first(db, { project }))?.count ?? 0;

/** Domains with one of these names (the name itself and those above it). */
export const findByNames = (db: Reader, names: readonly string[]): Promise<DomainRow[]> =>
  db.selectFrom("domain").selectAll().where("ascii", "in", names).execute();

/** Domains of other projects below `subtree`, at most `limit`. */
export const listForeignBelow = (db: Reader, subtree: string, project: number, limit: number): Promise<DomainRow[]> =>
  db
    .selectFrom("domain")
    .selectAll()
    .where("subtree", ">", subtree)
    .where("subtree", "<", endOfSubtree(subtree))
    .where("project_id", "!=", project)
    .orderBy("id")
    .limit(limit)
    .execute();

/** `com.example.` ends where `com.example/` begins: the slash follows the dot. */
const endOfSubtree = (subtree: string): string => `${subtree.slice(0, -1)}/`;

const putDomain = insertMany("domain", [
  ...(["id", "project_id", "name", "ascii", "subtree", "serial", "record_count", "is_delegate"] as const),
  ...(["delegation", "is_proven", "import_report", "created", "labels", "version"] as const),
]);

/** Inserts a domain whose id was reserved. */
export function addDomain(tx: Tx, row: DomainRow): void {
  putDomain(tx, [row]);
  indexObject(tx, "domain", null, row);
}

export async function updateDomain(tx: Tx, id: number, change: Updateable<DomainTable>): Promise<void> {
  await indexChange(tx, "domain", id, change);
  await tx.updateTable("domain").set(change).where("id", "=", id).execute();
}

/** Updates the counters of a domain after a change of its records. */
export const stepDomain = prepare<{ id: number; serial: number; version: number; record_count: number }>()((db, p) =>
  db
    .updateTable("domain")
    .set({ serial: p("serial"), version: p("version"), record_count: p("record_count") })
    .where("id", "=", p("id")),
);

/** Deletes the domain with its records and versions, and stores its serial for a later domain of the same name. */
export async function deleteDomain(tx: Tx, domain: DomainRow): Promise<void> {
  await tx.deleteFrom("domain").where("id", "=", domain.id).execute();
  indexObject(tx, "domain", domain, null);
  await tx
    .insertInto("retired_zone")
    .values({ ascii: domain.ascii, serial: domain.serial })
    .onConflict((on) => on.column("ascii").doUpdateSet({ serial: domain.serial }))
    .execute();
}

const retiredSerial = prepare<{ ascii: string }>()((db, p) =>
  db.selectFrom("retired_zone").select("serial").where("ascii", "=", p("ascii")),
);

export const findRetiredSerial = async (db: Reader, ascii: string): Promise<number> =>
  (await retiredSerial.first(db, { ascii }))?.serial ?? 0;

/** A record with the names of its domain, if the project owns the domain. */
export const findRecord = prepare<{ id: number; project: number }>()((db, p) =>
  db
    .selectFrom("record")
    .innerJoin("domain", "domain.id", "record.domain_id")
    .selectAll("record")
    .select(["domain.name", "domain.ascii"])
    .where("record.id", "=", p("id"))
    .where("domain.project_id", "=", p("project")),
);

/** Reads records of one domain by id, and rests after each query. */
export async function listByIds(tx: Tx, domain: number, ids: readonly number[]): Promise<RecordRow[]> {
  const rows: RecordRow[] = [];
  for (let from = 0; from < ids.length; from += maxKeys) {
    if (from > 0) await rest(tx);
    const some = ids.slice(from, from + maxKeys);
    const query = tx.selectFrom("record").selectAll().where("domain_id", "=", domain).where("id", "in", some);
    for (const row of await query.execute()) rows.push(row);
  }
  return rows;
}

/** Maximum number of values in one list of a query, below the limits of both databases. */
const maxKeys = 500;

/** All records of a domain in order of id. */
export async function listRecords(db: Reader, domain: number): Promise<RecordRow[]> {
  const rows = await listDomainRecords.all(db, { domain });
  return rows.sort((a, b) => a.id - b.id);
}

const listDomainRecords = prepare<{ domain: number }>()((db, p) =>
  db.selectFrom("record").selectAll().where("domain_id", "=", p("domain")),
);

/** The first `limit` records of a domain with an id above `after`. */
export const pageRecordsById = prepare<{ domain: number; after: number; limit: number }>()((db, p) =>
  db
    .selectFrom("record")
    .selectAll()
    .where("domain_id", "=", p("domain"))
    .where("id", ">", p("after"))
    .orderBy("id")
    .limit(p("limit")),
);

/** The first `limit` records of a domain by node. */
export const firstRecordsByNode = prepare<{ domain: number; limit: number }>()((db, p) =>
  db.selectFrom("record").selectAll().where("domain_id", "=", p("domain")).orderBy("node").limit(p("limit")),
);

/** The same for nodes after `after`. */
export const pageRecordsByNode = prepare<{ domain: number; after: string; limit: number }>()((db, p) =>
  db
    .selectFrom("record")
    .selectAll()
    .where("domain_id", "=", p("domain"))
    .where("node", ">", p("after"))
    .orderBy("node")
    .limit(p("limit")),
);

/** The columns of a record that the name server serves. */
export type ServedRow = Pick<RecordRow, "type" | "owner" | "ttl" | "value">;

/** Lists the records of a range of domain ids, by domain and id. A start reads all records, so no other columns are selected. */
export async function listServedOf(
  db: Reader,
  first: number,
  last: number,
): Promise<(ServedRow & Pick<RecordRow, "id" | "domain_id">)[]> {
  const rows = await listRangeRecords.all(db, { first, last });
  return rows.sort((a, b) => a.domain_id - b.domain_id || a.id - b.id);
}

const listRangeRecords = prepare<{ first: number; last: number }>()((db, p) =>
  db
    .selectFrom("record")
    .select(["id", "domain_id", "type", "owner", "ttl", "value"])
    .where("domain_id", ">=", p("first"))
    .where("domain_id", "<=", p("last")),
);

const listAtNode = prepare<{ domain: number; node: string }>()((db, p) =>
  db.selectFrom("record").selectAll().where("domain_id", "=", p("domain")).where("node", "=", p("node")),
);

/** Lists the records at these nodes (sort keys of served owners). */
export function listAtNodes(db: Reader, domain: number, nodes: readonly string[]): Promise<RecordRow[]> {
  const [node = ""] = nodes;
  return nodes.length === 1 ? listAtNode.all(db, { domain, node }) : listAtMany(db, domain, nodes);
}

/** Numbers of nodes in one query. Few sizes, so that few queries stay prepared. */
const nodeLists = [256, 64, 16, 4].map((size) => ({ size, query: prepareNodeList(size) }));
const nodeName = (index: number): string => `node${index}`;

function prepareNodeList(size: number) {
  return prepare<Record<string, never>>()((db, p) =>
    db
      .selectFrom("record")
      .selectAll()
      .where("domain_id", "=", p("domain"))
      .where(
        "node",
        "in",
        Array.from({ length: size }, (_, index) => p(nodeName(index))),
      ),
  );
}

async function listAtMany(db: Reader, domain: number, nodes: readonly string[]): Promise<RecordRow[]> {
  const reading: Promise<RecordRow[]>[] = [];
  for (let from = 0; from < nodes.length; ) {
    const left = nodes.length - from;
    const list = nodeLists.find(({ size }) => size <= left) ?? nodeLists.at(-1);
    if (list === undefined) break;
    const { size, query } = list;
    const some = nodes.slice(from, from + size);
    // A short list is filled with its first node.
    const values = Array.from({ length: size }, (_, index) => [nodeName(index), some[index] ?? some[0]]);
    reading.push(query.all(db, { domain, ...Object.fromEntries(values) } as Record<string, never>));
    from += size;
  }
  return (await Promise.all(reading)).flat();
}

/** Lists at most `limit` records of these types at nodes between two, both excluded. */
export const listBetween = (
  db: Reader,
  domain: number,
  [first, last]: readonly [string, string],
  types: readonly string[],
  limit: number,
): Promise<RecordRow[]> =>
  db
    .selectFrom("record")
    .selectAll()
    .where("domain_id", "=", domain)
    .where("node", ">", first)
    .where("node", "<", last)
    .where("type", "in", types)
    .limit(limit)
    .execute();

export const insertRecord = prepare<NewRecord>()((db, p) =>
  db.insertInto("record").values({
    domain_id: p("domain_id"),
    type: p("type"),
    owner: p("owner"),
    node: p("node"),
    ttl: p("ttl"),
    value: p("value"),
    serial: p("serial"),
    created: p("created"),
    labels: p("labels"),
    version: p("version"),
  }),
);

/** Inserts records with ids from `reserveIds`. The result is not awaited. */
export const insertRecords = insertMany("record", [
  "id",
  "domain_id",
  "type",
  "owner",
  "node",
  "ttl",
  "value",
  "serial",
  "created",
  "labels",
  "version",
]);

export const updateRecord = prepare<Omit<RecordRow, "domain_id" | "type" | "created">>()((db, p) =>
  db
    .updateTable("record")
    .set({
      owner: p("owner"),
      node: p("node"),
      ttl: p("ttl"),
      value: p("value"),
      serial: p("serial"),
      labels: p("labels"),
      version: p("version"),
    })
    .where("id", "=", p("id")),
);

export const deleteRecord = prepare<{ id: number }>()((db, p) => db.deleteFrom("record").where("id", "=", p("id")));

/** Pruning rule of the serials of deleted domains: new domains begin with a higher serial than an old one in any case. */
export const retiredZones = {
  name: "zone",
  table: "retired_zone",
  key: ["ascii"],
  date: "serial",
  unit: 1000,
} as const;
