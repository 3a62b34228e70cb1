/**
 * docs/spec.md#responses-match-the-contract: a request produces every error code and every code of a field. The types of the tables below
 * require an entry for each code, so a new code does not compile without one.
 */
import assert from "node:assert/strict";
import { before, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { type ErrorCode, errorCodes, type FieldCode, type FieldError, fieldCodes } from "@brume/api/errors.ts";
import { sql } from "kysely";
import pg from "pg";
import { createBuiltin } from "../../service/src/drivers/nameserver/builtin/builtin.ts";
import type { Nameserver } from "../../service/src/drivers/nameserver/interface.ts";
import { reserveLink } from "../../service/src/network/link.ts";
import { deleteLink } from "../../service/src/network/linktable.ts";
import type { Kind } from "../support/databases.ts";
import { type Caller, type Harness, onSqlite, type TestResponse } from "../support/harness.ts";
import { dial } from "../support/httpsocket.ts";
import { openServerErrorFixture, type ServerCode, type ServerErrorFixture, serverCodes } from "./servererrors.ts";

/** Objects and callers of the requests. */
interface CodeFixture {
  readonly harness: Harness;
  /** Id of a domain with an A record at `www`, a CNAME at `alias` and a delegation at `cut`. */
  readonly domain: number;
  readonly record: number;
  readonly otherDomain: number;
  /** Caller in a project whose quota of one domain is used up. */
  readonly neighbour: Caller & { readonly project: number };
  readonly blocked: Caller;
  readonly weak: Caller;
  /** A public network with an IPsec tunnel, and a private one. */
  readonly network: number;
  readonly tunnel: number;
  readonly inner: number;
  readonly servers: ServerErrorFixture;
  /** Blocks calls to the name server until the returned function is called. */
  shutGate(): () => void;
}
type Seen = Pick<TestResponse, "status" | "code" | "text">;
type Produce = (fixture: CodeFixture) => Promise<Seen>;

const request =
  (line: string, body?: object | string, headers?: Record<string, string>): Produce =>
  ({ harness, ...ids }) =>
    harness.request(
      line.replace(/:(domain|record|network)/, (_, name: "domain" | "record" | "network") => String(ids[name])),
      body,
      headers,
    );
const posts =
  (type: string, body: object): Produce =>
  ({ harness, domain }) =>
    harness.request(`POST /dns/record${type}`, { DomainId: domain, ...body });

/** Adds a complete tunnel to `PeerNetwork`, with these fields replaced, to the list of the network. */
const tunnels =
  (...more: object[]): Produce =>
  ({ harness, network }) =>
    harness.request(`PUT /publicnetwork/${network}/vpn`, {
      Tunnels: more.map((one, i) => ({
        Name: `t${i}`,
        PeerNetwork: `10.${i}.0.0/16`,
        PeerEndpoint: `192.0.2.${i}`,
        ...one,
      })),
    });

/** A network with a server. No operation links a server to it, so the test inserts the rows. */
async function withServer({ harness, inner }: CodeFixture): Promise<Seen> {
  const [link] = await harness.brume.store.write((tx) =>
    reserveLink(tx, inner, { server: 1, hostName: "a", now: 0, pointer: "" }),
  );
  const response = await harness.request(`DELETE /network/${inner}`);
  await harness.brume.store.write((tx) => deleteLink(tx, link.id));
  return response;
}

async function whileDeleting({ harness }: CodeFixture): Promise<Seen> {
  const { Id } = await harness.client.createPublicNetwork({ body: { Name: "going" } });
  const { router } = harness.brume;
  router.broken = true;
  await harness.request(`DELETE /publicnetwork/${Id}`, undefined, { Prefer: "wait=0" });
  const response = await harness.request(`PUT /publicnetwork/${Id}`, { Name: "staying" });
  router.broken = false;
  return response;
}

/** Sends raw bytes that no HTTP client sends. */
const bytes =
  (text: string): Produce =>
  async ({ harness }) => {
    const line = await dial(Number(new URL(harness.brume.url).port));
    line.send(text.replace(":token", harness.token));
    const { status, body } = await line.receive();
    line.close();
    return { status, code: (JSON.parse(body) as { code: ErrorCode }).code, text: body };
  };

async function asExpired({ harness }: CodeFixture): Promise<Seen> {
  const ExpiresAt = new Date(Date.now() + 3000).toISOString();
  const made = await harness.client.createToken({ body: { Name: "short", Scopes: ["dns:read"], ExpiresAt } });
  await harness.client.waitFor("readBalance", {}, { until: () => Date.now() > Date.parse(ExpiresAt) });
  return harness.callerOf(made.Token).request("GET /dns");
}

async function overRateLimit({ harness }: CodeFixture): Promise<Seen> {
  const caller = await harness.as(["dns:read"], { RateLimit: { Requests: 1, Seconds: 3600 } });
  await caller.request("GET /dns");
  return caller.request("GET /dns");
}

async function asRestricted({ harness, domain }: CodeFixture): Promise<Seen> {
  const caller = await harness.as(["dns:write"], { DomainID: domain, RecordTypes: ["TXT"] });
  return caller.request("POST /dns/recorda", { DomainId: domain, IP: "192.0.2.1" });
}

async function withUsedKey({ harness }: CodeFixture): Promise<Seen> {
  const headers = { "Idempotency-Key": "used" };
  await harness.request("PUT /project/1", {}, headers);
  return harness.request("PUT /project/1", { Labels: {} }, headers);
}

async function withBusyKey({ harness, shutGate }: CodeFixture): Promise<Seen> {
  const send = (headers = {}) =>
    harness.request("POST /dns", { Name: "busy.example" }, { "Idempotency-Key": "busy", ...headers });
  const open = shutGate();
  const first = send({ Prefer: "wait=30" });
  // The first is committed, and waits for the name server.
  await harness.client.waitFor(
    "listDomains",
    { query: { name: "busy.example" } },
    { until: (found) => found.length > 0 },
  );
  const second = await send();
  open();
  assert.equal((await first).status, 200);
  return second;
}

/** Stores an invalid row, which no migration and no request can write. */
async function onBrokenRow({ harness, neighbour }: CodeFixture): Promise<Seen> {
  const setLabels = (labels: string) =>
    harness.brume.store.write((tx) =>
      tx.updateTable("project").set({ labels }).where("id", "=", neighbour.project).execute(),
    );
  await setLabels("{");
  const response = await harness.request(`GET /project/${neighbour.project}`);
  await setLabels("{}");
  return response;
}

/** The database fails during a change: SQLite rejects the write, PostgreSQL closes the connection. */
async function withoutStorage({ harness }: CodeFixture): Promise<Seen> {
  const { kind, store, database } = harness.brume;
  const post = () => harness.request("POST /dns", { Name: "unstored.example" });
  if (kind === "sqlite") {
    // It has effect at once, also for writes in the same commit; then that commit may fail too.
    await store.write((tx) => sql`PRAGMA query_only = 1`.execute(tx)).catch(() => {});
    return post();
  }
  const client = new pg.Client({ connectionString: database.address });
  await client.connect();
  await client.query("BEGIN; LOCK TABLE domain IN ACCESS EXCLUSIVE MODE");
  const response = post();
  const cut = "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE NOT granted AND pid <> pg_backend_pid()";
  // A reconciler may wait in the same queue, and fail in its place.
  let isAnswered = false;
  const noted = response.finally(() => {
    isAnswered = true;
  });
  while (!isAnswered) {
    await client.query(cut);
    await sleep(5);
  }
  await noted;
  await client.end();
  return response;
}

/** The service stops while it has received only the first bytes of a request. */
async function whileStopping({ harness }: CodeFixture): Promise<Seen> {
  const line = await dial(Number(new URL(harness.brume.url).port));
  const rest = `/dns HTTP/1.1\r\nAuthorization: Bearer ${harness.token}\r\n\r\n`;
  line.send(`GET ${rest}GET `);
  assert.equal((await line.receive()).status, 200);
  const closed = harness.brume.service.close(1000);
  line.send(rest);
  const { status, body } = await line.receive();
  line.close();
  await closed;
  return { status, code: (JSON.parse(body) as { code: ErrorCode }).code, text: body };
}

const auth = "Authorization: Bearer :token\r\n";

const producers: Record<Exclude<ErrorCode, ServerCode>, Produce> = {
  validation_failed: request("POST /dns", {}),
  body_not_readable: request("POST /dns", "{"),
  body_not_object: request("POST /dns", "[]"),
  path_not_readable: request("GET /dns/%zz"),
  request_not_readable: bytes("GET /dns HTTP/1.1\r\nBad Name: x\r\n\r\n"),
  transfer_coding_not_supported: bytes(
    `POST /dns HTTP/1.1\r\n${auth}Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n`,
  ),
  query_invalid: request("GET /dns?limit=0"),
  idempotency_key_invalid: request("POST /dns", {}, { "Idempotency-Key": "a b" }),
  record_exists: posts("a", { Name: "www", IP: "192.0.2.1" }),
  cname_conflict: posts("a", { Name: "alias", IP: "192.0.2.1" }),
  cname_at_apex: posts("cname", { MnemonicName: "@", Name: "a.b" }),
  delegation_conflict: posts("txt", { Name: "x.cut", Text: "a" }),
  name_outside_domain: posts("a", { Name: "other.org.", IP: "192.0.2.1" }),
  record_type_mismatch: request("PUT /dns/recordtxt/:record", {}),
  record_in_other_domain: ({ harness, record, otherDomain }) =>
    harness.request(`PUT /dns/recorda/${record}`, { DomainId: otherDomain }),
  zone_file_invalid: request("PUT /dns/:domain/zonefile", { ZoneFile: "a A b\n" }),
  peer_network_overlap: tunnels({}, { PeerNetwork: "10.0.1.0/24" }),
  tunnel_type_fixed: (fixture) => tunnels({ Id: fixture.tunnel, Type: "WireGuard", PeerEndpoint: "" })(fixture),
  token_missing: request("GET /dns", undefined, { Authorization: "" }),
  token_invalid: request("GET /dns", undefined, { Authorization: `Bearer ${"0".repeat(64)}` }),
  token_expired: asExpired,
  scope_missing: ({ weak }) => weak.request("GET /dns"),
  token_restricted: asRestricted,
  project_blocked: ({ blocked }) => blocked.request("POST /dns", { Name: "blocked.example" }),
  quota_exceeded: ({ neighbour }) => neighbour.request("POST /dns", { Name: "more.example" }),
  path_not_found: request("GET /nothing"),
  domain_not_found: request("GET /dns/99999"),
  record_not_found: request("GET /dns/record/99999"),
  claim_not_found: request("GET /dns/claim/99999"),
  withdrawn_domain_not_found: request("GET /dns/withdrawn/99999"),
  reservation_not_found: request("DELETE /dns/reservation/99999"),
  public_network_not_found: request("GET /publicnetwork/99999"),
  network_not_found: request("GET /network/99999"),
  tunnel_not_found: request("GET /publicnetwork/:network/vpn/99999/peer"),
  orphan_not_found: request("GET /orphan/99999"),
  sshkey_not_found: request("GET /sshkey/99999"),
  session_not_found: request("DELETE /session/2147483647"),
  token_not_found: request("GET /token/99999"),
  project_not_found: request("GET /project/99999"),
  webhook_not_found: request("GET /webhook/99999"),
  delivery_not_found: async ({ harness }) => {
    const { ID } = await harness.client.createWebhook({ body: { Url: "http://127.0.0.1:9/", Types: ["image.*"] } });
    return harness.request(`POST /webhook/${ID}/delivery/99999/resend`);
  },
  method_not_allowed: request("DELETE /dns"),
  request_timeout: bytes(`POST /dns HTTP/1.1\r\n${auth}Content-Length: 10\r\n\r\n{`),
  idempotency_key_conflict: withUsedKey,
  idempotency_key_busy: withBusyKey,
  action_not_allowed: whileDeleting,
  network_in_use: withServer,
  nothing_to_confirm: request("PUT /publicnetwork/:network/firewall", { Confirm: true }),
  domain_exists: request("POST /dns", { Name: "codes.example" }),
  domain_not_available: request("POST /dns", { Name: "below.theirs.example" }),
  domain_public_suffix: request("POST /dns", { Name: "co.uk" }),
  domain_reserved: request("POST /dns", { Name: "_brume-challenge.codes.example" }),
  reservation_exists: async ({ harness }) => {
    await harness.request("POST /dns/reservation", { Name: "reserved.example" });
    return harness.request("POST /dns/reservation", { Name: "Reserved.Example" });
  },
  title_taken: request("POST /project", { Name: "default" }),
  last_admin_token: ({ harness }) => harness.request("DELETE /token/1"),
  project_in_use: request("DELETE /project/1"),
  etag_mismatch: request("DELETE /dns/:domain", undefined, { "If-Match": '"x"' }),
  body_too_large: request("POST /dns", " ".repeat(1024 * 1024 + 1)),
  media_type_not_supported: request("POST /dns", "<a/>", { "Content-Type": "text/xml" }),
  rate_limited: overRateLimit,
  headers_too_large: bytes(`GET /dns HTTP/1.1\r\n${auth}X-Long: ${"x".repeat(16 * 1024)}\r\n\r\n`),
  internal: onBrokenRow,
  pool_exhausted: request("POST /publicnetwork", { Name: "large", NetworkCapacity: "24" }),
  engine_unavailable: tunnels({
    Type: "WireGuard",
    PeerEndpoint: "",
    PeerPublicKey: Buffer.alloc(32, 1).toString("base64"),
  }),
  // The last two, because they stop the service.
  storage_unavailable: withoutStorage,
  not_ready: whileStopping,
};

const strict = { Prefer: "handling=strict" };
const parts: Record<FieldCode, Produce> = {
  field_required: request("POST /dns", {}),
  type_mismatch: request("POST /dns", { Name: [] }),
  out_of_range: posts("a", { IP: "192.0.2.1", TTL: -1 }),
  too_long: request("POST /dns", { Name: `${"a".repeat(64)}.example` }),
  too_short: request("POST /token", { Name: "x", Scopes: [] }),
  format_invalid: posts("a", { IP: "192.0.2" }),
  value_not_allowed: request("POST /token", { Name: "x", Scopes: ["all"] }),
  unknown_field: request("POST /dns", { Name: "strict.example", Extra: 1 }, strict),
  duplicate_field: request("POST /dns", '{"Name":"a","Name":"b"}', strict),
  fields_conflict: request("POST /dns", { Name: "both.example", Migrate: true, ZoneFile: "a A 192.0.2.1\n" }),
  port_not_allowed: request("PUT /publicnetwork/:network/firewall", {
    Rules: [{ Action: "Allow", Protocol: "Icmp", SourcePort: "1" }],
  }),
  unknown_reference: request("POST /dns/recorda", { DomainId: 99_999, IP: "192.0.2.1" }),
};

/** The name server behind a gate, per database. */
const gates = new Map<Kind, () => () => void>();

async function openGated(kind: Kind): Promise<Nameserver> {
  const nameserver = await createBuiltin({
    host: "127.0.0.1",
    port: 0,
    rateLimit: 0,
    transfer: { addresses: [], keys: [], notify: [] },
    log: () => {},
  });
  let gate = Promise.resolve();
  gates.set(kind, () => {
    let open = (): void => {};
    gate = new Promise((resolve) => {
      open = resolve;
    });
    return open;
  });
  return {
    ...nameserver,
    async publish(changes) {
      await gate;
      return nameserver.publish(changes);
    },
  };
}

onSqlite(
  "codes",
  (harness) => {
    let fixture: CodeFixture;
    before(async () => {
      const { ID, LinkedRecords } = await harness.client.createDomain({
        body: { Name: "codes.example", ZoneFile: "www A 192.0.2.1\nalias CNAME a.b.\ncut NS a.b.\n" },
      });
      // None of the others is an administrator, so that token 1 is the last one.
      const { ID: project } = await harness.client.createProject({
        body: { Name: "neighbour", Quotas: { Domains: 1 } },
      });
      const { token, request, client } = await harness.as(["dns:write"], { ProjectID: project });
      await client.createDomain({ body: { Name: "theirs.example" } });
      const other = await harness.client.createProject({ body: { Name: "blocked" } });
      const blocked = await harness.as(["dns:write"], { ProjectID: other.ID });
      await harness.client.updateProject({ path: { id: other.ID }, body: { IsBlocked: true } });
      const network = await harness.client.createPublicNetwork({ body: { Name: "codes" } });
      const inner = await harness.client.createNetwork({ body: { Name: "codes" } });
      const { Vpn } = await harness.client.configureVpn({
        path: { id: network.Id },
        body: { Tunnels: [{ Name: "first", PeerNetwork: "10.9.0.0/16", PeerEndpoint: "192.0.2.9" }] },
      });
      fixture = {
        harness,
        network: network.Id,
        tunnel: Vpn.Tunnels[0]?.Id ?? 0,
        inner: inner.ID,
        servers: await openServerErrorFixture(harness),
        domain: ID,
        record: LinkedRecords[0]?.ID ?? 0,
        otherDomain: (await harness.domain()).ID,
        neighbour: { token, request, client, project },
        blocked,
        weak: await harness.as(["server:read"]),
        shutGate: () => gates.get(harness.kind)?.() ?? assert.fail("there is no gate"),
      };
    });

    describe("of fields", () => {
      for (const code of fieldCodes)
        test(code, async () => {
          const response = await parts[code](fixture);
          const { errors } = JSON.parse(response.text) as { errors: FieldError[] };
          assert.ok(new Set(errors.map((one) => one.code)).has(code), response.text);
          assert.deepEqual([response.status, response.code], [400, "validation_failed"]);
        });
    });

    describe("of responses", () => {
      const ofServers = Object.entries(serverCodes).map(
        ([code, produce]) => [code, ({ servers }: CodeFixture) => produce(servers)] as [ErrorCode, Produce],
      );
      for (const [code, produce] of [...ofServers, ...(Object.entries(producers) as [ErrorCode, Produce][])])
        test(code, async () => {
          const response = await produce(fixture);
          assert.deepEqual([response.code, response.status], [code, errorCodes[code].status], response.text);
          const problem = JSON.parse(response.text) as { Message: string; detail: string };
          assert.equal(problem.Message, errorCodes[code].message);
          assert.ok(problem.detail.endsWith("."), "the detail is a sentence");
        });
    });
  },
  async (kind) => ({
    nameserver: await openGated(kind),
    limits: { bodyTime: 500 },
    locations: ["Local", "Far"],
    publicPool: "10.64.0.0/24",
    offers: { ipsec: true, wireguard: false },
  }),
);
