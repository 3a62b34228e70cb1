/** SQL of servers and server groups. Returns rows as stored; the modules in `model` validate and show them. */
import { type Insertable, type Selectable, type SqlBool, sql, type Updateable } from "kysely";
import { insertMany, lock, prepare, type Reader, type Tx } from "../store/db.ts";
import type { SshKeyTable } from "../store/schema/catalog.ts";
import type { LinkTable } from "../store/schema/network.ts";
import type { ServerKeyTable, ServerTable } from "../store/schema/server.ts";
import type { Tables } from "../store/schema.ts";
import { indexChange, indexObject } from "../store/term.ts";
import { countServer } from "./sumtable.ts";

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

/** Columns that responses show. */
export const shownColumns = [
  ...([
    "id",
    "name",
    "host_name",
    "state",
    "cpu",
    "ram",
    "hdd",
    "location",
    "image_id",
    "image_name",
    "family",
  ] as const),
  ...(["admin_password", "is_high_performance", "hdd_type", "created", "batch_id", "is_protected", "error"] as const),
  ...(["is_backup_active", "backup_period", "condition", "crashes", "labels"] as const),
] as const;

/** The part of a server that responses show. */
export type ShownRow = Pick<ServerRow, (typeof shownColumns)[number]>;

/** Columns that the filters of the list read. */
export type FilteredRow = Pick<ServerRow, "id" | "name" | "state" | "batch_id" | "location" | "labels">;

const filtered = ["id", "name", "state", "batch_id", "location", "labels"] as const;

/** Returns the first `limit` servers with an id greater than `after`, with the columns of the filters. */
export const pageFiltered = prepare<{ project: number; after: number; limit: number }>()((db, p) =>
  db
    .selectFrom("server")
    .select(filtered)
    .where("project_id", "=", p("project"))
    .where("id", ">", p("after"))
    .orderBy("id")
    .limit(p("limit")),
);

/** Returns these columns of the existing servers of the project among `ids`, by id. */
export const listFiltered = (db: Reader, project: number, ids: readonly number[]): Promise<FilteredRow[]> =>
  db
    .selectFrom("server")
    .select(filtered)
    .where("project_id", "=", project)
    .where("id", "in", ids)
    .orderBy("id")
    .execute();

/** Returns the ids of the servers of a group. */
export const listMemberIds = async (db: Reader, batch: number): Promise<number[]> => {
  const rows = await db.selectFrom("server").select("id").where("batch_id", "=", batch).orderBy("id").execute();
  return rows.map(({ id }) => id);
};

/** As `pageFiltered`, with only the servers in this state. */
export const pageInState = prepare<{ project: number; state: ServerRow["state"]; after: number; limit: number }>()(
  (db, p) =>
    db
      .selectFrom("server")
      .select(filtered)
      .where("project_id", "=", p("project"))
      .where("state", "=", p("state"))
      .where("id", ">", p("after"))
      .orderBy("id")
      .limit(p("limit")),
);

const countOfState = prepare<{ project: number; state: ServerRow["state"] }>()((db, p) =>
  db
    .selectFrom("server")
    .select((e) => e.fn.countAll<number>().as("count"))
    .where("project_id", "=", p("project"))
    .where("state", "=", p("state")),
);

/** Returns the number of servers of the project in this state. */
export const countInState = async (db: Reader, project: number, state: ServerRow["state"]): Promise<number> =>
  (await countOfState.first(db, { project, state }))?.count ?? 0;

/** Returns the existing servers of the project among `ids`, by id. */
export const listServersOf = async (db: Reader, project: number, ids: readonly number[]): Promise<ServerRow[]> =>
  ids.length === 0
    ? []
    : db
        .selectFrom("server")
        .selectAll()
        .where("project_id", "=", project)
        .where("id", "in", ids)
        .orderBy("id")
        .execute();

/** Columns that decide what exists on the host. */
export type ServerStateRow = Pick<ServerRow, "id" | "state" | "is_on" | "boot" | "condition">;

/** Rows of a page of `pageServerStates`: few enough that reading one takes less than 5 ms. */
export const statesPerPage = 500;

/** Returns up to `limit` servers after an id, with the columns that decide what exists on the host. */
export const pageServerStates = prepare<{ after: number; limit: number }>()((db, p) =>
  db
    .selectFrom("server")
    .select(["id", "state", "is_on", "boot", "condition", "disk_version", "created"])
    .where("id", ">", p("after"))
    .orderBy("id")
    .limit(p("limit")),
);

/** Returns these columns of some servers. */
export const listServerStatesOf = (db: Reader, ids: readonly number[]): Promise<ServerStateRow[]> =>
  db.selectFrom("server").select(["id", "state", "is_on", "boot", "condition"]).where("id", "in", ids).execute();

/** Returns the number of servers by state. */
export async function countStates(db: Reader): Promise<ReadonlyMap<ServerRow["state"], number>> {
  const rows = await db
    .selectFrom("server")
    .select((e) => ["state", e.fn.countAll<number>().as("count")])
    .groupBy("state")
    .execute();
  return new Map(rows.map(({ state, count }) => [state, count]));
}

/**
 * Returns the servers whose VM has crashed or does not run as it should, or whose last daily backup failed. An index contains them alone,
 * with the words of this condition (migration 0029).
 */
export const listNotable = prepare()((db) =>
  db
    .selectFrom("server")
    .select(["id", "crashes", "condition", "backup_failed"])
    .where(sql<SqlBool>`(crashes > 0 or condition <> 'Normal' or backup_failed is not null)`)
    .orderBy("id"),
);

