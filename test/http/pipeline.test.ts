/**
 * The order of checks, and the headers of every response (docs/spec.md#order-of-checks, #authentication, #responses, #errors, #lists,
 * #limits-on-requests, #browsers).
 */
import assert from "node:assert/strict";
import { after, before, beforeEach, describe, test } from "node:test";
import { type ErrorCode, errorCodes } from "@brume/api/errors.ts";
import { type Answered, createCaller, type Library, openLibrary, read, tokenOf } from "./fixture.ts";

interface Asked {
  readonly token?: string | null;
  readonly body?: string | Uint8Array<ArrayBuffer>;
  readonly headers?: Record<string, string>;
}

let library: Library;

async function send(
  method: string,
  path: string,
  { token = tokenOf("a"), body, headers = {} }: Asked = {},
  at = library,
) {
  const response = await fetch(at.url + path, {
    method,
    headers: { ...(token !== null && { Authorization: `Bearer ${token}` }), ...headers },
    ...(body !== undefined && { body }),
  });
  const text = await response.text();
  return {
    status: response.status,
    headers: response.headers,
    text,
    json: /^[[{]/.test(text) ? read(text) : ({} as Answered),
  };
}

before(async () => {
  library = await openLibrary();
  for (const name of ["one", "two", "three"]) await send("POST", "/book", { body: JSON.stringify({ Name: name }) });
});
after(() => library.close());

describe("the first check that fails decides", () => {
  const large = "x".repeat(2_000_000);
  const weak = tokenOf("b");
  const blocked = tokenOf("c");
  const spent = tokenOf("d");
  let starting: Library;
  after(() => starting.close());
  before(async () => {
    starting = await openLibrary();
    starting.status = "starting";
    library.callers.set(weak, createCaller({ tokenId: 2, scopes: ["dns:read"] }));
    library.callers.set(blocked, createCaller({ tokenId: 3, projectBlocked: true }));
    library.callers.set(
      spent,
      createCaller({ tokenId: 4, scopes: ["dns:read"], rateLimit: { requests: 1, seconds: 60 } }),
    );
    assert.equal((await send("GET", "/book", { token: spent })).status, 200);
  });

  // Each request violates its own rule and, if possible, all later ones.
  const wrongBody = {
    body: new Uint8Array([0xff]),
    headers: { "Content-Type": "image/png", "Idempotency-Key": "a b" },
  };
  const steps: [step: string, code: ErrorCode, method: string, path: string, asked: Asked, when?: "starting"][] = [
    ["1 target", "path_not_readable", "GET", "/%zz", { token: null }, "starting"],
    ["1 length", "body_too_large", "POST", "/nothing", { token: null, body: large }, "starting"],
    ["2 ready", "not_ready", "POST", "/nothing", { token: null, ...wrongBody }, "starting"],
    ["3 path", "path_not_found", "PATCH", "/nothing", { token: null, ...wrongBody }],
    ["4 method", "method_not_allowed", "DELETE", "/book", { token: null, ...wrongBody }],
    ["5 no token", "token_missing", "POST", "/book?limit=x", { token: null, ...wrongBody }],
    ["5 other scheme", "token_missing", "POST", "/book", { token: null, headers: { Authorization: "Basic YTpi" } }],
    ["5 unknown token", "token_invalid", "POST", "/book", { token: "no", ...wrongBody }],
    ["6 rate", "rate_limited", "PUT", "/book/999", { token: spent, ...wrongBody }],
    ["7 scope", "scope_missing", "PUT", "/book/x", { token: weak, ...wrongBody }],
    ["7 blocked", "project_blocked", "PUT", "/book/x", { token: blocked, ...wrongBody }],
    ["8 media type", "media_type_not_supported", "PUT", "/book/x", wrongBody],
    ["8 bytes", "body_not_readable", "PUT", "/book/x", { ...wrongBody, headers: { "Idempotency-Key": "a b" } }],
    ["8 a list", "body_not_object", "PUT", "/book/x", { body: "[]", headers: { "Idempotency-Key": "a b" } }],
    [
      "9 key",
      "idempotency_key_invalid",
      "PUT",
      "/book/x?dryRun=x",
      { body: '{"Pages":0}', headers: { "Idempotency-Key": "a b" } },
    ],
    ["10 fields", "validation_failed", "PUT", "/book/x?dryRun=x", { body: '{"Pages":0}' }],
    ["10 query", "query_invalid", "GET", "/book?limit=0", {}],
    ["11 no id", "domain_not_found", "PUT", "/book/x", { body: "{}", headers: { "If-Match": '"other"' } }],
    ["11 no object", "domain_not_found", "PUT", "/book/999", { body: "{}", headers: { "If-Match": '"other"' } }],
    ["11 tag", "etag_mismatch", "PUT", "/book/1", { body: "{}", headers: { "If-Match": '"other"' } }],
    ["12 rule", "cname_conflict", "POST", "/book", { body: '{"Name":"forbidden"}' }],
    ["12 rule, dry", "cname_conflict", "POST", "/book?dryRun=true", { body: '{"Name":"forbidden"}' }],
  ];
  for (const [step, code, method, path, asked, when] of steps)
    test(`${step}: ${code}`, async () => {
      const { status: given, json } = await send(method, path, asked, when === "starting" ? starting : library);
      assert.equal(json.code, code);
      assert.equal(given, errorCodes[code].status);
      assert.equal(json.Message, errorCodes[code].message);
    });

  test("an expired token is rejected before its body is read", async () => {
    library.callers.set(tokenOf("e"), createCaller({ expiresAt: 1 }));
    const { status, json, headers } = await send("POST", "/book", { token: tokenOf("e") });
    assert.equal(status, 401);
    assert.equal(json.code, "token_expired");
    assert.equal(headers.get("WWW-Authenticate"), 'Bearer realm="brume", error="invalid_token"');
  });

  test("WWW-Authenticate shows whether a token was sent; the scheme may have any case", async () => {
    const none = await send("GET", "/book", { token: null });
    assert.equal(none.headers.get("WWW-Authenticate"), 'Bearer realm="brume"');
    const any = await send("GET", "/book", { token: null, headers: { Authorization: `bEARER ${tokenOf("a")}` } });
    assert.equal(any.status, 200);
  });

  test("errors of query and body are in one response, with both forms of their place", async () => {
    const { json } = await send("PUT", "/book/1?dryRun=maybe", { body: '{"Pages":0,"Labels":{"-":"x"}}' });
    assert.deepEqual(json.errors.map((each) => each.pointer).slice(0, 2), ["?dryRun", "/Pages"]);
    assert.deepEqual(Object.keys(json), [
      "Message",
      "ModelState",
      "type",
      "title",
      "status",
      "detail",
      "instance",
      "code",
      "errors",
    ]);
    assert.ok(json.ModelState?.["Pages"]?.[0]?.startsWith("Pages must be"));
  });

  test("a blocked project can be read and deleted, and changed by allowed operations", async () => {
    assert.equal((await send("GET", "/book", { token: blocked })).status, 200);
    assert.equal((await send("DELETE", "/book/999", { token: blocked })).json.code, "domain_not_found");
    assert.equal((await send("POST", "/shelf", { token: blocked })).status, 200);
  });

  test("the own project needs no scope", async () => {
    assert.deepEqual((await send("GET", "/shelf/1", { token: weak })).json, { id: 1 });
    assert.equal((await send("GET", "/shelf/2", { token: weak })).json.code, "scope_missing");
    assert.equal((await send("GET", "/shelf/x", { token: weak })).json.code, "scope_missing");
    assert.deepEqual((await send("GET", "/shelf/2")).json, { id: 2 });
  });

  test("an object of another project gets the same 404 as an unknown one", async () => {
    library.callers.set(tokenOf("f"), createCaller({ tokenId: 6, projectId: 2 }));
    const [foreign, never] = [await send("GET", "/book/1", { token: tokenOf("f") }), await send("GET", "/book/999")];
    assert.equal(foreign.json.code, never.json.code);
    assert.equal(foreign.json.detail.replace("1", "999"), never.json.detail);
  });
});

describe("every response", () => {
  const always = ["Cache-Control", "X-Content-Type-Options", "Date", "Content-Length", "Access-Control-Allow-Origin"];
  const requests: [string, string, Asked][] = [
    ["GET", "/book/1", {}],
    ["GET", "/book", { token: null }],
    ["POST", "/book", { body: "{" }],
    ["OPTIONS", "/book", { token: null }],
    ["GET", "/nothing", {}],
    ["GET", "/healthz", { token: null }],
    ["GET", "/openapi.json", { token: null }],
    ["GET", "/docs", { token: null }],
  ];
  for (const [method, path, asked] of requests)
    test(`${method} ${path} has the common headers`, async () => {
      const { headers } = await send(method, path, asked);
      for (const name of always) assert.ok(headers.has(name), name);
      assert.equal(headers.get("Cache-Control"), "no-store");
      assert.equal(headers.get("X-Content-Type-Options"), "nosniff");
      assert.equal(
        headers.get("Access-Control-Expose-Headers"),
        "ETag, Link, X-Total-Count, X-Request-Id, Retry-After, RateLimit, RateLimit-Policy, Preference-Applied, Idempotency-Replayed, X-Dry-Run, X-Simulated",
      );
      assert.match(headers.get("X-Request-Id") ?? "", /^[A-Za-z0-9._-]{1,128}$/);
    });

  test("X-Request-Id is the client's if it is valid, else a new one", async () => {
    for (const id of ["a", "A.b_c-9", "x".repeat(128)])
      assert.equal(
        (await send("GET", "/healthz", { headers: { "X-Request-Id": id } })).headers.get("X-Request-Id"),
        id,
      );
    const made = new Set<string | null>();
    for (const id of ["a b", "ä".normalize("NFD").slice(0, 0), "x".repeat(129), "a/b"])
      made.add((await send("GET", "/healthz", { headers: { "X-Request-Id": id } })).headers.get("X-Request-Id"));
    assert.equal(made.size, 4);
    assert.ok(!made.has("a b"));
  });

  test("bodies are compact, deletions empty", async () => {
    const made = await send("POST", "/book", { body: '{"Name":"Æsir ☃"}' });
    assert.equal(made.status, 200);
    assert.equal(made.text, `{"ID":${made.json.ID},"Name":"Æsir ☃","Pages":100,"State":"Active","Labels":{}}`);
    assert.equal(made.headers.get("Content-Type"), "application/json; charset=utf-8");
    const gone = await send("DELETE", `/book/${made.json.ID}`);
    assert.equal(gone.status, 200);
    assert.equal(gone.text, "");
    assert.equal(gone.headers.get("Content-Length"), "0");
    assert.equal(gone.headers.get("Content-Type"), null);
  });

  test("Accept has an effect only on operations with a second media type", async () => {
    const sendAccepting = (accept: string) => send("GET", "/book/1", { headers: { Accept: accept } }).catch(() => null);
    const response = await fetch(`${library.url}/book/1`, {
      headers: { Authorization: `Bearer ${tokenOf("a")}`, Accept: "text/html, Text/DNS;q=0.5" },
    });
    assert.equal(response.headers.get("Content-Type"), "text/dns");
    assert.equal(await response.text(), "one");
    assert.equal((await sendAccepting("text/html"))?.json.Name, "one");
    assert.equal((await sendAccepting("text/dns;q=0"))?.json.Name, "one");
  });

  test("the response to an unexpected error contains only the request id, and the error is logged once", async () => {
    const before = library.logged.length;
    const { status, text, json, headers } = await send("POST", "/book", { body: '{"Name":"explosive"}' });
    assert.equal(status, 500);
    assert.ok(!text.includes("secret"));
    const logged = library.logged.slice(before);
    assert.equal(logged.length, 1);
    const detail = logged[0]?.detail as { request: string } | undefined;
    assert.equal(detail?.request, headers.get("X-Request-Id"));
    assert.equal(json.instance, `urn:brume:request:${headers.get("X-Request-Id")}`);
  });
});

describe("health, readiness and metrics", () => {
  test("health always responds, readiness returns the state", async () => {
    for (const [state, status] of [
      ["starting", 503],
      ["failing", 503],
      ["ready", 200],
    ] as const) {
      library.status = state;
      assert.equal((await send("GET", "/healthz", { token: null })).text, '{"Status":"ok"}');
      const ready = await send("GET", "/readyz", { token: null });
      assert.equal(ready.status, status);
      assert.equal(ready.json.Status, state);
    }
  });

  test("a partial failure leaves other operations available", async () => {
    library.status = "failing";
    assert.equal((await send("GET", "/book/1")).status, 200);
    library.status = "ready";
  });

  test("metrics need the administrator, and count by operation", async () => {
    assert.equal((await send("GET", "/metrics", { token: null })).status, 401);
    const response = await fetch(`${library.url}/metrics`, { headers: { Authorization: `Bearer ${tokenOf("a")}` } });
    assert.equal(response.headers.get("Content-Type"), "text/plain; version=0.0.4; charset=utf-8");
    const text = await response.text();
    assert.match(text, /brume_http_request_duration_seconds_count\{operation="readBook",status="200"\} [1-9]/);
    assert.match(text, /brume_http_requests_running 1\n/);
    assert.match(text, /brume_event_loop_lag_seconds\{quantile="0.99"\} /);
  });
});

describe("lists", () => {
  test("the total is in every response, and links lead through all pages", async () => {
    const all = await send("GET", "/book");
    const total = all.json.length;
    assert.equal(all.headers.get("X-Total-Count"), String(total));
    assert.equal(all.headers.get("Link"), null);
    const seen: number[] = [];
    let path: string | undefined = "/book?limit=2&Name=*";
    while (path !== undefined) {
      const page = await send("GET", path);
      assert.equal(page.headers.get("X-Total-Count"), String(total));
      seen.push(...page.json.map((book) => book.ID));
      path = /^<(.+)>; rel="next"$/.exec(page.headers.get("Link") ?? "")?.[1];
      if (path !== undefined) assert.match(path, /^\/book\?limit=2&Name=\*&cursor=/);
    }
    assert.deepEqual(
      seen,
      all.json.map((book) => book.ID),
    );
  });

  for (const query of ["limit=0", "limit=1001", "limit=x", "cursor=!", "LIMIT=0"])
    test(`${query} is query_invalid`, async () => {
      const { json, status } = await send("GET", `/book?${query}`);
      assert.equal(status, 400);
      assert.equal(json.code, "query_invalid");
      assert.equal(json.errors.length, 1);
    });
});

describe("rate limits", () => {
  const limited = tokenOf("9");
  beforeEach(() => {
    library.now += 3_600_000;
    library.callers.set(limited, createCaller({ tokenId: 9, rateLimit: { requests: 3, seconds: 60 } }));
  });
  const rate = (headers: Headers) => [headers.get("RateLimit-Policy"), headers.get("RateLimit")];

  test("the bucket empties, refills evenly, and is in every response", async () => {
    const policy = '"token";q=3;w=60';
    assert.deepEqual(rate((await send("GET", "/book/1", { token: limited })).headers), [policy, '"token";r=2;t=20']);
    assert.deepEqual(rate((await send("GET", "/book/999", { token: limited })).headers), [policy, '"token";r=1;t=40']);
    assert.deepEqual(rate((await send("POST", "/book", { token: limited, body: "[" })).headers), [
      policy,
      '"token";r=0;t=60',
    ]);
    const refused = await send("GET", "/book/1", { token: limited });
    assert.equal(refused.status, 429);
    assert.equal(refused.headers.get("Retry-After"), "20");
    assert.deepEqual(rate(refused.headers), [policy, '"token";r=0;t=60']);
    library.now += 20_000;
    assert.equal((await send("GET", "/book/1", { token: limited })).status, 200);
    assert.equal((await send("GET", "/book/1", { token: limited })).status, 429);
  });

  test("reads of actions and events are not counted", async () => {
    for (let i = 0; i < 5; i++) {
      const action = await send("GET", "/book/1/action/2", { token: limited });
      assert.deepEqual(rate(action.headers), ['"token";q=3;w=60', '"token";r=3;t=0']);
      assert.equal((await send("GET", "/event", { token: limited })).status, 200);
      assert.equal((await send("GET", "/healthz", { token: limited })).status, 200);
    }
  });

  test("tokens without a limit get no rate limit headers", async () => {
    assert.deepEqual(rate((await send("GET", "/book/1")).headers), [null, null]);
  });
});

describe("browsers and methods", () => {
  test("OPTIONS returns the methods to every client", async () => {
    const { status, headers } = await send("OPTIONS", "/Book/7", { token: null });
    assert.equal(status, 200);
    assert.equal(headers.get("Content-Length"), "0");
    assert.equal(headers.get("Allow"), "GET, HEAD, PUT, DELETE, OPTIONS");
    assert.equal(headers.get("Access-Control-Allow-Methods"), "GET, HEAD, PUT, DELETE, OPTIONS");
    assert.equal(
      headers.get("Access-Control-Allow-Headers"),
      "Authorization, Content-Range, Content-Type, Idempotency-Key, If-Match, Prefer, Last-Event-ID, X-Request-Id",
    );
    assert.equal(headers.get("Access-Control-Max-Age"), "86400");
    assert.equal((await send("OPTIONS", "/nothing", { token: null })).json.code, "path_not_found");
  });

  test("the event stream does not support HEAD", async () => {
    const { status, headers } = await send("HEAD", "/event");
    assert.equal(status, 405);
    assert.equal(headers.get("Allow"), "GET, OPTIONS");
  });

  test("the response to a strict request has Preference-Applied", async () => {
    const strict = { headers: { Prefer: "respond-async, HANDLING=strict; x=1" } };
    const taken = await send("GET", "/book/1", strict);
    assert.equal(taken.headers.get("Preference-Applied"), "handling=strict");
    const refused = await send("GET", "/book?colour=red", strict);
    assert.equal(refused.json.errors[0]?.code, "unknown_field");
    assert.equal(refused.headers.get("Preference-Applied"), "handling=strict");
    const body = await send("POST", "/book", {
      body: '{"name":"x","Extra":1}',
      headers: { Prefer: "handling=strict" },
    });
    assert.equal(body.json.code, "validation_failed");
    assert.equal((await send("GET", "/book?colour=red")).headers.get("Preference-Applied"), null);
  });

  test("DELETE reads its body only where the contract has one", async () => {
    const made = await send("POST", "/book", { body: '{"Name":"to delete"}' });
    assert.equal((await send("DELETE", "/book-batch", { body: "Books=" })).json.code, "validation_failed");
    assert.equal(
      (await send("DELETE", "/book-batch", { body: JSON.stringify({ Books: [made.json.ID] }) })).status,
      200,
    );
    assert.equal((await send("GET", `/book/${made.json.ID}`)).status, 404);
  });
});
