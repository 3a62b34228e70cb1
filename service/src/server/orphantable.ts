/** SQL of orphans, and of the record of deleted servers and images by which their remains on the host are recognized. */

import { formatDate } from "@brume/api/common.ts";
import type { Orphan } from "@brume/api/orphan.ts";
import type { Insertable, Selectable, Updateable } from "kysely";
import { append } from "../engine/event.ts";
import { lock, type Reader, type Tx } from "../store/db.ts";
import type { Tables } from "../store/schema.ts";
import type { Cause } from "./flow/context.ts";

type OrphanTable = Tables["orphan"];
type RetiredTable = Tables["retired"];
export type OrphanRow = Selectable<OrphanTable>;
export type NewOrphan = Insertable<OrphanTable>;

/** Locks all orphans until the commit, to find, adopt or remove them. */
export const lockOrphans = (tx: Tx): Promise<void> => lock(tx, "orphans");

export const listOrphans = (db: Reader): Promise<OrphanRow[]> =>
  db.selectFrom("orphan").selectAll().orderBy("id").execute();

export async function countOrphans(db: Reader): Promise<number> {
  const row = await db
    .selectFrom("orphan")
    .select((e) => e.fn.countAll<number>().as("count"))
    .executeTakeFirst();
  return row?.count ?? 0;
}

/** Returns the number of orphans by kind. */
export async function countKinds(db: Reader): Promise<ReadonlyMap<OrphanRow["kind"], number>> {
  const rows = await db
    .selectFrom("orphan")
    .select((e) => ["kind", e.fn.countAll<number>().as("count")])
    .groupBy("kind")
    .execute();
  return new Map(rows.map(({ kind, count }) => [kind, count]));
}

export const findOrphan = (db: Reader, id: number): Promise<OrphanRow | undefined> =>
  db.selectFrom("orphan").selectAll().where("id", "=", id).executeTakeFirst();

export const insertOrphan = (tx: Tx, row: NewOrphan): Promise<OrphanRow> =>
  tx.insertInto("orphan").values(row).returningAll().executeTakeFirstOrThrow();

export const updateOrphan = (tx: Tx, id: number, change: Updateable<OrphanTable>): Promise<OrphanRow> =>
  tx.updateTable("orphan").set(change).where("id", "=", id).returningAll().executeTakeFirstOrThrow();

export async function deleteOrphan(tx: Tx, id: number): Promise<void> {
  await tx.deleteFrom("orphan").where("id", "=", id).execute();
}

/** Records that an object was deleted, so that its remains on the host may be removed. */
export async function retire(tx: Tx, row: RetiredTable): Promise<void> {
  const { uuid, date } = row;
  await tx
    .insertInto("retired")
    .values(row)
    .onConflict((conflict) => conflict.columns(["kind", "name"]).doUpdateSet({ uuid, date }))
    .execute();
}

/** Returns the recorded deletions among `names`, each with its uuid. */
export async function listRetired(
  db: Reader,
  kind: RetiredTable["kind"],
  names: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  if (names.length === 0) return new Map();
  const rows = await db
    .selectFrom("retired")
    .select(["name", "uuid"])
    .where("kind", "=", kind)
    .where("name", "in", names)
    .execute();
  return new Map(rows.map(({ name, uuid }) => [name, uuid]));
}

/** Returns the id of the server or image in the name of its folder; null: Brume did not create the folder. */
export function numberOf({ kind, name }: Pick<OrphanRow, "kind" | "name">): number | null {
  const [, digits] =
    (kind === "Server" ? /^([1-9][0-9]{0,9})$/ : /^(?:own|backup)-([1-9][0-9]{0,9})$/).exec(name) ?? [];
  return digits === undefined ? null : Number(digits);
}

/** Returns the orphan as responses show it. */
export const showOrphan = (row: OrphanRow): Orphan => ({
  ID: row.id,
  Kind: row.kind,
  Number: numberOf(row) ?? 1,
  Name: row.title,
  Family: row.family,
  CPU: row.cpu,
  RAM: row.ram,
  HDD: row.hdd,
  Bytes: row.bytes,
  State: row.state,
  DateFound: formatDate(row.found),
});

/** Events of orphans go to the first project, that of the operator, because orphans belong to no project. */
const firstProject = async (tx: Tx): Promise<number> =>
  (
    await tx
      .selectFrom("project")
      .select((e) => e.fn.min("id").as("id"))
      .executeTakeFirst()
  )?.id ?? 1;

/** Appends `orphan.created`, `.changed` or `.deleted`. */
export async function emitOrphanEvent(
  tx: Tx,
  row: OrphanRow,
  what: "created" | "changed" | "deleted",
  now: number,
  by: Cause | null = null,
): Promise<void> {
  await append(tx, [
    {
      type: `orphan.${what}`,
      date: now,
      project: await firstProject(tx),
      resource: "orphan",
      id: row.id,
      token: by?.token ?? null,
      request: by?.request ?? null,
      data: what === "deleted" ? null : JSON.stringify(showOrphan(row)),
    },
  ]);
}

/** Retention of the record of deletions. Remains that are found after it has expired become orphans. */
export const retiredRows = { name: "deleted", table: "retired", key: ["kind", "name"], date: "date" } as const;
