/**
 * Processes every request in the order of checks that the API specifies (docs/spec.md#order-of-checks): the first check that fails
 * decides the response. `respond` contains this order from top to bottom; the other modules of this folder implement the single checks.
 */
import type { FieldError } from "@brume/api/errors.ts";
import { grants } from "@brume/api/operation.ts";
import { steadyOf } from "../base/clock.ts";
import { ApiError, invalidFields } from "../base/error.ts";
import { runAtOnce, runInTurns, turn } from "../base/turn.ts";
import type { Reader } from "../store/db.ts";
import { type Bound, readIds } from "./bind.ts";
import { auditRow, type ChangeContext, executeChange } from "./change.ts";
import { openContent } from "./content.ts";
import { type Exchange, originOf } from "./exchange.ts";
import type { Streams } from "./feed.ts";
import type { AuditRow, Caller, ContentPosition, Request } from "./handler.ts";
import {
  accepts,
  type Head,
  hasBody,
  matchesTag,
  readCredential,
  readIdempotencyKey,
  readPreferences,
  requireFraming,
} from "./head.ts";
import { type Claim, fingerprint, type IdempotencyKeys, type StoredResponse } from "./idempotency.ts";
import type { Limiter } from "./limit.ts";
import type { Pages } from "./pages.ts";
import type { Route } from "./path.ts";
import { createTurnEnd, type PayloadLimits, receive, tooLarge } from "./payload.ts";
import type { NoteRate } from "./rateheaders.ts";
import { decodeInTurns } from "./read/body.ts";
import { readInTurns } from "./read/fields.ts";
import { queryError, readQuery } from "./read/query.ts";
import { type ReplayContext, repeat, repeatLater } from "./replay.ts";
import { preflight, type Reply } from "./reply.ts";
import type { CachedResponse, ResponseCache } from "./responsecache.ts";
import { showPage, showRead } from "./show.ts";

/** Limits of the size and time of a request. */
export interface Limits extends PayloadLimits {
  /** Bytes of all header lines. */
  readonly headers: number;
  /** Bytes of the request target. */
  readonly target: number;
}

/** Dependencies of the pipeline. */
export interface PipelineContext extends ChangeContext, ReplayContext {
  readonly limits: Limits;
  readonly route: (target: string) => Route;
  readonly operations: ReadonlyMap<string, Bound>;
  readonly authenticate: (value: string, address: string) => Caller | Promise<Caller>;
  readonly limiter: Limiter;
  /** Counts an attempt to sign in. Throws `rate_limited` if there were too many from the network of the address. */
  readonly limitSignIns: (address: string, now: number) => void;
  readonly keys: IdempotencyKeys;
  readonly streams: Streams;
  readonly cache: ResponseCache;
  /** Returns why the service does not respond now (starting, stopping); null: it is ready. */
  readonly unready: () => string | null;
  /** Adds the row of a request that changed nothing to the audit. */
  readonly noteAudit: (row: AuditRow) => Promise<void>;
  readonly noteRate: NoteRate;
  /** Pages for browsers, the first that has one responds. */
  readonly pages: readonly Pages[];
}

type Known = Extract<Route, { found: true }>;

const everything = ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS"];

/**
 * Returns the response to a request, or null if an event stream has started. Throws the error that decides the response. A cached
 * response is returned without a promise.
 */
export type Respond = (exchange: Exchange) => Reply | Promise<Reply | null>;

/** Bytes of a body from which on its reading and its validation can each take a turn of the event loop. */
const longBody = 65_536;

