import assert from "node:assert/strict";
import { test } from "node:test";
import { ActionError, ApiError, type ClientOptions, ConnectionError, createClient, WaitError } from "./client.ts";
import { contract } from "./contract.ts";
import { describeProblem, type ErrorCode, errorCodes } from "./errors.ts";
import { examples } from "./examples.ts";
import { isSettled } from "./wait.ts";

type Reply = Response | Error;

interface Sent {
  readonly url: string;
  readonly method: string;
  readonly headers: Headers;
  readonly body: unknown;
}

const json = (value: unknown, headers: Record<string, string> = {}) =>
  new Response(JSON.stringify(value), { headers: { "content-type": "application/json; charset=utf-8", ...headers } });
const refuse = (code: ErrorCode, headers: Record<string, string> = {}) =>
  new Response(JSON.stringify(describeProblem(code, "A sentence.", "r1")), {
    status: errorCodes[code].status,
    headers: { "content-type": "application/problem+json", "x-request-id": "r1", ...headers },
  });
const empty = () => new Response(null, { status: 200, headers: { "content-length": "0" } });

/** A client on a service that gives these answers, one after the other; time passes only in its sleep. */
function script(replies: readonly Reply[], options: Partial<ClientOptions> = {}) {
  const sent: Sent[] = [];
  const slept: number[] = [];
  let time = 0;
  let keys = 0;
  const client = createClient({
    url: "http://brume.test/",
    token: "secret",
    random: () => 0,
    now: () => time,
    newKey: () => `key-${++keys}`,
    sleep: async (ms, signal) => {
      signal?.throwIfAborted();
      slept.push(ms);
      time += ms;
    },
    fetch: async (input, init) => {
      const reply = replies[sent.length];
      const request = new Request(input, init);
      sent.push({ url: request.url, method: request.method, headers: request.headers, body: init?.body });
      assert.ok(reply, `an unexpected request: ${request.method} ${request.url}`);
      if (reply instanceof Error) throw reply;
      return reply;
    },
    ...options,
  });
  return { client, sent, slept };
}

const domain = examples.readDomain?.answer;
assert.ok(domain);

test("an operation sends path, query, body and token, and returns its object", async () => {
  const { client, sent } = script([json(domain), json([domain]), json(domain), empty()]);
  assert.deepEqual(await client.readDomain({ path: { id: 3 } }), domain);
  assert.deepEqual(await client.listDomains({ query: { name: "*.com", label: "env=a b", records: false } }), [domain]);
  assert.deepEqual(await client.createDomain({ body: { Name: "example.com" } }), domain);
  assert.equal(await client.deleteRecord({ path: { domainid: 3, recordId: 14 } }), undefined);
  assert.deepEqual(
    sent.map(({ method, url, body }) => [method, url, body ?? null]),
    [
      ["GET", "http://brume.test/dns/3", null],
      ["GET", "http://brume.test/dns?name=*.com&label=env%3Da+b&records=false", null],
      ["POST", "http://brume.test/dns", '{"Name":"example.com"}'],
      ["DELETE", "http://brume.test/dns/3/14", null],
    ],
  );
  for (const { headers } of sent) assert.equal(headers.get("authorization"), "Bearer secret");
  assert.deepEqual(
    sent.map(({ headers }) => headers.get("idempotency-key")),
    [null, null, "key-1", "key-2"],
  );
  assert.equal(sent[2]?.headers.get("content-type"), "application/json");
});

test("a url with a path keeps it; without a token none is sent", async () => {
  const { client, sent } = script([json({ Status: "ok" })], { url: "https://a.test/brume//", token: undefined });
  assert.deepEqual(await client.readHealth(), { Status: "ok" });
  assert.equal(sent[0]?.url, "https://a.test/brume/healthz");
  assert.equal(sent[0]?.headers.get("authorization"), null);
});

