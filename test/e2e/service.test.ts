/** The operations of the service itself (docs/spec.md#service-endpoints): liveness, readiness, description and metrics. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { operationNames } from "@brume/api/contract.ts";
import { onSqlite, refused } from "../support/harness.ts";

onSqlite("the service", (harness) => {
  const open = (path: string) => harness.request(`GET ${path}`, undefined, { Authorization: "" });

  test("reports liveness and readiness without a token", async () => {
    assert.equal((await open("/healthz")).text, '{"Status":"ok"}');
    const ready = await open("/readyz");
    assert.equal(ready.status, 200);
    assert.deepEqual(ready.json, await harness.client.readReadiness());
    assert.equal((await harness.request("HEAD /healthz", undefined, { Authorization: "" })).status, 200);
    const wrong = await harness.request("GET /healthz", undefined, { Authorization: `Bearer ${"0".repeat(64)}` });
    assert.equal(wrong.status, 200, "an open operation ignores the token");
  });

  test("describes every operation without a token", async () => {
    const api = (await open("/openapi.json")).json as {
      openapi: string;
      paths: Record<string, Record<string, { operationId: string }>>;
    };
    assert.match(api.openapi, /^3\.1\./);
    const described = Object.values(api.paths).flatMap((methods) =>
      Object.values(methods).map(({ operationId }) => operationId),
    );
    assert.deepEqual(new Set(described), new Set<string>(operationNames));
  });

  test("marks responses about servers and networks while the engines are simulated", async () => {
    const mark = async (line: string, body?: object) => (await harness.request(line, body)).headers.get("x-simulated");
    for (const line of ["GET /server", "GET /publicnetwork", "GET /server/77", "GET /network", "HEAD /server"])
      assert.equal(await mark(line), "Machine, Router", line);
    assert.equal(await mark("POST /network", { Name: "marked" }), "Machine, Router");
    for (const line of ["GET /dns", "GET /account", "GET /healthz", "GET /unknown"])
      assert.equal(await mark(line), null, line);
  });

  test("shows metrics to administrators", async () => {
    await harness.domain();
    const response = await harness.request("GET /metrics");
    assert.match(response.headers.get("content-type") ?? "", /^text\/plain; version=0\.0\.4/);
    for (const line of response.text.split("\n").filter((text) => text !== ""))
      assert.match(line, /^(# (HELP|TYPE) \w+ .*|\w+(\{.*\})? [-+.\deINaf]+)$/);
    assert.match(response.text, /operation="createDomain"/);
    const reader = await harness.as(["dns:write"]);
    await refused(reader.client.readMetrics(), "scope_missing");
  });

  test("shows metrics to a token with only that scope", async () => {
    const monitor = await harness.as(["metrics:read"]);
    const { Token } = await monitor.client.readAccount();
    assert.deepEqual(Token.Scopes, ["metrics:read"]);
    assert.match((await monitor.request("GET /metrics")).text, /brume_http_requests_running/);
    await refused(monitor.client.createToken({ body: { Name: "more", Scopes: ["account:admin"] } }), "scope_missing");
    await refused(monitor.client.listTokens(), "scope_missing");
    await refused(monitor.client.listAudit(), "scope_missing");
    await refused(monitor.client.listDomains(), "scope_missing");
    const admin = await harness.as(["account:admin"]);
    assert.equal((await admin.request("GET /metrics")).status, 200);
  });

  test("serves its own paths only", async () => {
    for (const path of ["/version", "/dns/1/records/2", "/event/1", "/customer"])
      assert.equal((await open(path)).code, "path_not_found", path);
  });
});
