/**
 * The way of every request, in the order that the API promises (docs/spec.md#order-of-checks): the first check that fails decides the answer.
 * `answer` is that order, readable from top to bottom; the rooms beside this one know how each check is done.
 */
import type { FieldError } from "@brume/api/errors.ts";
import { grants } from "@brume/api/operation.ts";
import { steadyOf } from "../base/clock.ts";
import { ApiError, invalidFields } from "../base/error.ts";
import type { Reader } from "../store/db.ts";
import { type Bound, readIds } from "./bind.ts";
import { auditRow, type ChangeTools, executeChange, show } from "./change.ts";
import { type Exchange, originOf } from "./exchange.ts";
import type { Streams } from "./feed.ts";
import type { AuditRow, Caller, ListPage, Request } from "./handler.ts";
import {
  accepts,
  type Head,
  hasBody,
  matchesTag,
  readBearer,
  readIdempotencyKey,
  readPreferences,
  requireFraming,
} from "./head.ts";
import { type Claim, fingerprint, type IdempotencyKeys, type StoredResponse } from "./idempotency.ts";
import type { Limiter } from "./limit.ts";
import type { Route } from "./path.ts";
import { createTurnEnd, type PayloadLimits, receive, tooLarge } from "./payload.ts";
import type { NoteRate } from "./rateheaders.ts";
import { decodeBody } from "./read/body.ts";
import { readFields } from "./read/fields.ts";
import { linkNext } from "./read/page.ts";
import { queryFault, readQuery } from "./read/query.ts";
import { type ReplayTools, repeat, repeatLater } from "./replay.ts";
import { json, preflight, type Reply, success } from "./reply.ts";
import type { CachedResponse, ResponseCache } from "./responsecache.ts";

export interface Limits extends PayloadLimits {
  /** Bytes of all header lines. */
  readonly headers: number;
  /** Bytes of the request target. */
  readonly target: number;
}

export interface PipelineTools extends ChangeTools, ReplayTools {
  readonly limits: Limits;
  readonly route: (target: string) => Route;
  readonly operations: ReadonlyMap<string, Bound>;
  readonly authenticate: (value: string, address: string) => Caller | Promise<Caller>;
  readonly limiter: Limiter;
  readonly keys: IdempotencyKeys;
  readonly streams: Streams;
  readonly memory: ResponseCache;
  /** What keeps the service from answering now; null: nothing. */
  readonly unready: () => string | null;
  readonly noteAudit: (row: AuditRow) => Promise<void>;
  readonly noteRate: NoteRate;
}

type Known = Extract<Route, { found: true }>;

const everything = ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS"];

/** Null when a stream has begun. Throws the fault that decides the answer otherwise. What is remembered is there at once. */
export type Answer = (exchange: Exchange) => Reply | Promise<Reply | null>;