test("options become headers and query", async () => {
  const { client, sent } = script([empty(), json(domain)], { strict: true });
  await client.deleteDomain({ path: { id: 3 } }, { wait: 10, ifMatch: '"domain-3-1"', idempotencyKey: "mine" });
  await client.updateDomain({ path: { id: 3 }, body: { Labels: {} } }, { dryRun: true, wait: 0 });
  const [first, second] = sent;
  assert.equal(first?.headers.get("prefer"), "handling=strict, wait=10");
  assert.equal(first?.headers.get("if-match"), '"domain-3-1"');
  assert.equal(first?.headers.get("idempotency-key"), "mine");
  assert.equal(second?.url, "http://brume.test/dns/3?dryRun=true");
  assert.equal(second?.headers.get("prefer"), "handling=strict, wait=0");
  assert.equal(second?.headers.get("idempotency-key"), null);
});

test("raw returns status and headers with the body", async () => {
  const { client } = script([json(domain, { etag: '"domain-3-1"', "x-request-id": "r7" })]);
  const reply = await client.raw.readDomain({ path: { id: 3 } });
  assert.deepEqual(reply.answer, domain);
  assert.deepEqual([reply.status, reply.etag, reply.requestId], [200, '"domain-3-1"', "r7"]);
});

test("other media types are returned as text", async () => {
  const zone = () => new Response("@ SOA\n", { headers: { "content-type": "text/dns; charset=us-ascii" } });
  const { client, sent } = script([zone(), new Response("a 1\n", { headers: { "content-type": "text/plain" } })]);
  assert.equal(await client.text("readDomain", { path: { id: 3 } }), "@ SOA\n");
  assert.equal(sent[0]?.headers.get("accept"), "text/dns");
  assert.equal(await client.readMetrics(), "a 1\n");
});

test("an error response is an ApiError with all fields of the error object", async () => {
  const fieldError = { pointer: "/Name", code: "field_required", detail: "Name is required." } as const;
  const problem = describeProblem("validation_failed", "1 field is not valid.", "r1", [fieldError]);
  const { client } = script([
    new Response(JSON.stringify(problem), {
      status: 400,
      headers: { "content-type": "application/problem+json", "x-request-id": "r1" },
    }),
  ]);
  await assert.rejects(client.createDomain({ body: { Name: "" } }), (error) => {
    assert.ok(error instanceof ApiError);
    assert.equal(error.code, "validation_failed");
    assert.equal(error.status, 400);
    assert.equal(error.detail, "1 field is not valid.");
    assert.deepEqual(error.errors, [fieldError]);
    assert.equal(error.pointer, "/Name");
    assert.equal(error.requestId, "r1");
    assert.deepEqual(error.problem, JSON.parse(JSON.stringify(problem)));
    assert.match(
      error.message,
      /^POST \/dns: 400 validation_failed: 1 field is not valid\.\n {2}\/Name: Name is required\.$/,
    );
    return true;
  });
});

test("an error that is not from the service is recognized", async () => {
  for (const text of ["<h1>no</h1>", "null", '"no"', '{"code":"x"}', ""]) {
    const { client } = script([new Response(text, { status: 404 })]);
    await assert.rejects(client.readAccount(), { name: "ApiError", code: "unreadable", status: 404, problem: null });
  }
});

test("lost connections, 429 and 503 are tried again under the same key", async () => {
  const { client, sent, slept } = script([
    new TypeError("fetch failed"),
    refuse("not_ready", { "retry-after": "3" }),
    refuse("idempotency_key_busy", { "retry-after": "1" }),
    refuse("rate_limited"),
    json(domain),
  ]);
  assert.deepEqual(await client.createDomain({ body: { Name: "example.com" } }), domain);
  assert.deepEqual(
    sent.map(({ headers }) => headers.get("idempotency-key")),
    ["key-1", "key-1", "key-1", "key-1", "key-1"],
  );
  // Half of 200 ms, doubled each time, or the requested pause and half of 200 ms.
  assert.deepEqual(slept, [100, 3100, 1100, 800]);
});

test("errors that a retry cannot solve are not retried", async () => {
  for (const code of ["token_invalid", "domain_exists", "internal", "idempotency_key_conflict"] as const) {
    const { client, sent } = script([refuse(code)]);
    await assert.rejects(client.createDomain({ body: { Name: "example.com" } }), { code });
    assert.equal(sent.length, 1);
  }
  const late = script([refuse("rate_limited", { "retry-after": "3600" })]);
  await assert.rejects(late.client.readAccount(), { code: "rate_limited" });
  assert.deepEqual(late.slept, []);
});

