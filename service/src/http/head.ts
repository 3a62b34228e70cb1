/**
 * Reads the head of a request: the used header fields, in one pass over the raw headers, and the grammars of their values. Pure, because
 * every request runs it.
 */
import { sessionCookie } from "@brume/api/session.ts";
import { ApiError } from "../base/error.ts";

const names = {
  authorization: "authorization",
  "x-request-id": "requestId",
  prefer: "prefer",
  "idempotency-key": "idempotencyKey",
  "if-match": "ifMatch",
  accept: "accept",
  "content-type": "contentType",
  "content-encoding": "contentEncoding",
  "content-length": "contentLength",
  "content-range": "contentRange",
  "transfer-encoding": "transferEncoding",
  "last-event-id": "lastEventId",
  expect: "expect",
  upgrade: "upgrade",
  cookie: "cookie",
  "x-brume-console": "console",
} as const;

type Field = (typeof names)[keyof typeof names];

/** The used header fields of a request, and the size of its head. */
export type Head = { readonly [F in Field]: string | undefined } & {
  /** Bytes of all header lines. */
  readonly size: number;
};

const fields: ReadonlyMap<string, Field> = new Map(Object.entries(names));
/** Lengths of the used names: most other names have another length, so they need no look-up. */
const lengths = new Set([...fields.keys()].map((name) => name.length));

/** Reads `rawHeaders` of node:http: alternating names and values. Repeated fields are joined with a comma (RFC 9110 section 5.2). */
export function readHead(raw: readonly string[]): Head {
  const head: { -readonly [K in keyof Head]: Head[K] } = {
    size: 0,
    authorization: undefined,
    requestId: undefined,
    prefer: undefined,
    idempotencyKey: undefined,
    ifMatch: undefined,
    accept: undefined,
    contentType: undefined,
    contentEncoding: undefined,
    contentLength: undefined,
    contentRange: undefined,
    transferEncoding: undefined,
    lastEventId: undefined,
    expect: undefined,
    upgrade: undefined,
    cookie: undefined,
    console: undefined,
  };
  for (let i = 0; i < raw.length; i += 2) {
    const name = raw[i] as string;
    const value = raw[i + 1] as string;
    head.size += name.length + value.length + ": \r\n".length;
    if (!lengths.has(name.length)) continue;
    const field = fields.get(name.toLowerCase());
    if (field === undefined) continue;
    const before = head[field];
    head[field] = before === undefined ? value : `${before}, ${value}`;
  }
  return head;
}

/** Creates the reader for one connection. It returns the same object for equal heads, because most clients send the same each time. */
export function createHeadReader(): (raw: readonly string[]) => Head {
  let last: readonly string[] = [];
  let head = readHead(last);
  return (raw) => {
    let same = raw.length === last.length;
    for (let i = 0; same && i < raw.length; i++) same = raw[i] === last[i];
    if (!same) {
      last = raw;
      head = readHead(raw);
    }
    return head;
  };
}

/** Returns true if a body follows the head. */
export function hasBody(head: Head): boolean {
  return head.transferEncoding !== undefined || (head.contentLength !== undefined && Number(head.contentLength) > 0);
}

/**
 * Throws `request_not_readable` or `transfer_coding_not_supported` for a body with an ambiguous length or an unknown coding (RFC 9112
 * section 6.1). A proxy could read another length, and its end would become the next request.
 */
export function requireFraming(head: Head): void {
  if (head.transferEncoding === undefined) return;
  if (isAmbiguous(head))
    throw new ApiError(
      "request_not_readable",
      "The request has a Content-Length and a Transfer-Encoding; send one of them.",
    );
  const codings = head.transferEncoding
    .toLowerCase()
    .split(",")
    .map((coding) => coding.trim());
  const shown = JSON.stringify(head.transferEncoding.slice(0, 64));
  if (codings.at(-1) !== "chunked")
    throw new ApiError("request_not_readable", `The last coding of Transfer-Encoding must be chunked, not ${shown}.`);
  if (codings.length > 1)
    throw new ApiError("transfer_coding_not_supported", `Transfer-Encoding must be chunked alone, not ${shown}.`);
}