/** Creates the function that processes requests. */
export function createPipeline(context: PipelineContext): Respond {
  const { limits, store } = context;
  const turnEnd = createTurnEnd();

  async function respond(exchange: Exchange): Promise<Reply | null> {
    const { head } = exchange;
    const method = exchange.request.method ?? "";

    // 1. The head is within its limits and readable, and Content-Length is within the limit of the body.
    const route = readTarget(context, exchange);
    const bound = route === null || route === "*" ? undefined : findOperation(context, route, method);
    const hasContent = bound?.operation.content === true;
    const most = hasContent ? Number.POSITIVE_INFINITY : (bound?.operation.bodyBytes ?? limits.body);
    if (Number(head.contentLength) > most) throw tooLarge(most);
    requireFraming(head);

    // 2. The service is ready.
    const unready = context.unready();
    if (unready !== null && bound?.alwaysAnswers !== true) throw new ApiError("not_ready", unready);

    // 3. The path is known.
    if (route === null) throw new ApiError("path_not_found", "No operation has this path; /docs lists all paths.");
    // Responses that need no token still show the rate limit of a token that is sent.
    if (method === "OPTIONS" || (bound?.operation.access === "open" && !bound.alwaysAnswers))
      await context.noteRate(exchange);
    if (route === "*") return preflight(everything);

    // 4. The method is allowed there.
    if (method === "OPTIONS") return preflight(route.allow);
    if (bound === undefined) {
      exchange.headers.push("Allow", route.allow.join(", "));
      throw new ApiError("method_not_allowed", `This path supports ${route.allow.join(", ")}.`);
    }
    exchange.bound = bound;
    exchange.parameters = route.params;

    // Preferences and query are parsed here and validated in step 10: a dry run leaves no trace, even if it fails before.
    const { strict, wait } = readPreferences(head.prefer);
    if (strict) exchange.applied = "handling=strict";
    const query = readQuery(bound.operation.query, route.query, {
      strict,
      change: bound.fields !== null || bound.change,
    });
    exchange.dryRun = query.dryRun;

    // 5. The token is valid. An open operation needs none and skips steps 6 and 7. Attempts to sign in are limited first.
    if (bound.operation.signsIn === true) context.limitSignIns(exchange.address, steadyOf(context.clock));
    const token = readCredential(head);
    const known = bound.operation.access === "open" ? anonymous : identify(context, exchange, token);
    const caller = known instanceof Promise ? await known : known;
    if (caller !== anonymous) exchange.caller = caller;

    // 6. The rate limit of the token allows the request.
    if (caller.rateLimit !== null)
      context.limiter.take(caller.tokenId, caller.rateLimit, steadyOf(context.clock), bound.counted, exchange.headers);

    // 7. The token has the scope, and its project is not blocked.
    if (bound.operation.access !== "open") requireAccess(bound, caller, exchange);

    // 8. The body is read and decoded. The handler reads content, which can have any length.
    const content = hasContent ? openContent(exchange, limits.bodyTime, context.stop) : null;
    const bytes =
      content === null && hasBody(head)
        ? await receive(exchange, { ...limits, body: most }, turnEnd, bound.fields !== null)
        : noBytes;
    const isLong = bytes.length > longBody;
    const reading = readBody(bound, bytes, head, strict);
    const read = isLong ? await runInTurns(reading) : runAtOnce(reading);

    // 9. The idempotency key is valid, and this request is the first that uses it.
    const keyed = bound.change && head.idempotencyKey !== undefined;
    const claim = keyed ? await claimKey(context, exchange, bound, caller, route, content?.position ?? read) : null;
    try {
      // 10. Query and fields are valid.
      const preparing = !isLong || read.value === undefined ? undefined : bound.handler.prepareCheck?.(read.value);
      if (preparing !== undefined) await runInTurns(preparing);
      const elementErrors = requireValidFields(bound, query.errors, read, strict);
      if (isLong && turn.isOver()) await turn.next();

      // 11. The ids of the path are valid. The handler first checks that the objects exist and that If-Match matches.
      const request: Request = {
        params: readIds(bound, route.params),
        query: query.value,
        body: read.value as never,
        elementErrors,
        caller,
        requestId: exchange.id,
        address: exchange.address,
        dryRun: query.dryRun,
        content,
        otherMedia: bound.otherMedia !== null && accepts(head.accept, bound.otherMedia),
        origin: () => originOf(exchange.request),
        expect: head.ifMatch === undefined ? expectNothing : expectTag(exchange, head.ifMatch),
      };
      if (isStored(claim)) return await replay(context, exchange, bound, request, claim, wait);

      // 12 and 13. A read returns committed state; a change runs in its transaction and then takes effect.
      if (bound.change) {
        const seconds = wait ?? bound.operation.wait ?? 0;
        const reply = await executeChange(context, exchange, bound, request, claim, seconds * 1000);
        if (wait !== null && !query.dryRun) applyWait(exchange, wait);
        return reply;
      }
      if (bound.streams && request.otherMedia) {
        await context.streams.open(exchange, caller, token ?? "", query.value);
        return null;
      }
      const moment = context.cache.moment();
      const reply = await readAnswer(bound, request, store.read, route, context.spoolFolder);
      if (!bound.cached || reply.file !== undefined || reply.pieces !== undefined) return reply;
      const counted = { ...reply, length: Buffer.byteLength(reply.body) };
      context.cache.store(exchange, moment, { token: token ?? "", caller, bound, reply: counted });
      return counted;
    } finally {
      if (claim !== null && !isStored(claim)) claim.release();
    }
  }

  return (exchange) => {
    for (const pages of context.pages) {
      const page = pages(exchange);
      if (page instanceof Promise) return page.then((found) => found ?? respond(exchange));
      if (page !== null) return page;
    }
    const cached = context.cache.find(exchange);
    const reply = cached === undefined ? null : replyFromCache(context, exchange, cached);
    return reply ?? respond(exchange);
  };
}

