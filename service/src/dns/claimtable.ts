/** SQL of claims, withdrawn domains and reserved names. Callers that write hold `lockNames`. */
import type { Insertable, Selectable, Updateable } from "kysely";
import type { Reader, Tx } from "../store/db.ts";
import type { Tables } from "../store/schema.ts";

type DomainClaimTable = Tables["domain_claim"];
type ReservedNameTable = Tables["reserved_name"];
type WithdrawnDomainTable = Tables["withdrawn_domain"];
export type ClaimRow = Selectable<DomainClaimTable>;
export type ReservedName = Selectable<ReservedNameTable>;
export type WithdrawnRow = Selectable<WithdrawnDomainTable>;

/** Finds a claim of any project. */
export const findAnyClaim = (db: Reader, id: number): Promise<ClaimRow | undefined> =>
  db.selectFrom("domain_claim").selectAll().where("id", "=", id).executeTakeFirst();

export const findClaim = (db: Reader, id: number, project: number): Promise<ClaimRow | undefined> =>
  db.selectFrom("domain_claim").selectAll().where("id", "=", id).where("project_id", "=", project).executeTakeFirst();

export const listClaims = (db: Reader, project: number): Promise<ClaimRow[]> =>
  db.selectFrom("domain_claim").selectAll().where("project_id", "=", project).orderBy("id").execute();

/** Lists the pending claims of a project. */
export const listPending = (db: Reader, project: number): Promise<ClaimRow[]> =>
  db.selectFrom("domain_claim").selectAll().where("project_id", "=", project).where("state", "=", "Pending").execute();

export const insertClaim = (tx: Tx, row: Insertable<DomainClaimTable>): Promise<ClaimRow> =>
  tx.insertInto("domain_claim").values(row).returningAll().executeTakeFirstOrThrow();

export const updateClaim = (tx: Tx, id: number, change: Updateable<DomainClaimTable>): Promise<ClaimRow> =>
  tx.updateTable("domain_claim").set(change).where("id", "=", id).returningAll().executeTakeFirstOrThrow();

export async function deleteClaim(tx: Tx, id: number): Promise<void> {
  await tx.deleteFrom("domain_claim").where("id", "=", id).execute();
}

/** Pruning rules of ended claims and withdrawn domains. */
export const pastClaims = [
  { name: "claim", table: "domain_claim", key: ["id"], date: "created", where: "state <> 'Pending'" },
  { name: "withdrawn", table: "withdrawn_domain", key: ["id"], date: "date" },
] as const;

/** Lists withdrawn domains without their zone files, which may be large. */
export const listWithdrawn = (db: Reader, project: number): Promise<Omit<WithdrawnRow, "zone_file">[]> =>
  db
    .selectFrom("withdrawn_domain")
    .select(["id", "project_id", "name", "ascii", "date", "record_count", "reason", "labels"])
    .where("project_id", "=", project)
    .orderBy("id")
    .execute();

export const findWithdrawn = (db: Reader, id: number, project: number): Promise<WithdrawnRow | undefined> =>
  db
    .selectFrom("withdrawn_domain")
    .selectAll()
    .where("id", "=", id)
    .where("project_id", "=", project)
    .executeTakeFirst();

export async function insertWithdrawn(tx: Tx, row: Insertable<WithdrawnDomainTable>): Promise<void> {
  await tx.insertInto("withdrawn_domain").values(row).execute();
}

export async function deleteWithdrawn(tx: Tx, id: number): Promise<void> {
  await tx.deleteFrom("withdrawn_domain").where("id", "=", id).execute();
}

export const listReserved = (db: Reader): Promise<ReservedName[]> =>
  db.selectFrom("reserved_name").selectAll().orderBy("id").execute();

/** Lists the reservations of exactly these names. */
export const listReservedAt = (db: Reader, names: readonly string[]): Promise<ReservedName[]> =>
  db.selectFrom("reserved_name").selectAll().where("ascii", "in", names).execute();

export const findReserved = (db: Reader, id: number): Promise<ReservedName | undefined> =>
  db.selectFrom("reserved_name").selectAll().where("id", "=", id).executeTakeFirst();

export const insertReserved = (tx: Tx, row: Insertable<ReservedNameTable>): Promise<ReservedName> =>
  tx.insertInto("reserved_name").values(row).returningAll().executeTakeFirstOrThrow();

export async function deleteReserved(tx: Tx, id: number): Promise<void> {
  await tx.deleteFrom("reserved_name").where("id", "=", id).execute();
}
