/**
 * The harness of the end-to-end tests: one complete service per test file and database, and callers that send requests to it. Every
 * response, to the SDK or to a raw request, is checked against the contract and the common headers (docs/spec.md#responses), so tests
 * need not repeat that.
 */
import assert from "node:assert/strict";
import { after, before, describe } from "node:test";
import { ApiError, type Client, createClient } from "@brume/api/client.ts";
import { contract, type OperationName, operationNames } from "@brume/api/contract.ts";
import type { Domain } from "@brume/api/dns.ts";
import type { ErrorCode, Problem } from "@brume/api/errors.ts";
import { type Operation, type Scope, scopes } from "@brume/api/operation.ts";
import { checkProblem, checkResponse } from "./contractcheck.ts";
import { databases, type Kind, sqliteFirst } from "./databases.ts";
import { checkTerms } from "./termcheck.ts";
import { createTestService, type TestService } from "./testservice.ts";

/** A response as received. */
export interface TestResponse {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** The code of the error object; null for other responses. */
  readonly code: ErrorCode | null;
  /** The parsed body; null if it is empty or not JSON. */
  readonly json: unknown;
}

/** A client with one token. */
export interface Caller {
  readonly token: string;
  readonly client: Client;
  /** Sends a raw request: `request("POST /dns", { Name: "a.example" })`. A string body is sent unchanged, without `Content-Type` unless given. With a cookie it has no token. */
  request(line: string, body?: object | string, headers?: Readonly<Record<string, string>>): Promise<TestResponse>;
}

/** Passed to the tests of `onEveryDatabase`: a caller with token 1, and the service. */
export interface Harness extends Caller {
  readonly kind: Kind;
  /** The service under test and its simulated drivers. */
  readonly brume: TestService;
  /** Returns a caller with this token. */
  callerOf(token: string): Caller;
  /** Creates a token through the API with token 1, and returns its caller. */
  as(scopes: readonly Scope[], restriction?: object): Promise<Caller>;
  /** Creates a project, and returns a caller with all scopes in it. `project` is its id. */
  neighbour(quotas?: object): Promise<Caller & { readonly project: number }>;
  /** Creates a domain with a unique name. */
  domain(more?: object): Promise<Domain>;
  /** Queries the name server. Resolves to the data, sorted (strings of a TXT are joined), or to the code of the resolver's error. */
  lookUp(name: string, type: "A" | "AAAA" | "CNAME" | "MX" | "NS" | "SRV" | "TXT" | "SOA"): Promise<string[] | string>;
}

const paths = operationNames.map((name) => {
  const { method, path }: Operation = contract[name];
  const pattern = new RegExp(`^${path.replaceAll(/\{\w+\}/g, "[^/]+")}$`);
  return { name, method, pattern, literals: path.split("/").filter((part) => !part.startsWith("{")).length };
});

/** Returns the operation of a request. Literal path segments win over parameters, for any method (docs/spec.md#base-address-and-paths). */
function operationOf(method: string, path: string): OperationName | null {
  const fitting = paths.filter(({ pattern }) => pattern.test(path));
  const most = Math.max(...fitting.map(({ literals }) => literals));
  return fitting.find((one) => one.literals === most && one.method === method)?.name ?? null;
}

const commonHeaders = {
  "cache-control": /^no-store$/,
  "x-content-type-options": /^nosniff$/,
  "x-request-id": /^[A-Za-z0-9._-]{1,128}$/,
  "access-control-allow-origin": /^\*$/,
  "access-control-expose-headers":
    /^ETag, Link, X-Total-Count, X-Request-Id, Retry-After, RateLimit, RateLimit-Policy, Preference-Applied, Idempotency-Replayed, X-Dry-Run, X-Simulated$/,
  date: / GMT$/,
};

/** Pages for browsers are no data for programs of other origins. */
const pageHeaders = {
  "cache-control": /^no-cache$/,
  "content-security-policy": /^default-src 'none';/,
  "x-content-type-options": /^nosniff$/,
  "x-request-id": commonHeaders["x-request-id"],
  date: commonHeaders.date,
};