/** The columns of a server that decide about its backups. */
export type ServerBackupRow = Pick<
  ServerRow,
  "id" | "state" | "is_backup_active" | "backup_period" | "backed_up" | "backup_failed"
>;

/** Returns these columns of up to `limit` servers after an id. */
export const pageServerBackups = prepare<{ after: number; limit: number }>()((db, p) =>
  db
    .selectFrom("server")
    .select(["id", "state", "is_backup_active", "backup_period", "backed_up", "backup_failed"])
    .where("id", ">", p("after"))
    .orderBy("id")
    .limit(p("limit")),
);

/** Returns the servers of a group. */
export const listMembers = (db: Reader, batch: number): Promise<ServerRow[]> =>
  db.selectFrom("server").selectAll().where("batch_id", "=", batch).orderBy("id").execute();

const memberInState = prepare<{ batch: number; state: ServerRow["state"] }>()((db, p) =>
  db.selectFrom("server").select("id").where("batch_id", "=", p("batch")).where("state", "=", p("state")).limit(1),
);

/** Returns whether a server of the group is in this state. */
export const hasMemberIn = async (db: Reader, batch: number, state: ServerRow["state"]): Promise<boolean> =>
  (await memberInState.first(db, { batch, state })) !== undefined;

const anyMember = prepare<{ batch: number }>()((db, p) =>
  db.selectFrom("server").select("id").where("batch_id", "=", p("batch")).limit(1),
);

/** Returns whether the group has servers. */
export const hasMembers = async (db: Reader, batch: number): Promise<boolean> =>
  (await anyMember.first(db, { batch })) !== undefined;

const put = insertMany("server", [
  ...shownColumns,
  ...(["project_id", "is_on", "held_cpu", "held_ram", "held_hdd", "guest", "user_data", "disk_version"] as const),
  ...(["boot", "backed_up", "backup_failed", "version"] as const),
]);

/** Inserts a server whose id was reserved. */
export function addServer(tx: Tx, server: ServerRow): void {
  put(tx, [server]);
  countServer(tx, null, server);
  indexObject(tx, "server", null, server);
}

export async function insertServer(tx: Tx, row: NewServer): Promise<ServerRow> {
  const server = await tx.insertInto("server").values(row).returningAll().executeTakeFirstOrThrow();
  countServer(tx, null, server);
  indexObject(tx, "server", null, server);
  return server;
}

export async function updateServer(tx: Tx, id: number, change: Updateable<ServerTable>): Promise<ServerRow> {
  const isCounted = "held_cpu" in change || "held_ram" in change || "held_hdd" in change;
  const before = isCounted ? await findAnyServer(tx, id) : undefined;
  await indexChange(tx, "server", id, change);
  const server = await tx
    .updateTable("server")
    .set(change)
    .where("id", "=", id)
    .returningAll()
    .executeTakeFirstOrThrow();
  if (before !== undefined) countServer(tx, before, server);
  return server;
}

/** Deletes a server with its keys. */
export async function deleteServer(tx: Tx, id: number): Promise<void> {
  const before = await findAnyServer(tx, id);
  if (before === undefined) return;
  await tx.deleteFrom("server").where("id", "=", id).execute();
  countServer(tx, before, null);
  indexObject(tx, "server", before, null);
}

const insertKeys = insertMany("server_key", ["server_id", "place", "sshkey"]);
const deleteKeys = prepare<{ server: number }>()((db, p) =>
  db.deleteFrom("server_key").where("server_id", "=", p("server")),
);

/** Inserts the keys of a server that has none. */
export const addServerKeys = (tx: Tx, server: number, keys: readonly KeyRow[]): void =>
  insertKeys(
    tx,
    keys.map((key, place): ServerKeyTable => ({ server_id: server, place, sshkey: JSON.stringify(key) })),
  );

/** Replaces the keys of a server. */
export function setServerKeys(tx: Tx, server: number, keys: readonly KeyRow[]): void {
  deleteKeys.send(tx, { server });
  addServerKeys(tx, server, keys);
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

export const insertBatch = (tx: Tx, row: Insertable<ServerBatchTable>): Promise<BatchRow> =>
  tx.insertInto("server_batch").values(row).returningAll().executeTakeFirstOrThrow();

const batchOf = prepare<{ project: number; id: number }>()((db, p) =>
  db.selectFrom("server_batch").selectAll().where("id", "=", p("id")).where("project_id", "=", p("project")),
);

export const findBatch = (db: Reader, project: number, id: number): Promise<BatchRow | undefined> =>
  batchOf.first(db, { project, id });

export const updateBatch = (tx: Tx, id: number, change: Updateable<ServerBatchTable>): Promise<BatchRow> =>
  tx.updateTable("server_batch").set(change).where("id", "=", id).returningAll().executeTakeFirstOrThrow();

export async function deleteBatch(tx: Tx, id: number): Promise<void> {
  await tx.deleteFrom("server_batch").where("id", "=", id).execute();
}

/** Returns up to `limit` links after an id, with their servers; `known` is null if the server does not exist. */
export const pageLinkServers = prepare<{ after: number; limit: number }>()((db, p) =>
  db
    .selectFrom("link")
    .leftJoin("server", "server.id", "link.server_id")
    .select(["link.id", "link.server_id", "server.id as known"])
    .where("link.id", ">", p("after"))
    .orderBy("link.id")
    .limit(p("limit")),
);
