/**
 * The stage of the stories: one Brume per file and database, and voices that speak to it. Whatever is said on it, by the SDK or
 * word for word, every answer is held against the contract and against what all answers promise (docs/spec.md#responses), so that no
 * story has to say so.
 */
import assert from "node:assert/strict";
import { after, before, describe } from "node:test";
import { ApiError, type Client, createClient } from "@brume/api/client.ts";
import { contract, type OperationName, operationNames } from "@brume/api/contract.ts";
import type { Domain } from "@brume/api/dns.ts";
import type { ErrorCode, Problem } from "@brume/api/errors.ts";
import { type Operation, type Scope, scopes } from "@brume/api/operation.ts";
import { checkAnswer, checkProblem } from "./answers.ts";
import { databases, type Kind } from "./databases.ts";
import { createTestService, type TestService } from "./testservice.ts";

/** An answer as it came. */
export interface TestResponse {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** Of an error object, else null. */
  readonly code: ErrorCode | null;
  /** The body read; null: it is empty, or no JSON. */
  readonly json: unknown;
}

/** Somebody with a token. */
export interface Voice {
  readonly token: string;
  readonly client: Client;
  /** One request word for word: `ask("POST /dns", { Name: "a.example" })`. A text is sent as it stands, without a type unless given. */
  ask(line: string, body?: object | string, headers?: Readonly<Record<string, string>>): Promise<TestResponse>;
}

export interface Stage extends Voice {
  readonly kind: Kind;
  readonly world: TestService;
  voiceOf(token: string): Voice;
  /** Somebody with a token of its own, made through the API by token 1. */
  as(scopes: readonly Scope[], restriction?: object): Promise<Voice>;
  /** Somebody with all scopes in a project of its own, which the API knows by `project`. */
  neighbour(quotas?: object): Promise<Voice & { readonly project: number }>;
  /** A domain with a name that nobody else has. */
  domain(more?: object): Promise<Domain>;
  /** What the name server says: data in the order of text (that of a TXT joined), or the code of the resolver's error. */
  lookUp(name: string, type: "A" | "AAAA" | "CNAME" | "MX" | "NS" | "SRV" | "TXT" | "SOA"): Promise<string[] | string>;
}

const paths = operationNames.map((name) => {
  const { method, path }: Operation = contract[name];
  const pattern = new RegExp(`^${path.replaceAll(/\{\w+\}/g, "[^/]+")}$`);
  return { name, method, pattern, literals: path.split("/").filter((part) => !part.startsWith("{")).length };
});

/** The operation that a plain target means. Literals win over parameters, whatever their methods (docs/spec.md#base-address-and-paths). */
function operationOf(method: string, path: string): OperationName | null {
  const fitting = paths.filter(({ pattern }) => pattern.test(path));
  const most = Math.max(...fitting.map(({ literals }) => literals));
  return fitting.find((one) => one.literals === most && one.method === method)?.name ?? null;
}

const everyAnswer = {
  "cache-control": /^no-store$/,
  "x-content-type-options": /^nosniff$/,
  "x-request-id": /^[A-Za-z0-9._-]{1,128}$/,
  "access-control-allow-origin": /^\*$/,
  "access-control-expose-headers":
    /^ETag, Link, X-Total-Count, X-Request-Id, Retry-After, RateLimit, RateLimit-Policy, Preference-Applied, Idempotency-Replayed, X-Dry-Run$/,
  date: / GMT$/,
};

/** Fails unless the answer is as all answers are and as the contract says of this operation. */
function holdAnswer(method: string, url: string, status: number, headers: Headers, text: string): void {
  for (const [name, pattern] of Object.entries(everyAnswer)) assert.match(headers.get(name) ?? "(none)", pattern, name);
  assert.equal(headers.get("transfer-encoding"), null, "an answer is never chunked");
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
    assert.deepEqual([text, type], ["", null], "an empty answer has no type");
  } else if (type === "application/json; charset=utf-8") {
    const json = JSON.parse(text) as unknown;
    assert.equal(JSON.stringify(json), text, "JSON is compact");
    if (name !== "readOpenapi") checkAnswer(name, json, { dryRun: headers.get("x-dry-run") === "true" });
  }
  if (tagged === true && type?.startsWith("application/json"))
    assert.match(headers.get("etag") ?? "(none)", /^"[a-z]+-\d+-\d+"$/);
}

