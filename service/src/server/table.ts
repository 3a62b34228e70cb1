/** SQL of servers and server groups. Returns rows as stored; the modules in `model` validate and show them. */
import { type Insertable, type Selectable, type SqlBool, sql, type Updateable } from "kysely";
import { lock, prepare, type Reader, type Tx } from "../store/db.ts";
import type { SshKeyTable } from "../store/schema/catalog.ts";
import type { LinkTable } from "../store/schema/network.ts";
import type { ServerKeyTable, ServerTable } from "../store/schema/server.ts";
import type { Tables } from "../store/schema.ts";

export type ServerRow = Selectable<ServerTable>;
export type NewServer = Insertable<ServerTable>;
type ServerBatchTable = Tables["server_batch"];
export type BatchRow = Selectable<ServerBatchTable>;
type KeyRow = Selectable<SshKeyTable>;

/** Locks a group until the commit, for changes of its state or its members. Taken after the queue lock of the member. */
export const lockBatch = (tx: Tx, id: number): Promise<void> => lock(tx, `batch:${id}`);
/** Locks the capacity of the host until the commit, while it is summed up and allocated. Taken after the project lock. */
export const lockCapacity = (tx: Tx): Promise<void> => lock(tx, "room");

const findOwned = prepare<{ id: number; project: number }>()((db, p) =>
  db.selectFrom("server").selectAll().where("id", "=", p("id")).where("project_id", "=", p("project")),
);

/** Returns a server of the project. */
export const findServer = (db: Reader, project: number, id: number): Promise<ServerRow | undefined> =>
  findOwned.first(db, { id, project });

const findAny = prepare<{ id: number }>()((db, p) => db.selectFrom("server").selectAll().where("id", "=", p("id")));

/** Returns a server of any project, for flows and reconcilers. */
export const findAnyServer = (db: Reader, id: number): Promise<ServerRow | undefined> => findAny.first(db, { id });

const listOwned = prepare<{ project: number }>()((db, p) =>
  db.selectFrom("server").selectAll().where("project_id", "=", p("project")).orderBy("id"),
);

export const listServers = (db: Reader, project: number): Promise<ServerRow[]> => listOwned.all(db, { project });

const pageOwned = prepare<{ project: number; after: number; limit: number }>()((db, p) =>
  db
    .selectFrom("server")
    .selectAll()
    .where("project_id", "=", p("project"))
    .where("id", ">", p("after"))
    .orderBy("id")
    .limit(p("limit")),
);

/** Returns the first `limit` servers with an id greater than `after`. */
export const pageServers = (db: Reader, project: number, after: number, limit: number): Promise<ServerRow[]> =>
  pageOwned.all(db, { project, after, limit });

const countOwned = prepare<{ project: number }>()((db, p) =>
  db
    .selectFrom("server")
    .select((e) => e.fn.countAll<number>().as("count"))
    .where("project_id", "=", p("project")),
);

export const countServers = async (db: Reader, project: number): Promise<number> =>
  (await countOwned.first(db, { project }))?.count ?? 0;

/** Columns that decide what exists on the host. */
export type ServerStateRow = Pick<ServerRow, "id" | "state" | "is_on" | "boot" | "condition">;

/** Returns these columns of all servers. Called every few seconds, so it reads no others. */
export const listServerStates = (db: Reader): Promise<ServerStateRow[]> =>
  db.selectFrom("server").select(["id", "state", "is_on", "boot", "condition"]).orderBy("id").execute();

/** Returns the number of servers by state. */
export async function countStates(db: Reader): Promise<ReadonlyMap<ServerRow["state"], number>> {
  const rows = await db
    .selectFrom("server")
    .select((e) => ["state", e.fn.countAll<number>().as("count")])
    .groupBy("state")
    .execute();
  return new Map(rows.map(({ state, count }) => [state, count]));
}

/** Returns the servers whose VM has crashed, with the number of crashes. */
export const listCrashes = (db: Reader): Promise<{ readonly id: number; readonly crashes: number }[]> =>
  db.selectFrom("server").select(["id", "crashes"]).where("crashes", ">", 0).orderBy("id").execute();

/** Returns the servers whose last daily backup failed. */
export const listFailedBackups = (db: Reader): Promise<{ readonly id: number }[]> =>
  db.selectFrom("server").select("id").where("backup_failed", "is not", null).orderBy("id").execute();

/** Returns the servers of all projects. */
export const listAllServers = (db: Reader): Promise<ServerRow[]> =>
  db.selectFrom("server").selectAll().orderBy("id").execute();

/** Returns the servers of a group. */
export const listMembers = (db: Reader, batch: number): Promise<ServerRow[]> =>
  db.selectFrom("server").selectAll().where("batch_id", "=", batch).orderBy("id").execute();

export const insertServer = (tx: Tx, row: NewServer): Promise<ServerRow> =>
  tx.insertInto("server").values(row).returningAll().executeTakeFirstOrThrow();

export const updateServer = (tx: Tx, id: number, change: Updateable<ServerTable>): Promise<ServerRow> =>
  tx.updateTable("server").set(change).where("id", "=", id).returningAll().executeTakeFirstOrThrow();

