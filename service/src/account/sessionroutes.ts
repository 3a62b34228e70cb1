/** Route handlers for the sessions of browsers. The database contains only hashes of their cookies. */
import { formatDate } from "@brume/api/common.ts";
import { grants } from "@brume/api/operation.ts";
import { type Session, sessionCookie } from "@brume/api/session.ts";
import type { Clock } from "../base/clock.ts";
import { ApiError } from "../base/error.ts";
import { createTokenValue, hashToken } from "../base/secret.ts";
import type { Caller, ChangeResult, Handlers, Request } from "../http/handler.ts";
import { takePage } from "../http/list.ts";
import { lock, type Tx } from "../store/db.ts";
import type { Authenticator } from "./authenticator.ts";
import * as table from "./sessiontable.ts";
import { findProject, findToken, lockAdmins } from "./table.ts";

/** Life of a session in milliseconds. */
const sessionLife = 7 * 86_400_000;
/** Maximum number of sessions of one token. */
const mostSessions = 20;

const isAdmin = (caller: Caller): boolean => grants(caller.scopes, "account:admin");

const show = (row: table.SessionRow, caller: Caller): Session => ({
  ID: row.id,
  Name: row.name,
  TokenID: row.token_id,
  TokenName: row.token_name,
  ProjectID: row.project_id,
  Address: row.address,
  DateCreate: formatDate(row.created),
  ExpiresAt: formatDate(row.expires_at),
  IsCurrent: row.id === caller.sessionId,
});

/** Returns the header that sets the cookie for `seconds`. Over TLS the browser sends it only over TLS. */
const setCookie = (request: Pick<Request, "origin">, value: string, seconds: number): string[] => [
  "Set-Cookie",
  `${sessionCookie}=${value}; Path=/; Max-Age=${seconds}; HttpOnly; SameSite=Strict${
    request.origin().startsWith("https:") ? "; Secure" : ""
  }`,
];

type Names = "listSessions" | "createSession" | "deleteOwnSession" | "deleteSession";

export function sessionRoutes(clock: Clock, authenticator: Authenticator): Handlers<Names> {
  /** Deletes the session, and clears the cache of the authenticator after the commit. */
  async function end(tx: Tx, row: table.SessionRow, caller: Caller): Promise<ChangeResult<undefined>> {
    await table.deleteSession(tx, row.id);
    return {
      answer: undefined,
      changes: [
        {
          type: "session.deleted",
          id: row.id,
          parent: null,
          project: row.project_id,
          before: { ...show(row, caller), IsCurrent: false },
          after: null,
        },
      ],
      refresh: async () => {
        authenticator.forget();
        return undefined;
      },
    };
  }

  return {
    listSessions: {
      async list({ query, caller }, db) {
        const project = query.project ?? caller.projectId;
        if (!isAdmin(caller) && project !== caller.projectId)
          throw new ApiError("project_not_found", `There is no project ${project}.`);
        if ((await findProject.first(db, { id: project })) === undefined)
          throw new ApiError("project_not_found", `There is no project ${project}.`);
        const of = isAdmin(caller) ? { project } : { token: caller.tokenId };
        const page = takePage(await table.listSessions(db, of, clock.now()), query, { id: (row) => row.id });
        return { ...page, items: page.items.map((row) => show(row, caller)) };
      },
    },
    createSession: {
      async change(request, tx) {
        const { body, caller, dryRun } = request;
        if (caller.sessionId !== undefined)
          throw new ApiError("token_missing", "A session cannot create another one: send the token.");
        const now = clock.now();
        await lock(tx, `sessions:${caller.tokenId}`);
        // The token may have been deleted since it was authenticated.
        await lockAdmins(tx);
        if ((await findToken.first(tx, { id: caller.tokenId })) === undefined)
          throw new ApiError("token_invalid", "The token has been deleted.");
        await table.deleteExpired(tx, now);
        const others = await table.listSessions(tx, { token: caller.tokenId }, now);
        for (const { id } of others.slice(0, Math.max(0, others.length - mostSessions + 1)))
          await table.deleteSession(tx, id);
        const value = createTokenValue();
        const row = await table.insertSession(tx, {
          token_id: caller.tokenId,
          name: body.Name ?? "",
          hash: hashToken(value),
          address: request.address,
          created: now,
          expires_at: Math.min(now + sessionLife, caller.expiresAt ?? Infinity),
        });
        const shown = show({ ...row, token_name: caller.tokenName, project_id: caller.projectId }, caller);
        return {
          answer: { ...shown, ...(dryRun && { ID: 0 }), IsCurrent: true },
          ...(!dryRun && { headers: setCookie(request, value, Math.floor((row.expires_at - now) / 1000)) }),
          changes: [{ type: "session.created", id: row.id, parent: null, before: null, after: shown }],
          // Sessions that made place for this one are cached.
          refresh: async () => {
            authenticator.forget();
            return undefined;
          },
        };
      },
    },
    deleteOwnSession: {
      async change(request, tx) {
        const { caller } = request;
        const row = caller.sessionId === undefined ? undefined : await table.findSession(tx, caller.sessionId);
        if (row === undefined) throw new ApiError("session_not_found", "The request has a token, and no session.");
        return { ...(await end(tx, row, caller)), headers: setCookie(request, "", 0) };
      },
    },
    deleteSession: {
      async change({ params, caller }, tx) {
        const row = await table.findSession(tx, params.id);
        if (row === undefined || (row.token_id !== caller.tokenId && !isAdmin(caller)))
          throw new ApiError("session_not_found", `There is no session ${params.id}.`);
        return end(tx, row, caller);
      },
    },
  };
}