test("retries are limited, and the last error is thrown", async () => {
  const lost = new TypeError("fetch failed");
  const { client, sent, slept } = script([lost, lost, lost], { retries: 2, random: () => 0.5 });
  await assert.rejects(client.readAccount(), (error) => {
    assert.ok(error instanceof ConnectionError);
    assert.equal(error.cause, lost);
    return true;
  });
  assert.equal(sent.length, 3);
  assert.deepEqual(slept, [150, 300]);
});

test("a signal ends a call, also between attempts", async () => {
  const stop = new AbortController();
  const before = script([]);
  const gone = script([new TypeError("fetch failed")], {
    sleep: async (_, signal) => {
      stop.abort(new Error("enough"));
      signal?.throwIfAborted();
    },
  });
  await assert.rejects(gone.client.readAccount({}, { signal: stop.signal }), { message: "enough" });
  await assert.rejects(before.client.readAccount({}, { signal: stop.signal }), { message: "enough" });
  assert.equal(before.sent.length, 0);
});

test("an attempt without a response counts as lost", async () => {
  let attempts = 0;
  const { client } = script([], {
    timeout: 5,
    retries: 1,
    fetch: (_, init) =>
      new Promise((_, reject) => {
        attempts++;
        // Holds the loop open, as a socket would: the time-out alone does not.
        const socket = setInterval(() => undefined, 1000);
        init?.signal?.addEventListener("abort", () => {
          clearInterval(socket);
          const reason: unknown = init.signal?.reason;
          reject(reason);
        });
      }),
  });
  await assert.rejects(client.readAccount(), { name: "ConnectionError" });
  assert.equal(attempts, 2);
});

test("readiness of a service that is not ready is returned without a retry", async () => {
  const body = { Status: "starting", Checks: [] };
  const { client } = script([
    new Response(JSON.stringify(body), { status: 503, headers: { "content-type": "application/json" } }),
  ]);
  assert.deepEqual(await client.readReadiness(), body);
});

test("pages follow the cursor of Link and keep the filters", async () => {
  const next = (cursor: string) => ({ link: `</dns?name=*.com&limit=100&cursor=${cursor}>; rel="next"` });
  const { client, sent } = script([
    json([{ ID: 1 }, { ID: 2 }], next("a%2Bb")),
    json([{ ID: 3 }], next("c")),
    json([]),
  ]);
  const ids: number[][] = [];
  for await (const page of client.pages("listDomains", { query: { name: "*.com" } }))
    ids.push(page.map(({ ID }) => ID));
  assert.deepEqual(ids, [[1, 2], [3], []]);
  assert.deepEqual(
    sent.map(({ url }) => new URL(url).search),
    ["?limit=100&name=*.com", "?limit=100&name=*.com&cursor=a%2Bb", "?limit=100&name=*.com&cursor=c"],
  );
});

test("items returns one object after another and fetches no unused page", async () => {
  const { client, sent } = script([json([{ ID: 1 }, { ID: 2 }], { link: '</token?cursor=x>; rel="next"' })]);
  for await (const { ID } of client.items("listTokens", { query: { limit: 2 } })) if (ID === 2) break;
  assert.equal(sent.length, 1);
  assert.equal(new URL(sent[0]?.url ?? "").search, "?limit=2");
});

test("a Link cannot lead away from the service", async () => {
  const { client, sent } = script([json([], { link: '<http://evil.test/x?cursor=c>; rel="next"' }), json([])]);
  for await (const page of client.pages("listTokens")) assert.deepEqual(page, []);
  assert.match(sent[1]?.url ?? "", /^http:\/\/brume\.test\/token\?/);
});

test("waitFor reads until the condition is true", async () => {
  const record = examples.readRecord?.answer;
  assert.ok(record);
  const newRecord = { ...record, State: "New" as const };
  const { client, slept } = script([json(newRecord), json(newRecord), json(record)]);
  assert.deepEqual(await client.waitFor("readRecord", { path: { id: 8 } }), record);
  assert.deepEqual(slept, [100, 150]);
  const other = script([json(record), json({ ...record, TTL: 60 })]).client;
  const until = ({ TTL }: { TTL: number }) => TTL === 60;
  assert.equal((await other.waitFor("readRecord", { path: { id: 8 } }, { until })).TTL, 60);
});

