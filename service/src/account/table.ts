/** SQL of projects, tokens and the audit log. `model/rules.ts` interprets the rows, `routes.ts` converts them to the API form. */
import type { Quota } from "@brume/api/account.ts";
import type { Insertable, Selectable, Updateable } from "kysely";
import { flushJournals, journal, lock, prepare, type Reader, type Tx } from "../store/db.ts";
import type { AuditTable, ProjectTable, TokenTable } from "../store/schema/account.ts";

export type ProjectRow = Selectable<ProjectTable>;
export type TokenRow = Selectable<TokenTable>;
export type AuditRow = Selectable<AuditTable>;

/** Locks the usage of a project until commit. Callers hold it while they check a quota and add a row. */
export const lockProject = (tx: Tx, id: number): Promise<void> => lock(tx, `project:${id}`);

/** Locks the removal of tokens until commit, so that one of an administrator always remains. */
export const lockAdmins = (tx: Tx): Promise<void> => lock(tx, "admin-tokens");

export const findProject = prepare<{ id: number }>()((db, p) =>
  db.selectFrom("project").selectAll().where("id", "=", p("id")),
);

export const findProjectByName = (db: Reader, name: string): Promise<ProjectRow | undefined> =>
  db.selectFrom("project").selectAll().where("name", "=", name).executeTakeFirst();

export const listProjects = (db: Reader): Promise<ProjectRow[]> =>
  db.selectFrom("project").selectAll().orderBy("id").execute();

export const insertProject = (tx: Tx, row: Insertable<ProjectTable>): Promise<ProjectRow> =>
  tx.insertInto("project").values(row).returningAll().executeTakeFirstOrThrow();

export const updateProject = (tx: Tx, id: number, change: Updateable<ProjectTable>): Promise<ProjectRow> =>
  tx.updateTable("project").set(change).where("id", "=", id).returningAll().executeTakeFirstOrThrow();

/** Deletes the project and its tokens. */
export async function deleteProject(tx: Tx, id: number): Promise<void> {
  await tx.deleteFrom("token").where("project_id", "=", id).execute();
  await tx.deleteFrom("project").where("id", "=", id).execute();
}

/** The token with this hash, its project and the domain it is restricted to, as one row: what authentication needs. */
export const findTokenByHash = prepare<{ hash: string }>()((db, p) =>
  db
    .selectFrom("token")
    .innerJoin("project", "project.id", "token.project_id")
    .leftJoin("domain", "domain.id", "token.domain_id")
    .selectAll("token")
    .select(["project.is_blocked", "domain.ascii as domain"])
    .where("token.hash", "=", p("hash")),
);

export const findToken = prepare<{ id: number }>()((db, p) =>
  db.selectFrom("token").selectAll().where("id", "=", p("id")),
);

export const listTokens = (db: Reader, project: number): Promise<TokenRow[]> =>
  db.selectFrom("token").selectAll().where("project_id", "=", project).orderBy("id").execute();

export const insertToken = (tx: Tx, row: Insertable<TokenTable>): Promise<TokenRow> =>
  tx.insertInto("token").values(row).returningAll().executeTakeFirstOrThrow();

export async function deleteToken(tx: Tx, id: number): Promise<void> {
  await tx.deleteFrom("token").where("id", "=", id).execute();
}

export const touchToken = (tx: Tx, id: number, at: number): Promise<unknown> =>
  tx.updateTable("token").set({ last_used: at }).where("id", "=", id).execute();

/** Returns whether there is another valid administrator token, except one token or those of a project. Callers hold `lockAdmins`. */
export async function hasOtherAdmin(
  db: Reader,
  besides: { readonly token: number } | { readonly project: number },
  now: number,
): Promise<boolean> {
  const other = await db
    .selectFrom("token")
    .select("id")
    .where("is_admin", "=", 1)
    .where((e) => ("token" in besides ? e("id", "!=", besides.token) : e("project_id", "!=", besides.project)))
    .where((e) => e.or([e("expires_at", "is", null), e("expires_at", ">", now)]))
    .limit(1)
    .execute();
  return other.length > 0;
}