/** Throws an assertion error unless the response has the common headers and matches the contract of its operation. */
function checkEveryResponse(method: string, url: string, status: number, headers: Headers, text: string): void {
  const isPage = headers.get("content-type")?.startsWith("text/html") === true;
  for (const [name, pattern] of Object.entries(isPage ? pageHeaders : commonHeaders))
    assert.match(headers.get(name) ?? "(none)", pattern, name);
  if (isPage) return;
  assert.equal(headers.get("transfer-encoding"), null, "a response is never chunked");
  assert.match(headers.get("content-length") ?? "(none)", /^\d+$/);
  if (method === "HEAD") return assert.equal(text, "");
  assert.equal(Number(headers.get("content-length")), Buffer.byteLength(text));
  const type = headers.get("content-type");
  const name = operationOf(method, new URL(url).pathname);
  if (status >= 400 && type === "application/problem+json") {
    const problem = JSON.parse(text) as unknown;
    assert.equal(JSON.stringify(problem), text, "JSON is compact");
    checkProblem(problem, name ?? undefined);
    assert.equal(problem.instance, `urn:brume:request:${headers.get("x-request-id")}`);
    assert.equal(
      headers.has("retry-after"),
      status === 429 || status === 503 || problem.code === "idempotency_key_busy",
    );
    assert.equal(headers.has("www-authenticate"), status === 401);
    return;
  }
  if (name === null || method === "OPTIONS") return;
  assert.ok(status === 200 || name === "readReadiness", `a success is 200, not ${status}`);
  const { answer, list, etag: tagged }: Operation = contract[name];
  assert.equal(headers.has("x-total-count"), list === true);
  if (answer === null) {
    assert.deepEqual([text, type], ["", null], "an empty response has no type");
  } else if (type === "application/json; charset=utf-8") {
    const json = JSON.parse(text) as unknown;
    assert.equal(JSON.stringify(json), text, "JSON is compact");
    if (name !== "readOpenapi") checkResponse(name, json, { dryRun: headers.get("x-dry-run") === "true" });
  }
  if (tagged === true && type?.startsWith("application/json"))
    assert.match(headers.get("etag") ?? "(none)", /^"[a-z]+-\d+-\d+"$/);
}

const isStream = (headers: Headers) => headers.get("content-type")?.startsWith("text/event-stream") === true;

/** `fetch` that checks every response. Event streams are not checked. */
export const checkedFetch: typeof fetch = async (input, init) => {
  const response = await fetch(input, init);
  if (isStream(response.headers)) return response;
  const text = await response.text();
  const url = input instanceof Request ? input.url : String(input);
  checkEveryResponse(init?.method ?? "GET", url, response.status, response.headers, text);
  return new Response(text === "" ? null : text, { status: response.status, headers: response.headers });
};

function createCaller(url: () => string, token: string): Caller {
  return {
    token,
    get client() {
      return createClient({ url: url(), token, retries: 0, fetch: checkedFetch });
    },
    async request(line, body, more = {}) {
      const [method = "", target = ""] = line.split(" ");
      const headers = new Headers({
        ...(more["cookie"] === undefined && { Authorization: `Bearer ${token}` }),
        ...more,
      });
      if (typeof body === "object" && !headers.has("content-type")) headers.set("content-type", "application/json");
      const sent = typeof body === "object" ? JSON.stringify(body) : body;
      // As bytes, because fetch adds a `Content-Type` to a string.
      const response = await checkedFetch(url() + target, {
        method,
        headers,
        ...(sent !== undefined && { body: new TextEncoder().encode(sent) }),
      });
      const text = await response.text();
      const isJson = /^application\/(problem\+)?json/.test(response.headers.get("content-type") ?? "") && text !== "";
      const json: unknown = isJson ? JSON.parse(text) : null;
      const code = response.status >= 400 && json !== null ? (json as Problem).code : null;
      return { status: response.status, headers: response.headers, text, json, code };
    },
  };
}

type Options = Parameters<typeof createTestService>[1];
/** Options of the service, or a function that creates them. */
type HarnessOptions = Options | ((kind: Kind) => Promise<Options>);

