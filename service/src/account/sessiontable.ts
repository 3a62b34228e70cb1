/** SQL of sessions of browsers. */
import type { Insertable, Selectable } from "kysely";
import { prepare, type Reader, type Tx } from "../store/db.ts";
import type { SessionTable } from "../store/schema/account.ts";

/** A session with the name and project of its token. */
export type SessionRow = Selectable<SessionTable> & { readonly token_name: string; readonly project_id: number };

/** The token of the session with this hash, its project and the domain it is restricted to, as one row: what authentication needs. */
export const findTokenBySession = prepare<{ hash: string }>()((db, p) =>
  db
    .selectFrom("session")
    .innerJoin("token", "token.id", "session.token_id")
    .innerJoin("project", "project.id", "token.project_id")
    .leftJoin("domain", "domain.id", "token.domain_id")
    .selectAll("token")
    .select([
      "project.is_blocked",
      "domain.ascii as domain",
      "session.id as session_id",
      "session.expires_at as session_expires",
    ])
    .where("session.hash", "=", p("hash")),
);

const withToken = (db: Reader) =>
  db
    .selectFrom("session")
    .innerJoin("token", "token.id", "session.token_id")
    .selectAll("session")
    .select(["token.name as token_name", "token.project_id"]);

/** Lists the sessions of a project, or of one of its tokens, that have not expired. */
export const listSessions = (
  db: Reader,
  of: { readonly project: number } | { readonly token: number },
  now: number,
): Promise<SessionRow[]> =>
  withToken(db)
    .where((e) => ("token" in of ? e("session.token_id", "=", of.token) : e("token.project_id", "=", of.project)))
    .where("session.expires_at", ">", now)
    .orderBy("session.id")
    .execute();

export const findSession = (db: Reader, id: number): Promise<SessionRow | undefined> =>
  withToken(db).where("session.id", "=", id).executeTakeFirst();

export const insertSession = (tx: Tx, row: Insertable<SessionTable>): Promise<Selectable<SessionTable>> =>
  tx.insertInto("session").values(row).returningAll().executeTakeFirstOrThrow();

export async function deleteSession(tx: Tx, id: number): Promise<void> {
  await tx.deleteFrom("session").where("id", "=", id).execute();
}

/** Deletes the expired sessions of all tokens. */
export async function deleteExpired(tx: Tx, now: number): Promise<void> {
  await tx.deleteFrom("session").where("expires_at", "<=", now).execute();
}
