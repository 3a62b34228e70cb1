/** Keys and images in SQL. Rows as they are stored; what they mean is in `rules`, what they look like in `show`. */
import type { Insertable, Selectable, Updateable } from "kysely";
import { lock, prepare, type Reader, type Tx } from "../store/db.ts";
import type { ImageTable, SshKeyTable } from "../store/schema.ts";

export type SshKeyRow = Selectable<SshKeyTable>;
export type ImageRow = Selectable<ImageTable>;

const findKey = prepare<{ id: number; project: number }>()((db, p) =>
  db.selectFrom("sshkey").selectAll().where("id", "=", p("id")).where("project_id", "=", p("project")),
);

export const findSshKey = (db: Reader, project: number, id: number): Promise<SshKeyRow | undefined> =>
  findKey.first(db, { id, project });

export const findSshKeyByTitle = (db: Reader, project: number, title: string): Promise<SshKeyRow | undefined> =>
  db.selectFrom("sshkey").selectAll().where("project_id", "=", project).where("title", "=", title).executeTakeFirst();

const listKeys = prepare<{ project: number }>()((db, p) =>
  db.selectFrom("sshkey").selectAll().where("project_id", "=", p("project")).orderBy("id"),
);

export const listSshKeys = (db: Reader, project: number): Promise<SshKeyRow[]> => listKeys.all(db, { project });

export async function countSshKeys(db: Reader, project: number): Promise<number> {
  const row = await db
    .selectFrom("sshkey")
    .select((e) => e.fn.countAll<number>().as("count"))
    .where("project_id", "=", project)
    .executeTakeFirstOrThrow();
  return row.count;
}

export const insertSshKey = (tx: Tx, row: Insertable<SshKeyTable>): Promise<SshKeyRow> =>
  tx.insertInto("sshkey").values(row).returningAll().executeTakeFirstOrThrow();

export async function deleteSshKey(tx: Tx, id: number): Promise<void> {
  await tx.deleteFrom("sshkey").where("id", "=", id).execute();
}

/** Orders all that change the stock. */
export const lockOperatorImages = (tx: Tx): Promise<void> => lock(tx, "stock-images");
/** Orders all that change an image. */
export const lockImage = (tx: Tx, id: number): Promise<void> => lock(tx, `image:${id}`);

/** What a project sees: the operator's images and its own. */
const visible = (db: Reader, project: number) =>
  db
    .selectFrom("image")
    .selectAll()
    .where((e) => e.or([e("project_id", "is", null), e("project_id", "=", project)]))
    .where("state", "!=", "Withdrawn");

export const findImage = (db: Reader, project: number, id: number): Promise<ImageRow | undefined> =>
  visible(db, project).where("id", "=", id).executeTakeFirst();

export const listImages = (db: Reader, project: number): Promise<ImageRow[]> =>
  visible(db, project).orderBy("id").execute();

/** Those that the project made; backups count in no quota, and what failed holds nothing. */
export async function countImages(db: Reader, project: number): Promise<number> {
  const row = await db
    .selectFrom("image")
    .select((e) => e.fn.countAll<number>().as("count"))
    .where("project_id", "=", project)
    .where("type", "=", "Client")
    .where("state", "!=", "Failed")
    .executeTakeFirstOrThrow();
  return row.count;
}

/** Withdrawn ones too. */
export const listOperatorImages = (db: Reader): Promise<ImageRow[]> =>
  db.selectFrom("image").selectAll().where("project_id", "is", null).orderBy("id").execute();

export const insertImage = (tx: Tx, row: Insertable<ImageTable>): Promise<ImageRow> =>
  tx.insertInto("image").values(row).returningAll().executeTakeFirstOrThrow();

export const updateImage = (tx: Tx, id: number, change: Updateable<ImageTable>): Promise<ImageRow> =>
  tx.updateTable("image").set(change).where("id", "=", id).returningAll().executeTakeFirstOrThrow();

/** How much of an image is here while it is fetched. Never falls; changes nothing of one that is complete, failed or withdrawn. */
export async function noteFetched(tx: Tx, id: number, progress: number): Promise<void> {
  await tx
    .updateTable("image")
    .set({ state: "New", progress })
    .where("id", "=", id)
    .where("state", "in", ["Available", "New"])
    .where("progress", "<=", progress)
    .execute();
}

/** An operator's image whose fetch failed can be fetched again. */
export async function makeAvailable(tx: Tx, id: number): Promise<void> {
  await tx
    .updateTable("image")
    .set({ state: "Available", progress: 0 })
    .where("id", "=", id)
    .where("project_id", "is", null)
    .where("state", "=", "New")
    .execute();
}

export async function deleteImage(tx: Tx, id: number): Promise<void> {
  await tx.deleteFrom("image").where("id", "=", id).execute();
}

/** Of all projects. */
export const listBackups = (db: Reader): Promise<ImageRow[]> =>
  db.selectFrom("image").selectAll().where("type", "=", "Backup").orderBy("id").execute();
