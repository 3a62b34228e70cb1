/**
 * Headers that make changes safe (docs/spec.md#headers-and-queries-for-changes, #limits-on-requests): idempotency keys, dry runs,
 * If-Match, Prefer: wait, and rate limits.
 */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { Domain } from "@brume/api/dns.ts";
import { onSqliteFirst, type TestResponse } from "../support/harness.ts";

onSqliteFirst("changes", (harness) => {
  let keys = 0;
  const newKey = () => `key-${++keys}-${Math.random()}`;
  const names = async () => (await harness.client.listDomains()).map(({ Name }) => Name);
  const eventCount = async () =>
    (await harness.client.raw.listEvents({ query: { limit: 1 } })).headers.get("x-total-count");

  describe("with an idempotency key", () => {
    const post = (key: string, body: object | string, more: Record<string, string> = {}, line = "POST /dns") =>
      harness.request(line, body, { "Idempotency-Key": key, ...more });

    test("are done once, and a repeat returns the same bytes", async () => {
      const key = newKey();
      const first = await post(key, { Name: "once.example", Labels: { a: "b" } });
      const events = await eventCount();
      assert.equal(first.headers.get("idempotency-replayed"), null);
      for (const body of [
        { Name: "once.example", Labels: { a: "b" } },
        { labels: { a: "b" }, NAME: "once.example" },
      ]) {
        const again = await post(key, body);
        assert.deepEqual([again.status, again.text], [200, first.text]);
        assert.equal(again.headers.get("idempotency-replayed"), "true");
        assert.equal(again.headers.get("etag"), first.headers.get("etag"));
        assert.notEqual(again.headers.get("x-request-id"), first.headers.get("x-request-id"));
      }
      const quoted = await post(`"${key}"`, { Name: "once.example", Labels: { a: "b" } });
      assert.equal(quoted.headers.get("idempotency-replayed"), "true");
      assert.equal(await eventCount(), events);
    });

    test("are recognized by method, path, query and body", async () => {
      const key = newKey();
      const body = { Name: "print.example" };
      await post(key, body);
      for (const [line, other] of [
        ["POST /dns", { Name: "print2.example" }],
        ["POST /dns", { ...body, Labels: {} }],
        ["POST /dns?x=1", body],
        ["POST /project", body],
      ] as const) {
        const response = await post(key, other, {}, line);
        assert.deepEqual([response.status, response.code], [409, "idempotency_key_conflict"], line);
      }
      for (const line of ["POST //DNS/", "POST /dns?"])
        assert.equal((await post(key, body, {}, line)).headers.get("idempotency-replayed"), "true");
    });

    test("can be corrected with the same key if they were rejected", async () => {
      const key = newKey();
      assert.equal((await post(key, { Name: "a b" })).code, "validation_failed");
      assert.equal((await post(key, "{")).code, "body_not_readable");
      const good = await post(key, { Name: "corrected.example" });
      assert.deepEqual([good.status, good.headers.get("idempotency-replayed")], [200, null]);
    });

    test("belong to their project", async () => {
      const key = newKey();
      const other = await harness.neighbour();
      await post(key, { Name: "ours.example" });
      const theirs = await other.request("POST /dns", { Name: "theirs.example" }, { "Idempotency-Key": key });
      assert.deepEqual([theirs.status, theirs.headers.get("idempotency-replayed")], [200, null]);
      const same = await harness.request("POST /dns", { Name: "theirs.example" }, { "Idempotency-Key": newKey() });
      assert.equal(same.code, "domain_not_available");
    });

    test("need a valid key", async () => {
      for (const key of ["", '""', "a b", "x".repeat(256), "\u00e4"])
        assert.equal((await post(key, { Name: "never.example" })).code, "idempotency_key_invalid", JSON.stringify(key));
      assert.equal((await post("x".repeat(255), { Name: "long-key.example" })).status, 200);
      assert.ok(!(await names()).includes("never.example"));
    });

    test("sent concurrently are done once, and the others are busy or repeated", async () => {
      const key = newKey();
      const all = await Promise.all(Array.from({ length: 8 }, () => post(key, { Name: "at-once.example" })));
      const done = all.filter(({ status }) => status === 200);
      assert.equal(done.filter(({ headers }) => headers.get("idempotency-replayed") === null).length, 1);
      assert.equal(new Set(done.map(({ text }) => text)).size, 1);
      for (const { code, headers } of all.filter(({ status }) => status !== 200))
        assert.deepEqual([code, headers.get("retry-after")], ["idempotency_key_busy", "1"]);
      assert.equal((await names()).filter((name) => name === "at-once.example").length, 1);
    });

    test("are repeated after a restart, with secrets as they were", async () => {
      const key = newKey();
      const first = await post(key, { Name: "secret", Scopes: "dns:read" }, {}, "POST /token");
      const deletion = newKey();
      const deletable = await harness.domain();
      const gone = await post(deletion, "", {}, `DELETE /dns/${deletable.ID}`);
      assert.equal(gone.status, 200);
      const rows = await harness.brume.store.read.selectFrom("idempotency").select("sealed").execute();
      const secret = (first.json as { Token: string }).Token;
      assert.ok(
        rows.every(({ sealed }) => !Buffer.from(sealed).includes(secret)),
        "the stored response is encrypted",
      );
      await harness.brume.restart();
      const again = await post(key, { Name: "secret", Scopes: "dns:read" }, {}, "POST /token");
      assert.deepEqual([again.text, again.headers.get("idempotency-replayed")], [first.text, "true"]);
      const twice = await post(deletion, "", {}, `DELETE /dns/${deletable.ID}`);
      assert.deepEqual([twice.status, twice.text, twice.headers.get("idempotency-replayed")], [200, "", "true"]);
    });

    test("with Prefer: wait get the current object", async () => {
      const key = newKey();
      const domain = (await post(key, { Name: "now.example" })).json as Domain;
      await harness.client.updateDomain({ path: { id: domain.ID }, body: { Labels: { later: "yes" } } });
      const plain = (await post(key, { Name: "now.example" })).json as Domain;
      assert.deepEqual(plain, domain);
      const waited = await post(key, { Name: "now.example" }, { Prefer: "wait=5" });
      assert.deepEqual((waited.json as Domain).Labels, { later: "yes" });
      assert.equal(waited.headers.get("idempotency-replayed"), "true");
      assert.equal(waited.headers.get("preference-applied"), "wait=5");
      await harness.client.deleteDomain({ path: { id: domain.ID } });
      assert.equal((await post(key, { Name: "now.example" }, { Prefer: "wait=5" })).text, JSON.stringify(domain));
    });
  });

  describe("in a dry run", () => {
    test("return the response of the real request, and X-Dry-Run", async () => {
      const before = await names();
      const events = await eventCount();
      const response = await harness.request("POST /dns?DryRun=True", { Name: "tried.example", Ip: "192.0.2.1" });
      const dry = response.json as Domain;
      assert.equal(response.headers.get("x-dry-run"), "true");
      assert.deepEqual(
        [dry.ID, dry.LinkedRecords[0]?.ID, dry.LinkedRecords[0]?.DomainID, dry.State],
        [0, 0, 0, "Active"],
      );
      assert.deepEqual(await names(), before);
      assert.equal(await eventCount(), events);
      assert.equal(await harness.lookUp("tried.example", "A"), "EREFUSED");
      const real = (await harness.request("POST /dns?dryRun=false", { Name: "tried.example", Ip: "192.0.2.1" }))
        .json as Domain;
      assert.equal(real.LinkedRecords[0]?.IP, "192.0.2.1");
      const gone = await harness.request(`DELETE /dns/${real.ID}?dryRun=1`);
      assert.deepEqual([gone.status, gone.text, gone.headers.get("x-dry-run")], [200, "", "true"]);
      assert.deepEqual(await harness.lookUp("tried.example", "A"), ["192.0.2.1"]);
    });

    test("are rejected like real ones", async () => {
      const refusals: [string, object, string][] = [
        ["POST /dns", { Name: "tried.example" }, "domain_exists"],
        ["POST /dns", {}, "validation_failed"],
        ["DELETE /dns/99999", {}, "domain_not_found"],
        ["DELETE /project/1", {}, "project_in_use"],
      ];
      for (const [line, body, code] of refusals) {
        const response = await harness.request(`${line}?dryRun=true`, body);
        assert.deepEqual([response.code, response.headers.get("x-dry-run")], [code, "true"]);
      }
      assert.equal(
        (await harness.request("POST /dns?dryRun=maybe", { Name: "maybe.example" })).code,
        "validation_failed",
      );
      assert.equal((await harness.request("POST /dns?dryRun=", { Name: "maybe.example" })).code, "validation_failed");
    });

    test("neither read nor write keys", async () => {
      const headers = { "Idempotency-Key": newKey() };
      const dry = await harness.request("POST /dns?dryRun=true", { Name: "keyless.example" }, headers);
      assert.equal(dry.status, 200);
      const real = await harness.request("POST /dns", { Name: "keyless.example" }, headers);
      assert.deepEqual([real.status, real.headers.get("idempotency-replayed")], [200, null]);
      const again = await harness.request("POST /dns?dryRun=true", { Name: "keyless.example" }, headers);
      assert.equal(again.code, "domain_exists");
    });
  });

  describe("with If-Match", () => {
    test("are done only on the expected version", async () => {
      const domain = await harness.domain();
      const path = `/dns/${domain.ID}`;
      const tag = (await harness.request(`GET ${path}`)).headers.get("etag") ?? "";
      assert.match(tag, /^"domain-\d+-\d+"$/);
      const put = (IfMatch: string, n: number) =>
        harness.request(`PUT ${path}`, { Labels: { n: String(n) } }, { "If-Match": IfMatch });
      for (const wrong of ['"domain-1-999"', tag.replaceAll('"', ""), `W/${tag}`, '""', "x"]) {
        const response = await put(wrong, 1);
        assert.deepEqual(
          [response.status, response.code, response.headers.get("etag")],
          [412, "etag_mismatch", tag],
          wrong,
        );
      }
      const second = await put(`"other", ${tag}`, 2);
      assert.equal(second.status, 200);
      const third = await put("*", 3);
      assert.equal(third.status, 200);
      assert.notEqual(third.headers.get("etag"), second.headers.get("etag"));
      assert.equal((await harness.request(`DELETE ${path}`, undefined, { "If-Match": tag })).code, "etag_mismatch");
      const none = await harness.request(`GET ${path}`, undefined, {
        "If-None-Match": third.headers.get("etag") ?? "",
        "If-Match": '"x"',
      });
      assert.equal(none.status, 200);
      assert.equal(
        (await harness.request(`DELETE ${path}`, undefined, { "If-Match": third.headers.get("etag") ?? "" })).status,
        200,
      );
    });

    test("succeed one at a time", async () => {
      const domain = await harness.domain();
      const { etag } = await harness.client.raw.readDomain({ path: { id: domain.ID } });
      const edits = Array.from({ length: 8 }, (_, i) =>
        harness.request(`PUT /dns/${domain.ID}`, { Labels: { n: String(i) } }, { "If-Match": etag ?? "" }),
      );
      const statuses = (await Promise.all(edits)).map(({ status }) => status);
      assert.deepEqual(
        [statuses.filter((one) => one === 200).length, statuses.filter((one) => one === 412).length],
        [1, 7],
      );
    });
  });

  test("with Prefer: wait get the applied time, and other preferences are ignored", async () => {
    const put = async (Prefer: string) =>
      (await harness.request("PUT /project/1", {}, { Prefer })).headers.get("preference-applied");
    assert.equal(await put("wait=10"), "wait=10");
    assert.equal(await put("wait=100"), "wait=60");
    assert.equal(await put('respond-async, WAIT="7"; x=1, wait=9'), "wait=7");
    assert.equal(await put("wait=soon"), null);
    assert.equal(await put("return=minimal"), null);
    assert.equal(await put("handling=strict, wait=1"), "handling=strict, wait=1");
    assert.equal(await put("handling=lenient"), null);
  });

  describe("of a token with a rate", () => {
    test("are counted, shown, and rejected if there are too many", async () => {
      const caller = await harness.as(["dns:read"], { RateLimit: { Requests: 3, Seconds: 3600 } });
      const first = await caller.request("GET /dns");
      assert.equal(first.headers.get("ratelimit-policy"), '"token";q=3;w=3600');
      assert.match(first.headers.get("ratelimit") ?? "", /^"token";r=2;t=\d+$/);
      assert.equal(
        (await caller.request("POST /dns", {})).code,
        "scope_missing",
        "counted before the scope is checked",
      );
      assert.equal((await caller.request("GET /healthz")).status, 200);
      assert.equal((await caller.request("GET /event")).status, 200, "events are not counted");
      assert.match((await caller.request("GET /dns")).headers.get("ratelimit") ?? "", /r=0/);
      const refusal = await caller.request("GET /dns");
      assert.deepEqual([refusal.status, refusal.code], [429, "rate_limited"]);
      const wait = Number(refusal.headers.get("retry-after"));
      assert.ok(wait > 1000 && wait <= 1200, String(wait));
      assert.match(refusal.headers.get("ratelimit") ?? "", /r=0/);
      assert.equal((await harness.request("GET /dns")).headers.get("ratelimit"), null);
    });

    test("are shown in every response", async () => {
      const RateLimit = { Requests: 100, Seconds: 3600 };
      const caller = await harness.as(["dns:write"], { RateLimit });
      const left = (response: TestResponse) => Number(/;r=(\d+);/.exec(response.headers.get("ratelimit") ?? "")?.[1]);
      const repeated = { "Idempotency-Key": "told" };
      const counted: [line: string, body?: object | string, headers?: Record<string, string>][] = [
        ["GET /dns"],
        ["GET /dns"],
        ["GET /dns?limit=0"],
        ["GET /server"],
        ["GET /dns/99999"],
        ["POST /dns", "{"],
        ["POST /dns", {}],
        ["POST /dns", { Name: `told-${harness.kind}.example` }, repeated],
        ["POST /dns", { Name: `told-${harness.kind}.example` }, repeated],
        ["POST /dns", { Name: "other.example" }, repeated],
      ];
      for (const [index, [line, body, headers]] of counted.entries())
        assert.equal(left(await caller.request(line, body, headers)), 99 - index, line);
      const free = ["GET /nothing", "PATCH /dns", "GET /openapi.json", "OPTIONS /dns", "GET /dns/%zz"];
      for (const line of free) assert.equal(left(await caller.request(line)), 100 - counted.length, line);
    });

    test("are accepted again as the bucket refills", async () => {
      // The bucket refills by one each second, so on a slow host too the burst is over before all of it can pass.
      const caller = await harness.as(["dns:read"], { RateLimit: { Requests: 20, Seconds: 20 } });
      const burst = await Promise.all(Array.from({ length: 40 }, () => caller.request("GET /customer/balance")));
      const passed = burst.filter(({ status }) => status === 200).length;
      assert.ok(passed >= 20 && passed < 40, String(passed));
      let status = 429;
      while (status === 429) {
        await sleep(50);
        status = (await caller.request("GET /customer/balance")).status;
      }
      assert.equal(status, 200);
    });
  });

  test("are allowed from browsers of any origin", async () => {
    const response = await harness.request("GET /dns", undefined, { Origin: "https://elsewhere.example" });
    assert.equal(response.headers.get("access-control-allow-origin"), "*");
    assert.equal(response.headers.get("access-control-allow-credentials"), null);
    assert.equal(response.headers.get("set-cookie"), null);
  });
});