const isStream = (headers: Headers) => headers.get("content-type")?.startsWith("text/event-stream") === true;

/** `fetch` whose answers have been looked at. Streams pass as they are. */
export const watchedFetch: typeof fetch = async (input, init) => {
  const response = await fetch(input, init);
  if (isStream(response.headers)) return response;
  const text = await response.text();
  const url = input instanceof Request ? input.url : String(input);
  holdAnswer(init?.method ?? "GET", url, response.status, response.headers, text);
  return new Response(text === "" ? null : text, { status: response.status, headers: response.headers });
};

function createVoice(url: () => string, token: string): Voice {
  return {
    token,
    get client() {
      return createClient({ url: url(), token, retries: 0, fetch: watchedFetch });
    },
    async ask(line, body, more = {}) {
      const [method = "", target = ""] = line.split(" ");
      const headers = new Headers({ Authorization: `Bearer ${token}`, ...more });
      if (typeof body === "object" && !headers.has("content-type")) headers.set("content-type", "application/json");
      const sent = typeof body === "object" ? JSON.stringify(body) : body;
      // As bytes, or fetch would say what type a text is of.
      const response = await watchedFetch(url() + target, {
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

type ServiceOptions =
  | Parameters<typeof createTestService>[1]
  | ((kind: Kind) => Promise<Parameters<typeof createTestService>[1]>);

/** Runs the tests of a file on SQLite and on PostgreSQL, each with a service of its own: for what touches SQL, locks, order or notification. */
export function onEveryDatabase(title: string, play: (stage: Stage) => void, options: ServiceOptions = {}): void {
  runOn(databases, title, play, options);
}

/** Runs the tests of a file on SQLite only, with a service of its own: for what does not depend on the database. */
export function onSqlite(title: string, play: (stage: Stage) => void, options: ServiceOptions = {}): void {
  runOn(["sqlite"], title, play, options);
}

function runOn(kinds: readonly Kind[], title: string, play: (stage: Stage) => void, options: ServiceOptions): void {
  for (const kind of kinds)
    describe(`${title} on ${kind}`, () => {
      let world: TestService | undefined;
      before(async () => {
        world = await createTestService(kind, typeof options === "function" ? await options(kind) : options);
      });
      after(() => world?.close());
      play(createStage(kind, () => world as TestService));
    });
}

function createStage(kind: Kind, get: () => TestService): Stage {
  let names = 0;
  const voiceOf = (token: string) => createVoice(() => get().url, token);
  const first = () => voiceOf(get().token);
  return {
    kind,
    get world() {
      return get();
    },
    get token() {
      return get().token;
    },
    get client() {
      return first().client;
    },
    ask: (...words) => first().ask(...words),
    voiceOf,
    async as(wanted, restriction = {}) {
      const made = await first().client.createToken({
        body: { Name: "somebody", Scopes: [...wanted], ...restriction },
      });
      return voiceOf(made.Token);
    },
    async neighbour(quotas = {}) {
      names += 1;
      const project = await first().client.createProject({ body: { Name: `neighbour ${names}`, Quotas: quotas } });
      const made = await first().client.createToken({
        body: { Name: "neighbour", Scopes: [...scopes], ProjectID: project.ID },
      });
      const { token, ask } = voiceOf(made.Token);
      return {
        token,
        ask,
        project: project.ID,
        get client() {
          return voiceOf(token).client;
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

/** Holds a refusal: its code and, if given, code by pointer of every entry of `errors`. */
export async function refused(
  promise: Promise<unknown>,
  code: ErrorCode,
  errors?: Readonly<Record<string, string>>,
): Promise<ApiError> {
  const error: unknown = await promise.then(
    (answer) => assert.fail(`not refused with ${code}, but answered ${JSON.stringify(answer)}`),
    (reason: unknown) => reason,
  );
  if (!(error instanceof ApiError)) throw error;
  assert.equal(error.code, code, error.message);
  if (errors !== undefined)
    assert.deepEqual(Object.fromEntries(error.errors.map((one) => [one.pointer, one.code])), errors, error.message);
  return error;
}
