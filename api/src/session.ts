/**
 * Sessions of browsers: a token is exchanged for a cookie that scripts cannot read. A session has the rights of its token and ends with it.
 * Requests with the cookie need the header `sessionHeader`, which pages of other origins cannot send.
 */
import type { Static } from "typebox";
import { boolean, date, id, list, listQuery, name, nullable, object, optional, optionalId, text } from "./common.ts";
import { operations } from "./operation.ts";

/** Name of the session cookie. */
export const sessionCookie = "brume_session";
/** Header that every request with the cookie has, with the value `1`. */
export const sessionHeader = "X-Brume-Console";

/** A session, without its secret. */
export const Session = object("Session", "The session of a browser, without its secret.", {
  ID: id({ description: "Id of the session." }),
  Name: text({ description: "Name that the client gave, such as `Firefox on Linux`; else empty." }),
  TokenID: id({ description: "Token whose rights the session has." }),
  TokenName: text({ description: "Name of this token." }),
  ProjectID: id({ description: "Project whose objects the session sees." }),
  Address: nullable(text({ description: "Address of the client that created the session. `null`: it is not known." })),
  DateCreate: date({ description: "When the session was created." }),
  ExpiresAt: date({ description: "When the session ends." }),
  IsCurrent: boolean({ description: "The request belongs to this session." }),
});
/** TypeScript type of this schema. */
export type Session = Static<typeof Session>;

/** Operations on sessions. */
export const sessionOperations = operations({
  listSessions: {
    method: "GET",
    path: "/session",
    access: "any",
    observes: true,
    summary: "List the sessions of browsers",
    description:
      "The sessions of the own token; with `account:admin` those of all tokens of a project. Expired sessions are not listed.",
    query: listQuery({
      project: optionalId({
        description: "With `account:admin`: list the sessions of this project. Default: the project of the token.",
      }),
    }),
    answer: list(Session),
    list: true,
    errors: ["project_not_found"],
  },
  createSession: {
    method: "POST",
    path: "/session",
    access: "any",
    signsIn: true,
    summary: "Exchange the token for the session of a browser",
    description:
      "The response sets the cookie `brume_session`, which scripts cannot read. Requests with the cookie instead of a token need the header `X-Brume-Console: 1`. A session lasts seven days, has the rights of its token and ends with it. A token has at most 20 sessions; a further one ends the oldest.",
    body: object("CreateSessionRequest", "A new session.", {
      Name: optional(name({ description: "Name of the session, such as `Firefox on Linux`." })),
    }),
    answer: Session,
    allowedWhenBlocked: true,
  },
  deleteOwnSession: {
    method: "DELETE",
    path: "/session",
    access: "any",
    summary: "End the session of this request",
    description: "The response deletes the cookie.",
    answer: null,
    allowedWhenBlocked: true,
    errors: ["session_not_found"],
  },
  deleteSession: {
    method: "DELETE",
    path: "/session/{id}",
    access: "any",
    summary: "End a session",
    description: "A session of the own token; with `account:admin` any session. Its requests are rejected at once.",
    params: { id: "session_not_found" },
    answer: null,
    allowedWhenBlocked: true,
  },
});