export async function countTokens(db: Reader, project: number): Promise<number> {
  const row = await db
    .selectFrom("token")
    .select((e) => e.fn.countAll<number>().as("count"))
    .where("project_id", "=", project)
    .executeTakeFirstOrThrow();
  return row.count;
}

/** Counts the resources of a project per quota, without failed servers and images. */
export async function countUsage(db: Reader, project: number): Promise<Partial<Record<Quota, number>>> {
  const row = await db
    .selectFrom("domain")
    .select((e) => e.fn.countAll<number>().as("count"))
    .where("project_id", "=", project)
    .executeTakeFirstOrThrow();
  const networks = await db
    .selectFrom("network")
    .select((e) => ["kind" as const, e.fn.countAll<number>().as("count")])
    .where("project_id", "=", project)
    .groupBy("kind")
    .execute();
  const networksOf = (kind: string) => networks.find((one) => one.kind === kind)?.count ?? 0;
  const servers = await db
    .selectFrom("server")
    .select((e) => [
      e.fn.countAll<number>().as("count"),
      e.fn.sum<number | string | null>("held_cpu").as("cpu"),
      e.fn.sum<number | string | null>("held_ram").as("ram"),
      e.fn.sum<number | string | null>("held_hdd").as("hdd"),
    ])
    .where("project_id", "=", project)
    .where("state", "!=", "Failed")
    .executeTakeFirstOrThrow();
  const keys = await db
    .selectFrom("sshkey")
    .select((e) => e.fn.countAll<number>().as("count"))
    .where("project_id", "=", project)
    .executeTakeFirstOrThrow();
  const images = await db
    .selectFrom("image")
    .select((e) => e.fn.countAll<number>().as("count"))
    .where("project_id", "=", project)
    .where("type", "=", "Client")
    .where("state", "!=", "Failed")
    .executeTakeFirstOrThrow();
  const webhooks = await db
    .selectFrom("webhook")
    .select((e) => e.fn.countAll<number>().as("count"))
    .where("project_id", "=", project)
    .executeTakeFirstOrThrow();
  return {
    Servers: servers.count,
    CPU: Number(servers.cpu),
    RAM: Number(servers.ram),
    HDD: Number(servers.hdd),
    PublicNetworks: networksOf("public"),
    PrivateNetworks: networksOf("private"),
    Domains: row.count,
    SshKeys: keys.count,
    Images: images.count,
    Tokens: await countTokens(db, project),
    Webhooks: webhooks.count,
  };
}

/** Counts all objects of a project except tokens, including failed ones that count in no quota. */
export async function countOwned(db: Reader, project: number): Promise<Readonly<Record<string, number>>> {
  const count = async (table: "server" | "server_batch" | "network" | "domain" | "sshkey" | "image" | "webhook") => {
    const row = await db
      .selectFrom(table)
      .select((e) => e.fn.countAll<number>().as("count"))
      .where("project_id", "=", project)
      .executeTakeFirstOrThrow();
    return row.count;
  };
  return {
    Servers: await count("server"),
    Batches: await count("server_batch"),
    Networks: await count("network"),
    Domains: await count("domain"),
    SshKeys: await count("sshkey"),
    Images: await count("image"),
    Webhooks: await count("webhook"),
  };
}

export async function ownsDomain(db: Reader, project: number, domain: number): Promise<boolean> {
  const row = await db
    .selectFrom("domain")
    .select("id")
    .where("id", "=", domain)
    .where("project_id", "=", project)
    .executeTakeFirst();
  return row !== undefined;
}

export const putAudit = journal("audit", [
  "project_id",
  "date",
  "token_id",
  "token_name",
  "address",
  "operation",
  "resource",
  "resource_id",
  "status",
  "request_id",
  "before",
  "after",
  "count",
  "last_date",
]);