/**
 * Repeats the checks that can give a different result for a cached response: size of the head, readiness, token, rate limit. Returns
 * null if one of them fails; then the request is processed completely.
 */
function replyFromCache(context: PipelineContext, exchange: Exchange, cached: CachedResponse): Reply | null {
  const { token, caller, bound, reply } = cached;
  if (exchange.head.size > context.limits.headers || context.unready() !== null) return null;
  // The complete processing authenticates again and reports the error.
  let authenticated: Caller | Promise<Caller>;
  try {
    authenticated = context.authenticate(token, exchange.address);
  } catch {
    return null;
  }
  if (authenticated instanceof Promise) authenticated.catch(() => {});
  if (authenticated !== caller) return null;
  exchange.caller = caller;
  exchange.bound = bound;
  if (caller.rateLimit !== null)
    context.limiter.take(caller.tokenId, caller.rateLimit, steadyOf(context.clock), bound.counted, exchange.headers);
  return reply;
}

async function readAnswer(
  { name, handler }: Bound,
  request: Request,
  db: Reader,
  route: Known,
  folder: string,
): Promise<Reply> {
  if (handler.list !== undefined) return showPage(await handler.list(request, db), route, folder);
  if (handler.read !== undefined) return showRead(await handler.read(request, db), folder);
  throw new Error(`Operation ${name} has no handler.`);
}

/** Step 1. Returns null for an unknown path, `*` for the whole service. */
function readTarget(context: PipelineContext, { head, request }: Exchange): Known | "*" | null {
  const { limits } = context;
  const target = request.url ?? "";
  if (head.size > limits.headers)
    throw new ApiError("headers_too_large", `All headers together must not be longer than ${limits.headers} bytes.`);
  if (target.length > limits.target)
    throw new ApiError("path_not_readable", `The request target must not be longer than ${limits.target} bytes.`);
  if (target === "*" && request.method === "OPTIONS") return "*";
  const route = context.route(target);
  if (route.found) return route;
  if (route.reason === "path_not_found") return null;
  throw new ApiError("path_not_readable", "The request target is not a path in percent-encoded UTF-8.");
}

function findOperation(context: PipelineContext, route: Known, method: string): Bound | undefined {
  if (!route.allow.includes(method)) return undefined;
  const name = route.operations.get(method === "HEAD" ? "GET" : (method as "GET"));
  return name === undefined ? undefined : context.operations.get(name);
}

/** The caller of open operations. Their handlers do not use it. */
const anonymous: Caller = {
  tokenId: 0,
  tokenName: "",
  projectId: 0,
  projectBlocked: false,
  scopes: [],
  restriction: null,
  rateLimit: null,
  expiresAt: null,
};

/** Step 5. */
function identify(context: PipelineContext, exchange: Exchange, token: string | null): Caller | Promise<Caller> {
  if (token === null || token === "") throw new ApiError("token_missing", "The request has no bearer token.");
  return context.authenticate(token, exchange.address);
}

const noBytes = new Uint8Array(0);

/** Step 7. */
function requireAccess({ operation, change }: Bound, caller: Caller, { parameters }: Exchange): void {
  const { access, own } = operation;
  const callerId = own === "project" ? caller.projectId : own === "token" ? caller.tokenId : null;
  const isOfCaller = callerId !== null && Number(parameters["id"]) === callerId;
  if (access !== "any" && access !== "open" && !isOfCaller && !grants(caller.scopes, access))
    throw new ApiError("scope_missing", `The token needs the scope ${access}.`);
  if (change && caller.projectBlocked && operation.method !== "DELETE" && operation.allowedWhenBlocked !== true)
    throw new ApiError("project_blocked", "The project is blocked: its objects can only be read and deleted.");
}