/** Runs the tests of a file on SQLite and on PostgreSQL, each with a new service. Use it for tests of SQL, locks, order or notification. */
export function onEveryDatabase(title: string, define: (harness: Harness) => void, options: HarnessOptions = {}): void {
  runOn(databases, title, define, options);
}

/** Runs the tests of a file on SQLite, and with `TEST_RUNS=all` on PostgreSQL too. Use it for tests whose SQL statements others run on both. */
export function onSqliteFirst(title: string, define: (harness: Harness) => void, options: HarnessOptions = {}): void {
  runOn(sqliteFirst, title, define, options);
}

/** Runs the tests of a file on SQLite only, with a new service. Use it for tests that do not depend on the database. */
export function onSqlite(title: string, define: (harness: Harness) => void, options: HarnessOptions = {}): void {
  runOn(["sqlite"], title, define, options);
}

/** Runs the tests of a file on PostgreSQL only, with a new service. Use it for tests of how the service uses PostgreSQL. */
export function onPostgres(title: string, define: (harness: Harness) => void, options: HarnessOptions = {}): void {
  runOn(["postgres"], title, define, options);
}

function runOn(
  kinds: readonly Kind[],
  title: string,
  define: (harness: Harness) => void,
  options: HarnessOptions,
): void {
  for (const kind of kinds)
    describe(`${title} on ${kind}`, () => {
      let brume: TestService | undefined;
      before(async () => {
        brume = await createTestService(kind, typeof options === "function" ? await options(kind) : options);
      });
      define(createHarness(kind, () => brume as TestService));
      // Last, because hooks run in their order: a file first closes what uses the database too.
      after(async () => {
        if (brume === undefined) return;
        try {
          await checkTerms(brume.store);
        } finally {
          await brume.close();
        }
      });
    });
}

function createHarness(kind: Kind, get: () => TestService): Harness {
  let names = 0;
  const callerOf = (token: string) => createCaller(() => get().url, token);
  const first = () => callerOf(get().token);
  return {
    kind,
    get brume() {
      return get();
    },
    get token() {
      return get().token;
    },
    get client() {
      return first().client;
    },
    request: (...args) => first().request(...args),
    callerOf,
    async as(wanted, restriction = {}) {
      const made = await first().client.createToken({
        body: { Name: "test", Scopes: [...wanted], ...restriction },
      });
      return callerOf(made.Token);
    },
    async neighbour(quotas = {}) {
      names += 1;
      const project = await first().client.createProject({ body: { Name: `neighbour ${names}`, Quotas: quotas } });
      const made = await first().client.createToken({
        body: { Name: "neighbour", Scopes: [...scopes], ProjectID: project.ID },
      });
      const { token, request } = callerOf(made.Token);
      return {
        token,
        request,
        project: project.ID,
        get client() {
          return callerOf(token).client;
        },
      };
    },
    domain(more = {}) {
      names += 1;
      return first().client.createDomain({ body: { Name: `d${names}.example`, ...more } });
    },
    async lookUp(name, type) {
      try {
        const found: string | object = await get().resolver.resolve(name, type);
        const items: readonly (string | object)[] = Array.isArray(found) ? found : [found];
        const print = (item: string | object) =>
          typeof item === "string"
            ? item
            : Array.isArray(item)
              ? item.join("")
              : JSON.stringify({ ...item, type: undefined });
        return items.map(print).sort();
      } catch (error) {
        return (error as NodeJS.ErrnoException).code ?? String(error);
      }
    },
  };
}

/** Asserts that a promise rejects with an `ApiError` of this code and, if given, these `errors` (code by pointer). Returns the error. */
export async function refused(
  promise: Promise<unknown>,
  code: ErrorCode,
  errors?: Readonly<Record<string, string>>,
): Promise<ApiError> {
  const error: unknown = await promise.then(
    (response) => assert.fail(`expected the error ${code}, got ${JSON.stringify(response)}`),
    (reason: unknown) => reason,
  );
  if (!(error instanceof ApiError)) throw error;
  assert.equal(error.code, code, error.message);
  if (errors !== undefined)
    assert.deepEqual(Object.fromEntries(error.errors.map((one) => [one.pointer, one.code])), errors, error.message);
  return error;
}