export function createPipeline(tools: PipelineTools): Answer {
  const { limits, store } = tools;
  const turnEnd = createTurnEnd();

  async function answer(exchange: Exchange): Promise<Reply | null> {
    const { head } = exchange;
    const method = exchange.request.method ?? "";

    // 1. The head is small and readable, the body not announced too large.
    const route = readTarget(tools, exchange);
    if (Number(head.contentLength) > limits.body) throw tooLarge(limits.body);
    requireFraming(head);

    // 2. The service is ready.
    const bound = route === null || route === "*" ? undefined : findOperation(tools, route, method);
    const unready = tools.unready();
    if (unready !== null && bound?.alwaysAnswers !== true) throw new ApiError("not_ready", unready);

    // 3. The path is known.
    if (route === null) throw new ApiError("path_not_found", "Nothing is offered at this path; /docs says what is.");
    // Where nobody is asked for a token, one that has a limit still sees it.
    if (method === "OPTIONS" || (bound?.operation.access === "open" && !bound.alwaysAnswers))
      await tools.noteRate(exchange);
    if (route === "*") return preflight(everything);

    // 4. The method is allowed there.
    if (method === "OPTIONS") return preflight(route.allow);
    if (bound === undefined) {
      exchange.headers.push("Allow", route.allow.join(", "));
      throw new ApiError("method_not_allowed", `This path takes ${route.allow.join(", ")}.`);
    }
    exchange.bound = bound;
    exchange.parameters = route.params;

    // Preferences and query are read before they are judged: a dry run leaves no trace, however it ends.
    const { strict, wait } = readPreferences(head.prefer);
    if (strict) exchange.applied = "handling=strict";
    const query = readQuery(bound.operation.query, route.query, {
      strict,
      change: bound.fields !== null || bound.change,
    });
    exchange.dryRun = query.dryRun;

    // 5. The token is good. An open operation asks for none, and has no use for steps 6 and 7.
    const token = readBearer(head.authorization);
    const known = bound.operation.access === "open" ? nobody : identify(tools, exchange, token);
    const caller = known instanceof Promise ? await known : known;
    if (caller !== nobody) exchange.caller = caller;

    // 6. The token's rate limit is not used up.
    if (caller.rateLimit !== null)
      tools.limiter.take(caller.tokenId, caller.rateLimit, steadyOf(tools.clock), bound.counted, exchange.headers);

    // 7. The token has the scope, and its project is not blocked.
    if (bound.operation.access !== "open") permit(bound, caller, exchange);

    // 8. The body is read and decoded.
    const bytes = hasBody(head) ? await receive(exchange, limits, turnEnd, bound.fields !== null) : noBytes;
    const read = bound.fields === null ? nothingRead : readBody(bound, bytes, head, strict);

    // 9. The idempotency key is good, and this request the first that uses it.
    const keyed = bound.change && head.idempotencyKey !== undefined;
    const claim = keyed ? await claimKey(tools, exchange, bound, caller, route, read) : null;
    try {
      // 10. Query and fields are valid.
      const spared = holdFields(bound, query.faults, read);

      // 11. The path names objects; whether they are there, and as If-Match says, the handler finds out as its first act.
      const request: Request = {
        params: readIds(bound, route.params),
        query: query.value,
        body: read.value as never,
        elementErrors: spared,
        caller,
        requestId: exchange.id,
        dryRun: query.dryRun,
        otherMedia: bound.otherMedia !== null && accepts(head.accept, bound.otherMedia),
        origin: () => originOf(exchange.request),
        expect: head.ifMatch === undefined ? expectNothing : expectTag(exchange, head.ifMatch),
      };
      if (isStored(claim)) return await replay(tools, exchange, bound, request, claim, wait);

      // 12 and 13. Reads see committed state; a change goes through its transaction to its effect.
      if (bound.change) {
        const seconds = wait ?? bound.operation.wait ?? 0;
        const reply = await executeChange(tools, exchange, bound, request, claim, seconds * 1000);
        if (wait !== null && !query.dryRun) nameWait(exchange, wait);
        return reply;
      }
      if (bound.streams && request.otherMedia) {
        await tools.streams.open(exchange, caller, token ?? "", query.value);
        return null;
      }
      const moment = tools.memory.moment();
      const reply = await readAnswer(bound, request, store.read, route);
      if (!bound.remembered) return reply;
      const counted = { ...reply, length: Buffer.byteLength(reply.body) };
      tools.memory.keep(exchange, moment, { token: token ?? "", caller, bound, reply: counted });
      return counted;
    } finally {
      if (claim !== null && !isStored(claim)) claim.release();
    }
  }

  return (exchange) => {
    const remembered = tools.memory.find(exchange);
    const reply = remembered === undefined ? null : recall(tools, exchange, remembered);
    return reply ?? answer(exchange);
  };
}

/**
 * The steps that a request which was answered before can still fail at, or whose failing could tell it from before. Null: go the
 * whole way.
 */
function recall(tools: PipelineTools, exchange: Exchange, remembered: CachedResponse): Reply | null {
  const { token, caller, bound, reply } = remembered;
  if (exchange.head.size > tools.limits.headers || tools.unready() !== null) return null;
  // The whole way asks again, and says what is wrong.
  let asking: Caller | Promise<Caller>;
  try {
    asking = tools.authenticate(token, exchange.address);
  } catch {
    return null;
  }
  if (asking instanceof Promise) asking.catch(() => {});
  if (asking !== caller) return null;
  exchange.caller = caller;
  exchange.bound = bound;
  if (caller.rateLimit !== null)
    tools.limiter.take(caller.tokenId, caller.rateLimit, steadyOf(tools.clock), bound.counted, exchange.headers);
  return reply;
}

async function readAnswer({ name, handler }: Bound, request: Request, db: Reader, route: Known): Promise<Reply> {
  if (handler.list !== undefined) return showPage(await handler.list(request, db), route);
  if (handler.read !== undefined) return show(await handler.read(request, db));
  throw new Error(`operation ${name} has no handler`);
}

/** Step 1. Null is a path that nobody knows, `*` the whole service. */
function readTarget(tools: PipelineTools, { head, request }: Exchange): Known | "*" | null {
  const { limits } = tools;
  const target = request.url ?? "";
  if (head.size > limits.headers)
    throw new ApiError("headers_too_large", `All headers together must not be longer than ${limits.headers} bytes.`);
  if (target.length > limits.target)
    throw new ApiError("path_not_readable", `The request target must not be longer than ${limits.target} bytes.`);
  if (target === "*" && request.method === "OPTIONS") return "*";
  const route = tools.route(target);
  if (route.found) return route;
  if (route.reason === "path_not_found") return null;
  throw new ApiError("path_not_readable", "The request target is not a path in percent-encoded UTF-8.");
}

function findOperation(tools: PipelineTools, route: Known, method: string): Bound | undefined {
  if (!route.allow.includes(method)) return undefined;
  const name = route.operations.get(method === "HEAD" ? "GET" : (method as "GET"));
  return name === undefined ? undefined : tools.operations.get(name);
}