/** Step 9, for requests with a key. Returns null for a dry run, which does not use the key. */
async function claimKey(
  context: PipelineContext,
  { head, dryRun }: Exchange,
  { operation }: Bound,
  caller: Caller,
  route: Known,
  read: BodyReading | ContentPosition,
): Promise<Claim | StoredResponse | null> {
  const sent = readIdempotencyKey(head.idempotencyKey ?? "");
  if (dryRun) return null;
  // A restricted token has keys of its own: a stored response can show what it may not see. A sent key contains no blank.
  const key = caller.restriction === null ? sent : `${caller.tokenId} ${sent}`;
  // The scope of an operation allows the response to all who have it. Without one, the response is for this token and session only.
  const owner = operation.access === "any" ? `${caller.tokenId} ${caller.sessionId ?? 0}` : "";
  const print = fingerprint(operation.method, route.path, route.query, read, owner);
  return context.keys.claim(caller.projectId, key, print, context.clock.now());
}

const isStored = (claim: Claim | StoredResponse | null): claim is StoredResponse => claim !== null && "reply" in claim;

/** The parsed body. Two bodies that parse to the same value are the same request, in any spelling. */
interface BodyReading {
  /** Undefined: the operation has no body. */
  readonly value: object | undefined;
  readonly errors: readonly FieldError[];
}

const nothingRead: BodyReading = { value: undefined, errors: [] };

function* readBody({ fields }: Bound, bytes: Uint8Array, head: Head, strict: boolean): Generator<void, BodyReading> {
  if (fields === null) return nothingRead;
  const raw = yield* decodeInTurns(bytes, head, strict);
  yield;
  return yield* readInTurns(fields, raw, { strict });
}

/** Step 10: throws all errors of query and body together. Returns the errors that fail only elements of the request. */
function requireValidFields(
  bound: Bound,
  queryErrors: readonly FieldError[],
  read: BodyReading,
  strict: boolean,
): readonly FieldError[] {
  const invalid = bound.change ? null : queryError(queryErrors);
  if (invalid !== null) throw invalid;
  const body = read.value;
  if (body === undefined) {
    if (queryErrors.length > 0) throw invalidFields(queryErrors);
    return queryErrors;
  }
  const errors = [...queryErrors, ...read.errors];
  const reported = new Set(errors.map(({ pointer }) => pointer));
  const { handler } = bound;
  const more = [...(handler.check?.(body) ?? []), ...((errors.length > 0 && handler.alsoCheck?.(body)) || [])];
  errors.push(...more.filter(({ pointer }) => !reported.has(pointer)));
  // In strict mode a request that its schema rejects fails as a whole.
  if (strict && read.errors.length > 0) throw invalidFields(errors);
  if (errors.some((error) => handler.failsElementOnly?.(body, error) !== true)) throw invalidFields(errors);
  return errors;
}

const expectNothing = (): void => {};

function expectTag(exchange: Exchange, ifMatch: string): (tag: string) => void {
  return (tag) => {
    if (matchesTag(ifMatch, tag)) return;
    exchange.headers.push("ETag", `"${tag}"`);
    throw new ApiError("etag_mismatch", `The current ETag is "${tag}".`);
  };
}

/** Adds the granted seconds to `Preference-Applied`. */
function applyWait(exchange: Exchange, seconds: number): void {
  exchange.applied += `${exchange.applied === "" ? "" : ", "}wait=${seconds}`;
}

/** Returns the stored response to a repeated request. The audit records the repeated request too. */
async function replay(
  context: PipelineContext,
  exchange: Exchange,
  bound: Bound,
  request: Request,
  stored: StoredResponse,
  wait: number | null,
): Promise<Reply> {
  void context.noteAudit(auditRow(exchange, bound, request.caller, context.clock.now(), stored.reply?.status ?? 200));
  if (wait === null && stored.reply !== null) return repeat(stored.reply);
  const reader = context.operations.get(bound.operation.resultOperation ?? "");
  const reply = await repeatLater(stored, reader, request, context, (wait ?? 0) * 1000);
  if (wait !== null) applyWait(exchange, wait);
  return reply;
}
