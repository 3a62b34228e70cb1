/**
 * Creates and sends HTTP responses: the headers of every response, `Content-Length`, and error bodies. A reply is plain data until
 * `send`, so the pipeline can return it, store it or drop it.
 */
import { type IncomingMessage, type ServerResponse, STATUS_CODES } from "node:http";
import { describeProblem } from "@brume/api/errors.ts";
import { ApiError } from "../base/error.ts";
import type { Pieces } from "../base/pieces.ts";
import { StorageError } from "../store/db.ts";
import { type FileBody, isLongText, sendTexts } from "./streambody.ts";

/** A response before it is sent. */
export interface Reply {
  readonly status: number;
  /** Null: an empty body. */
  readonly type: string | null;
  readonly body: string;
  /** A large body, instead of `body`. */
  readonly file?: FileBody;
  /** A long body in pieces, instead of `body`. */
  readonly pieces?: Pieces;
  /** Bytes of the body, if they are known. */
  readonly length?: number;
  /** A page or file for browsers, which has none of the headers for API clients. */
  readonly isPage?: boolean;
  /** Alternating names and values, in addition to the headers of every response. */
  readonly headers: readonly string[];
}

/** Content type of JSON responses. */
export const json = "application/json; charset=utf-8";

const exposed =
  "ETag, Link, X-Total-Count, X-Request-Id, Retry-After, RateLimit, RateLimit-Policy, Preference-Applied, Idempotency-Replayed, X-Dry-Run, X-Simulated";

/** Creates a response with status 200. */
export function success(type: string | null, body: string, headers: readonly string[] = []): Reply {
  return { status: 200, type, body, headers };
}

/** Creates the response to `OPTIONS`: the allowed methods and headers, also for pages of other origins (docs/spec.md#browsers). */
export function preflight(methods: readonly string[]): Reply {
  const allow = methods.join(", ");
  return success(null, "", [
    "Allow",
    allow,
    "Access-Control-Allow-Methods",
    allow,
    "Access-Control-Allow-Headers",
    "Authorization, Content-Range, Content-Type, Idempotency-Key, If-Match, Prefer, Last-Event-ID, X-Request-Id",
    "Access-Control-Max-Age",
    "86400",
  ]);
}

/** `Retry-After` in seconds by status, for errors without a value of their own. */
const defaultRetry: Readonly<Record<number, number>> = { 429: 1, 503: 5 };

/** Creates the response of an error (docs/spec.md#errors). */
export function errorReply(error: ApiError, requestId: string, headers: readonly string[] = []): Reply {
  const { status, code } = error;
  const more = [...headers];
  const retry = error.retryAfter ?? defaultRetry[status];
  if (retry !== undefined) more.push("Retry-After", String(Math.max(1, Math.ceil(retry))));
  if (status === 401)
    more.push("WWW-Authenticate", `Bearer realm="brume"${code === "token_missing" ? "" : ', error="invalid_token"'}`);
  const body = JSON.stringify(describeProblem(code, error.message, requestId, error.errors));
  return { status, type: "application/problem+json", body, headers: more };
}

/** Converts any thrown value to the error that the client gets. Details of unexpected errors are not included. */
export function toApiError(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  if (error instanceof StorageError) {
    const reason = error.isFull
      ? "The disk of the database is full: the operator must free some space. Reads still work."
      : "The database is not available.";
    return new ApiError(
      "storage_unavailable",
      `${reason} Repeat the request, with the same Idempotency-Key if it had one.`,
    );
  }
  return new ApiError(
    "internal",
    "The request failed in the service. The log contains the cause under the id of this request.",
  );
}

/** Returns the headers of every response, except `Date`, `Connection` and `Content-Length`, as alternating names and values. */
export function head(requestId: string, type: string | null, isPage = false): string[] {
  if (isPage) {
    const list = ["X-Request-Id", requestId, "X-Content-Type-Options", "nosniff"];
    if (type !== null) list.push("Content-Type", type);
    return list;
  }
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

/**
 * Sends `reply`, with the headers `more`, as the response to a request. `HEAD` gets only the headers. Returns a promise if a
 * large body is still to be sent.
 */
export function send(
  request: IncomingMessage,
  response: ServerResponse,
  requestId: string,
  reply: Reply,
  more: readonly string[],
): Promise<void> | null {
  const list = head(requestId, reply.type, reply.isPage);
  const { file, pieces } = reply;
  const length = file?.bytes ?? pieces?.bytes ?? reply.length ?? Buffer.byteLength(reply.body);
  list.push("Content-Length", String(length));
  for (const text of reply.headers) list.push(text);
  for (const text of more) list.push(text);
  response.writeHead(reply.status, list);
  if (file !== undefined && request.method !== "HEAD") return file.send(response);
  void file?.close();
  if (pieces !== undefined && request.method !== "HEAD") return sendTexts(response, pieces.texts, "utf8");
  if (request.method === "HEAD" || reply.body === "") response.end();
  else {
    // As many bytes as characters: the body is ASCII, and `latin1` is the cheaper encoding.
    const encoding = length === reply.body.length ? "latin1" : "utf8";
    if (isLongText(reply.body)) return sendTexts(response, [reply.body], encoding);
    response.end(reply.body, encoding);
  }
  return null;
}

/**
 * Returns a response as text, with `Connection: close`, for a connection on which node:http could not parse a request. `now` is in ms
 * since 1970.
 */
export function print(requestId: string, reply: Reply, now: number): string {
  const list = head(requestId, reply.type);
  list.push("Content-Length", String(Buffer.byteLength(reply.body)), ...reply.headers);
  list.push("Date", new Date(now).toUTCString(), "Connection", "close");
  let text = `HTTP/1.1 ${reply.status} ${STATUS_CODES[reply.status]}\r\n`;
  for (let i = 0; i < list.length; i += 2) text += `${list[i]}: ${list[i + 1]}\r\n`;
  return `${text}\r\n${reply.body}`;
}
