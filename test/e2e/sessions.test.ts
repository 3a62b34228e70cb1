/** Sessions of browsers (docs/spec.md#session): a token is exchanged for a cookie. Hostile uses of the cookie, and the end of a session. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Session } from "@brume/api/session.ts";
import { type Caller, onEveryDatabase, onSqlite } from "../support/harness.ts";

const header = { "X-Brume-Console": "1" };

/** Signs in, and returns the session and its cookie. */
async function signIn(caller: Caller, more: Readonly<Record<string, string>> = {}) {
  const response = await caller.request("POST /session", { Name: "test" }, more);
  assert.equal(response.status, 200, response.text);
  const line = response.headers.get("set-cookie") ?? "";
  return { session: response.json as Session, line, cookie: line.split(";", 1)[0] ?? "" };
}

const define = (harness: Parameters<Parameters<typeof onSqlite>[1]>[0]) => {
  /** Sends a request with a cookie instead of a token. */
  const send = (line: string, cookie: string, more: Readonly<Record<string, string>> = header) => {
    const [method = "", path = ""] = line.split(" ");
    return fetch(harness.brume.url + path, { method, headers: { cookie, ...more } });
  };
  const codeOf = async (response: Response) => ((await response.json()) as { code: string }).code;

  test("the cookie is hidden from scripts and other sites, and stored as a hash", async () => {
    const { line, cookie, session } = await signIn(harness);
    assert.match(line, /^brume_session=[0-9a-f]{64}; Path=\/; Max-Age=6048\d\d; HttpOnly; SameSite=Strict$/);
    const secure = await signIn(harness, { "X-Forwarded-Proto": "https" });
    assert.match(secure.line, /; SameSite=Strict; Secure$/);
    assert.equal((await send("GET /account", cookie)).status, 200);
    const value = cookie.split("=")[1] ?? "";
    const rows = await harness.brume.store.read.selectFrom("session").selectAll().execute();
    assert.ok(rows.length >= 2 && !JSON.stringify(rows).includes(value));
    const [event] = (await harness.client.listEvents({ query: { type: "session.created" } })).slice(-2);
    assert.ok(!JSON.stringify(event).includes(value));
    assert.equal(session.IsCurrent, true);
  });

  test("a cookie counts only with the header that other origins cannot send", async () => {
    const { cookie } = await signIn(harness);
    assert.equal(await codeOf(await send("GET /account", cookie, {})), "token_missing");
    assert.equal(await codeOf(await send("POST /session", cookie)), "token_missing");
    const preflight = await fetch(`${harness.brume.url}/account`, {
      method: "OPTIONS",
      headers: { Origin: "https://evil.example", "Access-Control-Request-Headers": "x-brume-console" },
    });
    assert.doesNotMatch(preflight.headers.get("access-control-allow-headers") ?? "", /x-brume-console/i);
    assert.equal(preflight.headers.get("access-control-allow-credentials"), null);
  });

  test("invented, empty and ended cookies are rejected", async () => {
    const { cookie } = await signIn(harness);
    const value = cookie.split("=")[1] ?? "";
    for (const each of ["", "x", "0".repeat(64), harness.token, value.toUpperCase(), `${value}0`, "%00", "'; --"])
      assert.equal(await codeOf(await send("GET /account", `brume_session=${each}`)), "token_invalid", each);
    // The value of a cookie is no token.
    assert.equal((await harness.callerOf(value).request("GET /account")).code, "token_invalid");
    const beside = await send("GET /account", `a=b; ${cookie}; c=d`);
    assert.equal(beside.status, 200);
    await send("DELETE /session", cookie);
    assert.equal(await codeOf(await send("GET /account", cookie)), "token_invalid");
  });

  test("no other token and no session gets a cookie by its idempotency key", async () => {
    const key = { "Idempotency-Key": "sign-in" };
    const { line, cookie } = await signIn(harness, key);
    const weak = await harness.as(["metrics:read"]);
    const stolen = await weak.request("POST /session", { Name: "test" }, key);
    assert.deepEqual([stolen.code, stolen.headers.get("set-cookie")], ["idempotency_key_conflict", null]);
    const body = JSON.stringify({ Name: "test" });
    const headers = { cookie, ...header, ...key };
    const renewed = await fetch(`${harness.brume.url}/session`, { method: "POST", headers, body });
    assert.deepEqual([await codeOf(renewed), renewed.headers.get("set-cookie")], ["idempotency_key_conflict", null]);
    const again = await signIn(harness, key);
    assert.equal(again.line, line);
  });

  test("each session ends by a request of its own, also with the same idempotency key", async () => {
    const key = { ...header, "Idempotency-Key": "sign-out" };
    const [first, second] = [await signIn(harness), await signIn(harness)];
    assert.equal((await send("DELETE /session", first.cookie, key)).status, 200);
    assert.equal(await codeOf(await send("DELETE /session", second.cookie, key)), "idempotency_key_conflict");
    assert.equal((await send("GET /account", second.cookie)).status, 200);
    const weak = await harness.as(["metrics:read"]);
    const line = `DELETE /session/${second.session.ID}`;
    assert.equal((await harness.request(line, undefined, key)).status, 409);
    const own = { "Idempotency-Key": "end" };
    assert.equal((await harness.request(line, undefined, own)).status, 200);
    assert.equal((await weak.request(line, undefined, own)).code, "idempotency_key_conflict");
  });

  test("signing out deletes the cookie", async () => {
    const { cookie } = await signIn(harness);
    const response = await send("DELETE /session", cookie);
    assert.match(response.headers.get("set-cookie") ?? "", /^brume_session=; Path=\/; Max-Age=0; HttpOnly/);
    assert.equal((await harness.request("DELETE /session")).code, "session_not_found");
  });

  test("a session has the rights of its token and ends with it", async () => {
    const weak = await harness.as(["dns:read"]);
    const { cookie, session } = await signIn(weak);
    assert.equal((await send("GET /dns", cookie)).status, 200);
    assert.equal(await codeOf(await send("GET /server", cookie)), "scope_missing");
    assert.equal(await codeOf(await send("POST /token", cookie)), "scope_missing");
    const listed = (await (await send("GET /session", cookie)).json()) as Session[];
    assert.deepEqual(
      listed.map(({ ID }) => ID),
      [session.ID],
    );
    await harness.client.deleteToken({ path: { id: session.TokenID } });
    assert.equal(await codeOf(await send("GET /dns", cookie)), "token_invalid");
  });

  test("an administrator lists and ends every session, others only their own", async () => {
    const weak = await harness.as(["dns:read"]);
    const own = await signIn(weak);
    const admins = await signIn(harness);
    assert.equal(await codeOf(await send(`DELETE /session/${admins.session.ID}`, own.cookie)), "session_not_found");
    const neighbour = await harness.neighbour();
    const foreign = await signIn(await harness.as(["dns:read"], { ProjectID: neighbour.project }));
    assert.equal((await weak.request(`GET /session?project=${neighbour.project}`)).code, "project_not_found");
    const all = await harness.client.listSessions();
    assert.ok(all.some(({ ID }) => ID === own.session.ID) && all.every(({ ProjectID }) => ProjectID === 1));
    const theirs = await harness.client.listSessions({ query: { project: neighbour.project } });
    assert.deepEqual(
      theirs.map(({ ID }) => ID),
      [foreign.session.ID],
    );
    await harness.client.deleteSession({ path: { id: own.session.ID } });
    assert.equal(await codeOf(await send("GET /dns", own.cookie)), "token_invalid");
  });

  test("a token has at most 20 sessions", async () => {
    const caller = await harness.as(["dns:read"]);
    const first = await signIn(caller);
    for (let i = 0; i < 20; i++) await signIn(caller);
    assert.equal((await caller.client.listSessions()).length, 20);
    assert.equal(await codeOf(await send("GET /dns", first.cookie)), "token_invalid");
  });

  test("a session survives a restart of the service", async () => {
    const { cookie } = await signIn(harness);
    await harness.brume.restart();
    assert.equal((await send("GET /account", cookie)).status, 200);
  });
};

onEveryDatabase("sessions", define, { limits: { signIns: { requests: 1000, seconds: 60 } } });

onSqlite(
  "attempts to sign in",
  (harness) => {
    describe("from one network", () => {
      test("are limited, valid or not", async () => {
        const wrong = harness.callerOf("0".repeat(64));
        for (let i = 0; i < 5; i++) assert.equal((await wrong.request("POST /session", {})).code, "token_invalid");
        const response = await harness.request("POST /session", {});
        assert.equal(response.code, "rate_limited");
        assert.match(response.headers.get("retry-after") ?? "", /^\d+$/);
        assert.equal((await harness.request("GET /account")).status, 200);
      });
    });
  },
  { limits: { signIns: { requests: 5, seconds: 3600 } } },
);