/** Deletes a server with its keys. */
export async function deleteServer(tx: Tx, id: number): Promise<void> {
  await tx.deleteFrom("server").where("id", "=", id).execute();
}

/** Replaces the keys of a server. */
export async function setServerKeys(tx: Tx, server: number, keys: readonly KeyRow[]): Promise<void> {
  await tx.deleteFrom("server_key").where("server_id", "=", server).execute();
  const rows = keys.map((key, place): ServerKeyTable => ({ server_id: server, place, sshkey: JSON.stringify(key) }));
  if (rows.length > 0) await tx.insertInto("server_key").values(rows).execute();
}

const readKeys = (rows: readonly { readonly sshkey: string }[]) =>
  rows.map(({ sshkey }) => JSON.parse(sshkey) as KeyRow);

const keysOf = prepare<{ server: number }>()((db, p) =>
  db.selectFrom("server_key").select("sshkey").where("server_id", "=", p("server")).orderBy("place"),
);

/** Returns copies of the keys from when they were set, in that order. */
export const listServerKeys = async (db: Reader, server: number): Promise<KeyRow[]> =>
  readKeys(await keysOf.all(db, { server }));

/** Returns the keys of all servers of a project, or of `only`, by id of the server. */
export async function listProjectKeys(
  db: Reader,
  project: number,
  only?: readonly number[],
): Promise<Map<number, KeyRow[]>> {
  let keys = db
    .selectFrom("server_key")
    .innerJoin("server", "server.id", "server_key.server_id")
    .select(["server_key.server_id", "server_key.sshkey"])
    .where("server.project_id", "=", project);
  if (only !== undefined) keys = keys.where("server.id", "in", only);
  const rows = await keys.orderBy("server_key.server_id").orderBy("server_key.place").execute();
  const byServer = Map.groupBy(rows, ({ server_id }) => server_id);
  return new Map([...byServer].map(([server, own]) => [server, readKeys(own)]));
}

/** Returns the links of all servers of a project, or of `only`, in order of id. */
export function listProjectLinks(
  db: Reader,
  project: number,
  only?: readonly number[],
): Promise<Selectable<LinkTable>[]> {
  let links = db
    .selectFrom("link")
    .innerJoin("server", "server.id", "link.server_id")
    .selectAll("link")
    .where("server.project_id", "=", project);
  if (only !== undefined) links = links.where("server.id", "in", only);
  return links.orderBy("link.id").execute();
}

/** Sums that count against quotas and capacity: cores, MB, GB. Failed servers do not count. */
export interface Held {
  readonly Servers: number;
  readonly CPU: number;
  readonly RAM: number;
  readonly HDD: number;
}

const sumHeld = (db: Reader) =>
  db
    .selectFrom("server")
    .select((e) => [
      e.fn.countAll<number>().as("servers"),
      e.fn.coalesce(e.fn.sum<number | string>("held_cpu"), e.val(0)).as("cpu"),
      e.fn.coalesce(e.fn.sum<number | string>("held_ram"), e.val(0)).as("ram"),
      e.fn.coalesce(e.fn.sum<number | string>("held_hdd"), e.val(0)).as("hdd"),
    ])
    // A literal, because the planner uses the partial index only for a condition that it can see.
    .where(sql<SqlBool>`held_cpu > 0`);

const heldByProject = prepare<{ project: number }>()((db, p) => sumHeld(db).where("project_id", "=", p("project")));
const heldByAll = prepare<object>()(sumHeld);

const toHeld = (row: Awaited<ReturnType<typeof heldByAll.first>>): Held => ({
  Servers: row?.servers ?? 0,
  CPU: Number(row?.cpu),
  RAM: Number(row?.ram),
  HDD: Number(row?.hdd),
});

/** Sums up the servers of a project. */
export const sumProject = async (db: Reader, project: number): Promise<Held> =>
  toHeld(await heldByProject.first(db, { project }));
/** Sums up all servers on the host. */
export const sumAll = async (db: Reader): Promise<Held> => toHeld(await heldByAll.first(db, {}));

export const insertBatch = (tx: Tx, row: Insertable<ServerBatchTable>): Promise<BatchRow> =>
  tx.insertInto("server_batch").values(row).returningAll().executeTakeFirstOrThrow();

export const findBatch = (db: Reader, project: number, id: number): Promise<BatchRow | undefined> =>
  db.selectFrom("server_batch").selectAll().where("id", "=", id).where("project_id", "=", project).executeTakeFirst();

export const updateBatch = (tx: Tx, id: number, change: Updateable<ServerBatchTable>): Promise<BatchRow> =>
  tx.updateTable("server_batch").set(change).where("id", "=", id).returningAll().executeTakeFirstOrThrow();

export async function deleteBatch(tx: Tx, id: number): Promise<void> {
  await tx.deleteFrom("server_batch").where("id", "=", id).execute();
}

/** Returns links whose server does not exist. */
export const listStrayLinks = (db: Reader): Promise<{ readonly id: number; readonly server_id: number }[]> =>
  db
    .selectFrom("link")
    .select(["id", "server_id"])
    .where("server_id", "not in", (from) => from.selectFrom("server").select("server.id"))
    .orderBy("id")
    .execute();
