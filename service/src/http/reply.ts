/**
 * Answers on the wire: the headers that every answer has, problem bodies, and the length that is always said. A reply is
 * plain data until `send`, so that the pipeline can return it, store it or throw it away.
 */
import { type IncomingMessage, type ServerResponse, STATUS_CODES } from "node:http";
import { describeProblem } from "@brume/api/errors.ts";
import { ApiError } from "../base/error.ts";
import { StorageError } from "../store/db.ts";

export interface Reply {
  readonly status: number;
  /** Null: an empty body. */
  readonly type: string | null;
  readonly body: string;
  /** Bytes of the body, where they have been counted. */
  readonly length?: number;
  /** Names and values in turn, beside the headers that every answer has. */
  readonly headers: readonly string[];
}

export const json = "application/json; charset=utf-8";

const exposed =
  "ETag, Link, X-Total-Count, X-Request-Id, Retry-After, RateLimit, RateLimit-Policy, Preference-Applied, Idempotency-Replayed, X-Dry-Run";

export function success(type: string | null, body: string, headers: readonly string[] = []): Reply {
  return { status: 200, type, body, headers };
}

/** `OPTIONS`: what may be done here, also by a page of another origin (docs/spec.md#browsers). */
export function preflight(methods: readonly string[]): Reply {
  const allow = methods.join(", ");
  return success(null, "", [
    "Allow",
    allow,
    "Access-Control-Allow-Methods",
    allow,
    "Access-Control-Allow-Headers",
    "Authorization, Content-Type, Idempotency-Key, If-Match, Prefer, Last-Event-ID, X-Request-Id",
    "Access-Control-Max-Age",
    "86400",
  ]);
}

/** Seconds after which it is worth trying again, where the fault itself does not say. */
const defaultRetry: Readonly<Record<number, number>> = { 429: 1, 503: 5 };

/** The fault as the caller reads it (docs/spec.md#errors). */
export function errorReply(fault: ApiError, requestId: string, headers: readonly string[] = []): Reply {
  const { status, code } = fault;
  const more = [...headers];
  const retry = fault.retryAfter ?? defaultRetry[status];
  if (retry !== undefined) more.push("Retry-After", String(Math.max(1, Math.ceil(retry))));
  if (status === 401)
    more.push("WWW-Authenticate", `Bearer realm="brume"${code === "token_missing" ? "" : ', error="invalid_token"'}`);
  const body = JSON.stringify(describeProblem(code, fault.message, requestId, fault.errors));
  return { status, type: "application/problem+json", body, headers: more };
}

/** What the caller is told of anything thrown; what only we should know stays here. */
export function toApiError(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  if (error instanceof StorageError)
    return new ApiError(
      "storage_unavailable",
      "The database cannot work at the moment. Ask again, with the same Idempotency-Key if there was one.",
    );
  return new ApiError("internal", "The service failed on this request and has written down why.");
}

/** All headers of an answer but `Date`, `Connection` and its length: names and values in turn. */
export function head(requestId: string, type: string | null): string[] {
  const list = [
    "X-Request-Id",
    requestId,
    "Cache-Control",
    "no-store",
    "X-Content-Type-Options",
    "nosniff",
    "Access-Control-Allow-Origin",
    "*",
    "Access-Control-Expose-Headers",
    exposed,
  ];
  if (type !== null) list.push("Content-Type", type);
  return list;
}

/** Sends `reply`, with `more` headers, as the one answer to a request; `HEAD` gets the headers only. */
export function send(
  request: IncomingMessage,
  response: ServerResponse,
  requestId: string,
  reply: Reply,
  more: readonly string[],
): void {
  const list = head(requestId, reply.type);
  const length = reply.length ?? Buffer.byteLength(reply.body);
  list.push("Content-Length", String(length));
  for (const text of reply.headers) list.push(text);
  for (const text of more) list.push(text);
  response.writeHead(reply.status, list);
  if (request.method === "HEAD" || reply.body === "") response.end();
  // As many bytes as characters: it is ASCII, and need not be encoded.
  else response.end(reply.body, length === reply.body.length ? "latin1" : "utf8");
}

/** The same as text, for a connection whose request never became one (broken syntax, too large, too slow). It says that it closes. */
export function print(requestId: string, reply: Reply, now: number): string {
  const list = head(requestId, reply.type);
  list.push("Content-Length", String(Buffer.byteLength(reply.body)), ...reply.headers);
  list.push("Date", new Date(now).toUTCString(), "Connection", "close");
  let text = `HTTP/1.1 ${reply.status} ${STATUS_CODES[reply.status]}\r\n`;
  for (let i = 0; i < list.length; i += 2) text += `${list[i]}: ${list[i + 1]}\r\n`;
  return `${text}\r\n${reply.body}`;
}