/** Returns true for a body with two lengths, which a proxy may read as two requests (RFC 9112 section 6.3). Only a lenient parser accepts it. */
export function isAmbiguous(head: Head): boolean {
  return head.transferEncoding !== undefined && head.contentLength !== undefined;
}

/** Returns the token of `Authorization: Bearer …`; null: no header, or another scheme. */
export function readBearer(authorization: string | undefined): string | null {
  if (authorization === undefined || authorization.length < 7) return null;
  const scheme = authorization.slice(0, 7);
  if (scheme !== "Bearer " && scheme.toLowerCase() !== "bearer ") return null;
  return authorization.slice(7).trim();
}

/** First part of the credential of a session, which no token has. */
export const sessionPrefix = "session ";

/**
 * Returns what authenticates the request: a token, or `sessionPrefix` and the value of the session cookie. A cookie counts only together
 * with the header that pages of other origins cannot send, and only without `Authorization`. Null: neither exists.
 */
export function readCredential({ authorization, cookie, console }: Head): string | null {
  if (authorization !== undefined) return readBearer(authorization);
  if (console === undefined || cookie === undefined) return null;
  for (const part of cookie.split(/[;,]/)) {
    const [name = "", value = ""] = part.trim().split("=", 2);
    if (name === sessionCookie) return sessionPrefix + value;
  }
  return null;
}

/** Returns the request id of the client; null if it is not valid. */
export function readRequestId(sent: string | undefined): string | null {
  return sent !== undefined && /^[A-Za-z0-9._-]{1,128}$/.test(sent) ? sent : null;
}

/** The preferences of `Prefer`. */
export interface Preferences {
  readonly strict: boolean;
  /** Requested seconds; null: not requested. */
  readonly wait: number | null;
}

/** Longest granted wait in seconds. */
const longestWait = 60;

const noPreferences: Preferences = { strict: false, wait: null };

/** Reads `Prefer` (RFC 7240). The first of repeated preferences counts; unknown or malformed ones are ignored. */
export function readPreferences(prefer: string | undefined): Preferences {
  if (prefer === undefined) return noPreferences;
  const found = new Map<string, string>();
  for (const part of prefer.split(",")) {
    const [, name, value = ""] = /^\s*([!#$%&'*+.^_`|~\w-]+)\s*(?:=\s*("[^"]*"|[^\s;"]*)\s*)?(?:;|$)/.exec(part) ?? [];
    if (name === undefined || found.has(name.toLowerCase())) continue;
    found.set(name.toLowerCase(), value.replace(/^"(.*)"$/, "$1"));
  }
  const wait = found.get("wait");
  return {
    strict: found.get("handling")?.toLowerCase() === "strict",
    wait: wait !== undefined && /^\d{1,9}$/.test(wait) ? Math.min(Number(wait), longestWait) : null,
  };
}

/** Returns true if `Accept` contains `media` with a weight above 0. */
export function accepts(accept: string | undefined, media: string): boolean {
  if (accept === undefined || accept.length < media.length) return false;
  return accept.split(",").some((range) => {
    const [type = "", ...parameters] = range.split(";");
    return type.trim().toLowerCase() === media && !parameters.some((text) => /^\s*q\s*=\s*0(\.0*)?\s*$/i.test(text));
  });
}

/** Returns the key without outer quotes. Throws `idempotency_key_invalid`. */
export function readIdempotencyKey(sent: string): string {
  const key = sent.length >= 2 && sent.startsWith('"') && sent.endsWith('"') ? sent.slice(1, -1) : sent;
  if (!/^[\x21-\x7e]{1,255}$/.test(key))
    throw new ApiError("idempotency_key_invalid", "Idempotency-Key must be 1 to 255 visible ASCII characters.");
  return key;
}

/** Returns true if `If-Match` contains the current ETag (without quotes) or `*`, by strong comparison (RFC 9110 section 13.1.1). */
export function matchesTag(ifMatch: string, tag: string): boolean {
  return ifMatch.split(",").some((part) => part.trim() === "*" || part.trim() === `"${tag}"`);
}