/** Inserts an audit row and returns its id: the highest, since all rows are written under one lock. */
export async function insertAudit(tx: Tx, row: Omit<AuditRow, "id">): Promise<number> {
  putAudit(tx, row);
  await flushJournals(tx);
  const { id } = await tx.selectFrom("audit").select("id").orderBy("id", "desc").limit(1).executeTakeFirstOrThrow();
  return id;
}

export const addToAudit = prepare<{ id: number; more: number; date: number }>()((db, p) =>
  (db as Tx)
    .updateTable("audit")
    .set((e) => ({ count: e("count", "+", p("more")), last_date: p("date") }))
    .where("id", "=", p("id")),
);

export interface AuditFilter {
  readonly project: number;
  readonly token?: number | undefined;
  readonly resource?: string | undefined;
  readonly resourceId?: number | undefined;
  /** Names, without duplicates. */
  readonly operations?: readonly string[] | undefined;
  readonly from?: number | undefined;
  readonly to?: number | undefined;
}

/** Returns the ids of one project that fit the filter. `operation`: undefined: any. */
function filterAudit(db: Reader, filter: AuditFilter, project: number, operation: string | undefined) {
  let query = db.selectFrom("audit").select("id").where("project_id", "=", project);
  if (filter.token !== undefined) query = query.where("token_id", "=", filter.token);
  if (filter.resource !== undefined) query = query.where("resource", "=", filter.resource);
  if (filter.resourceId !== undefined) query = query.where("resource_id", "=", filter.resourceId);
  if (filter.from !== undefined) query = query.where("date", ">=", filter.from);
  if (filter.to !== undefined) query = query.where("date", "<", filter.to);
  return operation === undefined ? query : query.where("operation", "=", operation);
}

type IdQuery = ReturnType<typeof filterAudit>;

/**
 * Returns the ids that `select` finds in each branch, as one query: of the project and of unknown tokens (0), and of each operation. An index
 * has the rows of each branch in the order of ids (migration 0028).
 */
function uniteBranches(db: Reader, filter: AuditFilter, select: (query: IdQuery) => IdQuery) {
  const ofProject = (project: number) =>
    (filter.operations ?? [undefined]).map((operation) => select(filterAudit(db, filter, project, operation)));
  // A query with a limit cannot be a part of a union itself.
  const [first, ...others] = [...ofProject(filter.project), ...ofProject(0)].map((found) =>
    db.selectFrom(found.as("branch")).select("branch.id"),
  );
  if (first === undefined) throw new Error("The filter has no operation.");
  return others.reduce((union, next) => union.unionAll(next), first);
}

/** Lists rows with ids below `before`, the newest first. */
export function listAudit(db: Reader, filter: AuditFilter, before: number | null, limit: number): Promise<AuditRow[]> {
  const ids = uniteBranches(db, filter, (query) =>
    (before === null ? query : query.where("id", "<", before)).orderBy("id", "desc").limit(limit),
  );
  return db.selectFrom("audit").selectAll().where("id", "in", ids).orderBy("id", "desc").limit(limit).execute();
}

/** Returns the number of rows, at most `most`. */
export async function countAudit(db: Reader, filter: AuditFilter, most: number): Promise<number> {
  const ids = uniteBranches(db, filter, (query) => query);
  const row = await db
    .selectFrom(db.selectFrom(ids.as("found")).select("found.id").limit(most).as("counted"))
    .select((counted) => counted.fn.countAll<number>().as("count"))
    .executeTakeFirstOrThrow();
  return row.count;
}

const audit = { table: "audit", key: ["id"], date: "date" } as const;

/** Pruning rules of the audit log. Refused requests have a separate limit, so that many of them remove no changes. */
export const auditRows = [
  { ...audit, name: "audit", where: "status < 400" },
  { ...audit, name: "refusal", where: "status >= 400" },
] as const;
