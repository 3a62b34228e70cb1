/** Adapters of the command line and hooks of certificate tools, with the requests that lego and ExternalDNS send. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type CommandLine, createCommandLine } from "../support/commandline.ts";
import { createTestService, type TestService } from "../support/testservice.ts";

let brume: TestService;
let cli: CommandLine;
let restricted = "";
before(async () => {
  brume = await createTestService("sqlite");
  cli = createCommandLine(brume.url, brume.token);
  const { ID: DomainID } = await brume.client.createDomain({ body: { Name: "example.com" } });
  await brume.client.createDomain({ body: { Name: "sub.example.com" } });
  const body = { Name: "acme", Scopes: ["dns:write" as const], DomainID, RecordPattern: "_acme-challenge*" };
  restricted = (await brume.client.createToken({ body })).Token;
});
after(async () => {
  cli.close();
  await brume.close();
});

const recordsOf = async (name: string) =>
  (await brume.client.listDomains({ query: { name } })).flatMap(({ LinkedRecords }) =>
    LinkedRecords.map(({ CanonicalDescription }) => CanonicalDescription),
  );

/** Runs an adapter while `use` sends requests to it. */
async function withAdapter(
  words: readonly string[],
  env: Readonly<Record<string, string>>,
  use: (
    send: (
      route: string,
      body?: unknown,
      password?: string,
      more?: Readonly<Record<string, string>>,
    ) => Promise<Response>,
  ) => Promise<void>,
): Promise<void> {
  const stop = new AbortController();
  const listening = Promise.withResolvers<string>();
  const running = cli(["adapter", ...words, "--listen", "127.0.0.1:0"], {
    env,
    signal: stop.signal,
    onErr: (text) => {
      const [, url] = /Listening on (\S+)/.exec(text) ?? [];
      if (url !== undefined) listening.resolve(url);
    },
  });
  const url = await Promise.race([
    listening.promise,
    running.then(({ err }) => assert.fail(`the adapter ended: ${err}`)),
  ]);
  try {
    await use((route, body, password, more = {}) => {
      const [method = "", path = ""] = route.split(" ");
      const headers: Record<string, string> = { ...more };
      if (password !== undefined) headers["authorization"] = `Basic ${btoa(`any:${password}`)}`;
      return fetch(url + path, { method, headers, ...(body !== undefined && { body: JSON.stringify(body) }) });
    });
  } finally {
    stop.abort();
    await running;
  }
}

test("acme present and cleanup change only their own text, also as hooks of certbot", async () => {
  const env = { BRUME_TOKEN: restricted };
  const name = "_acme-challenge.www.example.com";
  const ok = async (line: string, more = {}) => {
    const { code, err } = await cli(line, { env: { ...env, ...more } });
    assert.equal(code, 0, err);
  };
  await ok(`acme present ${name} first`);
  await ok(`acme present ${name}. second`);
  await ok(`acme present ${name} second`);
  assert.deepEqual(await recordsOf("example.com"), [`${name}. 60 IN TXT "first"`, `${name}. 60 IN TXT "second"`]);
  await ok(`acme cleanup ${name} first`);
  await ok(`acme cleanup ${name} first`);
  assert.deepEqual(await recordsOf("example.com"), [`${name}. 60 IN TXT "second"`]);
  const certbot = { CERTBOT_DOMAIN: "www.example.com", CERTBOT_VALIDATION: "second" };
  await ok("acme cleanup", certbot);
  assert.deepEqual(await recordsOf("example.com"), []);
  await ok("acme present", certbot);
  assert.deepEqual(await recordsOf("example.com"), [`${name}. 60 IN TXT "second"`]);
  await ok("acme cleanup", certbot);
  const other = await cli("acme present _acme-challenge.other.example x", { env });
  assert.deepEqual([other.code, /No domain .* contains the name/.test(other.err)], [2, true], other.err);
  const missing = await cli("acme present", { env });
  assert.match(missing.err, /NAME and VALUE are missing/);
});

test("the longest domain that contains a name is changed", async () => {
  const { code, err } = await cli("acme present _acme-challenge.sub.example.com deep");
  assert.equal(code, 0, err);
  assert.deepEqual(await recordsOf("sub.example.com"), ['_acme-challenge.sub.example.com. 60 IN TXT "deep"']);
  await cli("acme cleanup _acme-challenge.sub.example.com deep");
});