test("waiting ends at its timeout, and the error contains the last state of the object", async () => {
  const newServer = { ...examples.readRecord?.answer, State: "New" };
  const { client, slept } = script([json(newServer), json(newServer), json(newServer)]);
  await assert.rejects(client.waitFor("readRecord", { path: { id: 8 } }, { timeout: 200 }), (error) => {
    assert.ok(error instanceof WaitError);
    assert.deepEqual(error.last, newServer);
    return true;
  });
  assert.deepEqual(slept, [100, 100]);
});

test("waiting reads once more at its timeout", async () => {
  const record = examples.readRecord?.answer;
  const newRecord = { ...record, State: "New" };
  const { client, slept } = script([json(newRecord), json(newRecord), json(record)]);
  assert.deepEqual(await client.waitFor("readRecord", { path: { id: 8 } }, { timeout: 200 }), record);
  assert.deepEqual(slept, [100, 100]);
});

test("waitFor reports the progress of an action until it has ended", async () => {
  const action = examples.readAction?.answer;
  assert.ok(action);
  const at = (Progress: number, State: string) => ({ ...action, Progress, State, Error: null });
  const running = at(20, "InProgress");
  const { client, sent } = script([
    json(running),
    json(running),
    json(at(60, "InProgress")),
    json(at(100, "Completed")),
  ]);
  const seen: number[] = [];
  const ended = await client.waitFor({ ID: 9, ServerID: 4 }, { onProgress: ({ Progress }) => seen.push(Progress) });
  assert.equal(ended.State, "Completed");
  assert.deepEqual(seen, [20, 60, 100]);
  assert.equal(sent[0]?.url, "http://brume.test/server/4/action/9");
});

test("waitFor throws the error of a failed action", async () => {
  const Error = {
    type: "/docs#boot_failed",
    title: "t",
    detail: "d",
    code: "boot_failed",
    step: "Boot",
    log: null,
  };
  const failed = { ...examples.readAction?.answer, ID: 9, ServerID: 4, Type: "Create", State: "Failed", Error };
  const { client } = script([json(failed), json({ ...failed, State: "Canceled", Error: null })]);
  await assert.rejects(client.waitFor({ ID: 9, ServerID: 4 }), (error) => {
    assert.ok(error instanceof ActionError);
    assert.deepEqual([error.code, error.step], ["boot_failed", "Boot"]);
    assert.equal(error.message, "action 9 (Create) of server 4: Failed: boot_failed: d");
    return true;
  });
  await assert.rejects(client.waitFor({ ID: 9, ServerID: 4 }), { name: "ActionError", code: "canceled", step: null });
});

test("settled states are those of the specification", () => {
  for (const State of ["Active", "Failed", "Completed", "Canceled", "Blocked"]) assert.ok(isSettled({ State }), State);
  for (const State of ["New", "FromPool", "Deleting", "Postponed", "InProgress"])
    assert.ok(!isSettled({ State }), State);
  assert.ok(isSettled({ State: "Active", Generation: 4, AppliedGeneration: 4 }));
  assert.ok(!isSettled({ State: "Active", Generation: 4, AppliedGeneration: 3 }));
  assert.ok(isSettled(0) && isSettled(null) && isSettled({}));
});

test("another contract makes another client", async () => {
  const { readHealth } = contract;
  const client = createClient({
    url: "http://a.test",
    contract: { readHealth },
    fetch: async () => json({ Status: "ok" }),
  });
  assert.deepEqual(await client.readHealth(), { Status: "ok" });
  // @ts-expect-error this contract has no domains
  assert.equal(client.readDomain, undefined);
});

test("a path without its id is an error before anything is sent", async () => {
  const { client, sent } = script([]);
  // @ts-expect-error the id is missing
  await assert.rejects(client.readDomain({}), { name: "TypeError", message: "/dns/{id} needs path.id" });
  assert.equal(sent.length, 0);
});
