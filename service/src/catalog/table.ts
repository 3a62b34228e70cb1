/** SQL of SSH keys and images. `model/rules.ts` interprets the rows, `model/show.ts` converts them to the API form. */
import type { Insertable, Selectable, Updateable } from "kysely";
import { lock, prepare, type Reader, type Tx } from "../store/db.ts";
import type { ImageTable, SshKeyTable } from "../store/schema/catalog.ts";

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

/** Locks the operator's images until commit. */
export const lockOperatorImages = (tx: Tx): Promise<void> => lock(tx, "stock-images");
/** Locks one image until commit. */
export const lockImage = (tx: Tx, id: number): Promise<void> => lock(tx, `image:${id}`);

/** Images that a project sees: the operator's and its own. */
const visible = (db: Reader, project: number) =>
  db
    .selectFrom("image")
    .selectAll()
    .where((e) => e.or([e("project_id", "is", null), e("project_id", "=", project)]))
    .where("state", "!=", "Withdrawn");

const findVisible = prepare<{ project: number; id: number }>()((db, p) =>
  db
    .selectFrom("image")
    .selectAll()
    .where("id", "=", p("id"))
    .where((e) => e.or([e("project_id", "is", null), e("project_id", "=", p("project"))]))
    .where("state", "!=", "Withdrawn"),
);

export const findImage = (db: Reader, project: number, id: number): Promise<ImageRow | undefined> =>
  findVisible.first(db, { project, id });

export const listImages = (db: Reader, project: number): Promise<ImageRow[]> =>
  visible(db, project).orderBy("id").execute();

/** Counts the images of a project for its quota: without backups and failed images. */
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

/** Returns an image of any project, also a withdrawn one. */
export const findAnyImage = (db: Reader, id: number): Promise<ImageRow | undefined> =>
  db.selectFrom("image").selectAll().where("id", "=", id).executeTakeFirst();

/** Lists the operator's images, including withdrawn ones. */
export const listOperatorImages = (db: Reader): Promise<ImageRow[]> =>
  db.selectFrom("image").selectAll().where("project_id", "is", null).orderBy("id").execute();

export const insertImage = (tx: Tx, row: Insertable<ImageTable>): Promise<ImageRow> =>
  tx.insertInto("image").values(row).returningAll().executeTakeFirstOrThrow();

export const updateImage = (tx: Tx, id: number, change: Updateable<ImageTable>): Promise<ImageRow> =>
  tx.updateTable("image").set(change).where("id", "=", id).returningAll().executeTakeFirstOrThrow();

/** Stores the progress (percent) of an image that is being fetched. It never decreases, and ignores complete, failed and withdrawn images. */
export async function noteFetched(tx: Tx, id: number, progress: number): Promise<void> {
  await tx
    .updateTable("image")
    .set({ state: "New", progress })
    .where("id", "=", id)
    .where("state", "in", ["Available", "New"])
    .where("progress", "<=", progress)
    .execute();
}

/** Marks an operator's image whose fetch failed as `Available`, so that it can be fetched again. */
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

/** Rows of a page of `pageBackups`. */
export const backupsPerPage = 500;

/** The columns of a backup that decide how long it is kept. */
export type BackupAgeRow = Pick<ImageRow, "id" | "server_id" | "created">;

/** Returns these columns of up to `limit` backups of all projects after an id. */
export const pageBackups = prepare<{ after: number; limit: number }>()((db, p) =>
  db
    .selectFrom("image")
    .select(["id", "server_id", "created"])
    .where("type", "=", "Backup")
    .where("id", ">", p("after"))
    .orderBy("id")
    .limit(p("limit")),
);

/** Lists the backups of a server that failed. */
export const listFailedBackupsOf = (db: Reader, server: number): Promise<ImageRow[]> =>
  db
    .selectFrom("image")
    .selectAll()
    .where("server_id", "=", server)
    .where("type", "=", "Backup")
    .where("state", "=", "Failed")
    .orderBy("id")
    .execute();

/** Lists the images of all projects that wait for content. */
export const listUploads = (db: Reader): Promise<ImageRow[]> =>
  db.selectFrom("image").selectAll().where("upload_size", "is not", null).orderBy("id").execute();

/**
 * Stores that `received` bytes of an upload are on the host, which waits for more until `due`. Returns undefined if the image waits for no
 * content any more.
 */
export const noteReceived = (
  tx: Tx,
  { id, upload_size }: Pick<ImageRow, "id" | "upload_size">,
  received: number,
  due: number,
): Promise<ImageRow | undefined> =>
  tx
    .updateTable("image")
    .set({
      upload_received: received,
      upload_due: due,
      progress: Math.floor((99 * received) / (upload_size ?? received)),
    })
    .where("id", "=", id)
    .where("upload_size", "is not", null)
    .returningAll()
    .executeTakeFirst();