test("httpreq serves lego in both modes, with the token of the password", async () => {
  await withAdapter(["httpreq"], { BRUME_TOKEN: "0".repeat(64) }, async (send) => {
    const challenge = { fqdn: "_acme-challenge.example.com.", value: "LHDhK3oGRvkiefQnx7OOczTY5Tic_xZ6HcMOc_gmtoM" };
    assert.equal((await send("POST /present", challenge)).status, 401);
    assert.equal((await send("POST /present", challenge, restricted)).status, 200);
    assert.deepEqual(await recordsOf("example.com"), [`_acme-challenge.example.com. 60 IN TXT "${challenge.value}"`]);
    assert.equal((await send("POST /cleanup", challenge, restricted)).status, 200);
    // The value is the SHA-256 of the key authorization (RFC 8555, section 8.4).
    const raw = { domain: "example.com", token: "token", keyAuth: "token.thumbprint" };
    assert.equal((await send("POST /present", raw, restricted)).status, 200);
    assert.deepEqual(await recordsOf("example.com"), [
      '_acme-challenge.example.com. 60 IN TXT "61rBZ_4knHblO0MNoxFsXZ_eTFUHum0B6IVRbhvUn5I"',
    ]);
    assert.equal((await send("POST /cleanup", raw, restricted)).status, 200);
    assert.deepEqual(await recordsOf("example.com"), []);
    const foreign = await send("POST /present", { fqdn: "www.other.example.", value: "x" }, restricted);
    assert.deepEqual(
      [foreign.status, ((await foreign.json()) as { error: string }).error.includes("www.other")],
      [400, true],
    );
    assert.equal((await send("POST /present", { fqdn: 1 }, restricted)).status, 400);
    assert.equal((await send("GET /present", undefined, restricted)).status, 404);
    // No request ends the adapter.
    assert.equal((await send("GET //", undefined, restricted)).status, 404);
  });
});

test("requests that a page of another site sends through a browser are rejected", async () => {
  await withAdapter(["httpreq"], {}, async (send) => {
    const challenge = { fqdn: "_acme-challenge.example.com.", value: "x" };
    const response = await send("POST /present", challenge, undefined, { origin: "https://other.example" });
    assert.deepEqual([response.status, await recordsOf("example.com")], [403, []]);
  });
});

test("a text at the top of a domain, and one that differs in case or ends with a dot, are not confused", async () => {
  for (const value of ["Token.", "token."]) assert.equal((await cli(`acme present example.com ${value}`)).code, 0);
  await withAdapter(["external-dns"], {}, async (send) => {
    const list = async () => (await (await send("GET /records")).json()) as { targets: string[] }[];
    const endpoint = { dnsName: "example.com", recordType: "TXT", recordTTL: 60 };
    assert.deepEqual(await list(), [{ ...endpoint, targets: ["Token.", "token."] }]);
    assert.equal((await send("POST /records", { delete: [{ ...endpoint, targets: ['"token."'] }] })).status, 204);
    assert.deepEqual(await list(), [{ ...endpoint, targets: ["Token."] }]);
  });
  assert.equal((await cli("acme cleanup example.com Token.")).code, 0);
  assert.deepEqual(await recordsOf("example.com"), []);
});

test("external-dns lists records and applies a plan at once", async () => {
  await withAdapter(["external-dns"], {}, async (send) => {
    const filters = await send("GET /");
    assert.equal(filters.headers.get("content-type"), "application/external.dns.webhook+json;version=1");
    assert.deepEqual(await filters.json(), { filters: ["example.com", "sub.example.com"] });
    assert.equal((await send("GET /healthz")).status, 200);
    const list = async () => (await send("GET /records")).json();
    const a = { dnsName: "web.example.com", recordType: "A", targets: ["192.0.2.1", "192.0.2.2"], recordTTL: 120 };
    const owner = {
      dnsName: "a-web.example.com",
      recordType: "TXT",
      targets: ['"heritage=external-dns,external-dns/owner=k"'],
    };
    const alias = { dnsName: "www.sub.example.com", recordType: "CNAME", targets: ["web.example.com"] };
    const mail = { dnsName: "example.com", recordType: "MX", targets: ["10 mail.example.net"] };
    assert.equal((await send("POST /records", { Create: [a, owner, alias, mail] })).status, 204);
    assert.deepEqual(await list(), [
      a,
      { ...owner, targets: ["heritage=external-dns,external-dns/owner=k"], recordTTL: 3600 },
      { ...mail, recordTTL: 3600 },
      { ...alias, recordTTL: 3600 },
    ]);
    const moved = { ...a, targets: ["192.0.2.2", "192.0.2.3"] };
    assert.equal((await send("POST /records", { updateOld: [a], updateNew: [moved], delete: [alias] })).status, 204);
    const after = (await list()) as (typeof a)[];
    assert.deepEqual(
      after.filter(({ dnsName }) => dnsName === "web.example.com" || dnsName.startsWith("www")),
      [moved],
    );
    const wrong = { ...a, dnsName: "bad.example.com", targets: ["192.0.2.9", "not an address"] };
    assert.equal((await send("POST /records", { create: [wrong] })).status, 400);
    assert.equal(JSON.stringify(await list()).includes("192.0.2.9"), false);
    assert.equal((await send("POST /records", { create: [{ ...a, recordType: "SRV" }] })).status, 400);
    assert.deepEqual(await (await send("POST /adjustendpoints", [a])).json(), [a]);
  });
});