/** Who asks where nobody is asked. No handler of an open operation looks at it. */
const nobody: Caller = {
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
function identify(tools: PipelineTools, exchange: Exchange, token: string | null): Caller | Promise<Caller> {
  if (token === null || token === "") throw new ApiError("token_missing", "The request has no bearer token.");
  return tools.authenticate(token, exchange.address);
}

const noBytes = new Uint8Array(0);

/** Step 7. */
function permit({ operation, change }: Bound, caller: Caller, { parameters }: Exchange): void {
  const { access, own } = operation;
  const ownId = own === "project" ? caller.projectId : own === "token" ? caller.tokenId : null;
  const isOwn = ownId !== null && Number(parameters["id"]) === ownId;
  if (access !== "any" && access !== "open" && !isOwn && !grants(caller.scopes, access))
    throw new ApiError("scope_missing", `The token needs the scope ${access}.`);
  if (change && caller.projectBlocked && operation.method !== "DELETE" && operation.allowedWhenBlocked !== true)
    throw new ApiError("project_blocked", "A blocked project can only be read and cleared.");
}

/** Step 9, where there is a key. Null: a dry run, which has no use for it. */
async function claimKey(
  tools: PipelineTools,
  { head, dryRun }: Exchange,
  bound: Bound,
  caller: Caller,
  route: Known,
  read: BodyReading,
): Promise<Claim | StoredResponse | null> {
  const key = readIdempotencyKey(head.idempotencyKey ?? "");
  if (dryRun) return null;
  // A restricted token must not get to see what another one was answered.
  const whose = caller.restriction === null ? "" : String(caller.tokenId);
  const print = fingerprint(bound.operation.method, route.path, route.query, read, whose);
  return tools.keys.claim(caller.projectId, key, print, tools.clock.now());
}

const isStored = (claim: Claim | StoredResponse | null): claim is StoredResponse => claim !== null && "reply" in claim;

/** A body as it was understood: two that are understood alike are the same request, however they were written. */
interface BodyReading {
  /** Undefined: there is none to read. */
  readonly value: object | undefined;
  readonly faults: readonly FieldError[];
}

const nothingRead: BodyReading = { value: undefined, faults: [] };

function readBody({ fields, answered }: Bound, bytes: Uint8Array, head: Head, strict: boolean): BodyReading {
  const raw = decodeBody(bytes, head, strict);
  return fields === null ? nothingRead : readFields(fields, raw, { strict, ignored: answered });
}

/** Step 10: the faults of query and body together. Answers with those that do not refuse the request as a whole. */
function holdFields(bound: Bound, queryFaults: readonly FieldError[], read: BodyReading): readonly FieldError[] {
  const invalid = bound.change ? null : queryFault(queryFaults);
  if (invalid !== null) throw invalid;
  const body = read.value;
  if (body === undefined) {
    if (queryFaults.length > 0) throw invalidFields(queryFaults);
    return queryFaults;
  }
  const faults = [...queryFaults, ...read.faults];
  const blamed = new Set(faults.map(({ pointer }) => pointer));
  const { handler } = bound;
  const more = [...(handler.check?.(body) ?? []), ...((faults.length > 0 && handler.alsoCheck?.(body)) || [])];
  faults.push(...more.filter(({ pointer }) => !blamed.has(pointer)));
  if (faults.some((fault) => handler.spares?.(body, fault) !== true)) throw invalidFields(faults);
  return faults;
}

const expectNothing = (): void => {};

function expectTag(exchange: Exchange, ifMatch: string): (tag: string) => void {
  return (tag) => {
    if (matchesTag(ifMatch, tag)) return;
    exchange.headers.push("ETag", `"${tag}"`);
    throw new ApiError("etag_mismatch", `The present ETag is "${tag}".`);
  };
}

/** The answer names the seconds that were granted. */
function nameWait(exchange: Exchange, seconds: number): void {
  exchange.applied += `${exchange.applied === "" ? "" : ", "}wait=${seconds}`;
}

/** A repeated request changes nothing, but was asked for. */
async function replay(
  tools: PipelineTools,
  exchange: Exchange,
  bound: Bound,
  request: Request,
  kept: StoredResponse,
  wait: number | null,
): Promise<Reply> {
  void tools.noteAudit(auditRow(exchange, bound, request.caller, tools.clock.now(), kept.reply.status));
  if (wait === null) return repeat(kept.reply);
  const reader = tools.operations.get(bound.operation.resultOperation ?? "");
  const reply = await repeatLater(kept, reader, request, tools, wait * 1000);
  nameWait(exchange, wait);
  return reply;
}

async function showPage({ items, total, next }: ListPage<unknown>, route: Known): Promise<Reply> {
  const headers = ["X-Total-Count", String(total)];
  if (next !== null) headers.push("Link", linkNext(route.path, route.query, next));
  return success(json, await textOf(items), headers);
}

async function textOf(items: ListPage<unknown>["items"]): Promise<string> {
  if (!(Symbol.asyncIterator in items)) return JSON.stringify(items);
  const texts: string[] = [];
  for await (const item of items) texts.push(JSON.stringify(item));
  return `[${texts.join(",")}]`;
}
