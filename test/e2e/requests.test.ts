/**
 * Parsing of requests (docs/spec.md#base-address-and-paths, #order-of-checks, #authentication, #reading-the-request-body, #coercion,
 * #strict-mode, #responses, #dates-ids-names-labels), shown with domains and records: paths, order of checks, bodies and strict mode.
 */
import assert from "node:assert/strict";
import { before, describe, test } from "node:test";
import { createClient } from "@brume/api/client.ts";
import type { DnsRecord, Domain } from "@brume/api/dns.ts";
import { type Caller, onSqlite, type TestResponse } from "../support/harness.ts";
import { dial } from "../support/httpsocket.ts";

/** Returns the code of each entry of `errors`, by pointer. */
const errorsOf = ({ json }: TestResponse): Record<string, string> =>
  Object.fromEntries(
    (json as { errors: { pointer: string; code: string }[] }).errors.map((one) => [one.pointer, one.code]),
  );

onSqlite("requests", (harness) => {
  let domain: Domain;
  let record: number;
  before(async () => {
    domain = await harness.domain({ Ip: "192.0.2.1" });
    record = domain.LinkedRecords[0]?.ID ?? 0;
  });

  describe("addresses", () => {
    test("ignore letter case, doubled slashes, encoding and origin", async () => {
      const line = await dial(Number(new URL(harness.brume.url).port));
      for (const target of [
        `/dns/${domain.ID}`,
        `/DNS/${domain.ID}/`,
        `//dns///${domain.ID}`,
        `/%64ns/%${domain.ID.toString().charCodeAt(0).toString(16)}${domain.ID.toString().slice(1)}`,
        `/Dns/${domain.ID}?`,
        `/dns/${domain.ID}?Name=other&State=New&TTL=60`,
        `http://anything:99/dns/${domain.ID}`,
        `/dns/000${domain.ID}`,
      ]) {
        line.send(`GET ${target} HTTP/1.1\r\nAuthorization: Bearer ${harness.token}\r\n\r\n`);
        const response = await line.receive();
        assert.equal(response.status, 200, target);
        assert.equal((JSON.parse(response.body) as Domain).ID, domain.ID, target);
      }
      line.close();
    });
    test("with an invalid id match nothing", async () => {
      for (const id of ["0", "-1", "2147483648", "99999999999", "1.0", "x", "1e3", "%20", "１"]) {
        assert.equal((await harness.request(`GET /dns/${id}`)).code, "domain_not_found", id);
        assert.equal((await harness.request(`GET /dns/record/${id}`)).code, "record_not_found", id);
        assert.equal((await harness.request(`GET /token/${id}`)).code, "token_not_found", id);
        assert.equal((await harness.request(`DELETE /dns/${id}/${record}`)).code, "domain_not_found", id);
        assert.equal((await harness.request(`DELETE /dns/${domain.ID}/${id}`)).code, "record_not_found", id);
      }
    });
    test("prefer a literal segment, and allow only its methods", async () => {
      const response = await harness.request("DELETE /dns/record/5");
      assert.equal(response.code, "method_not_allowed");
      assert.deepEqual(response.headers.get("allow")?.split(", ").sort(), ["GET", "HEAD", "OPTIONS"]);
      assert.equal((await harness.request("PATCH /dns")).code, "method_not_allowed");
      assert.equal((await harness.request("GET /dns/recorda")).code, "method_not_allowed");
      for (const path of ["/domains", "/dns/1/2/3", "/servers"])
        assert.equal((await harness.request(`GET ${path}`)).code, "path_not_found");
    });
    test("of reads accept HEAD, and all accept OPTIONS without a token", async () => {
      const get = await harness.request(`GET /dns/${domain.ID}`);
      const head = await harness.request(`HEAD /dns/${domain.ID}`);
      assert.equal(head.text, "");
      for (const name of ["content-length", "content-type", "etag"])
        assert.equal(head.headers.get(name), get.headers.get(name));
      const options = await harness.request("OPTIONS /dns", undefined, { Authorization: "" });
      assert.deepEqual([options.status, options.headers.get("content-length")], [200, "0"]);
      assert.deepEqual(options.headers.get("allow")?.split(", ").sort(), ["GET", "HEAD", "OPTIONS", "POST"]);
      assert.equal(options.headers.get("access-control-allow-methods"), options.headers.get("allow"));
      assert.equal(
        options.headers.get("access-control-allow-headers"),
        "Authorization, Content-Range, Content-Type, Idempotency-Key, If-Match, Prefer, Last-Event-ID, X-Request-Id",
      );
      assert.equal(options.headers.get("access-control-max-age"), "86400");
    });
    test("return the request id of the client", async () => {
      const withId = await harness.request("GET /dns", undefined, { "X-Request-Id": "Mine.1_2-3" });
      assert.equal(withId.headers.get("x-request-id"), "Mine.1_2-3");
      for (const id of ["a b", "x".repeat(129), "ä"].slice(0, 2))
        assert.notEqual(
          (await harness.request("GET /dns", undefined, { "X-Request-Id": id })).headers.get("x-request-id"),
          id,
        );
    });
  });
  describe("the first check that fails decides", () => {
    let weak: Caller;
    let blocked: Caller;
    before(async () => {
      weak = await harness.as(["server:read"]);
      const other = await harness.neighbour();
      await harness.client.updateProject({ path: { id: other.project }, body: { IsBlocked: true } });
      blocked = other;
    });
    const none = { Authorization: "" };
    const key = { "Idempotency-Key": "a b" };
    const cases: [what: string, () => Promise<TestResponse>, code: string][] = [
      ["path before method and token", () => harness.request("PATCH /nothing", "{", none), "path_not_found"],
      ["method before token", () => harness.request("PATCH /dns", "{", none), "method_not_allowed"],
      ["token before scope and body", () => harness.request("POST /dns", "{", none), "token_missing"],
      ["scope before body and id", () => weak.request("PUT /dns/x", "{"), "scope_missing"],
      ["project before body", () => blocked.request("POST /dns", "{", key), "project_blocked"],
      ["body before key", () => harness.request("POST /dns", "{", key), "body_not_readable"],
      [
        "type before key",
        () => harness.request("POST /dns", "a=b", { ...key, "Content-Type": "image/png" }),
        "media_type_not_supported",
      ],
      ["key before fields", () => harness.request("POST /dns", {}, key), "idempotency_key_invalid"],
      ["fields before objects", () => harness.request("PUT /dns/recorda/99999", { TTL: -1 }), "validation_failed"],
      [
        "objects before their tags",
        () => harness.request("PUT /dns/recorda/99999", {}, { "If-Match": '"x"' }),
        "record_not_found",
      ],
      [
        "tags before rules",
        () => harness.request(`PUT /dns/recordtxt/${record}`, {}, { "If-Match": '"x"' }),
        "etag_mismatch",
      ],
      [
        "rules last",
        () => harness.request(`PUT /dns/recordtxt/${record}`, {}, { "If-Match": "*" }),
        "record_type_mismatch",
      ],
    ];
    for (const [what, ask, code] of cases) test(what, async () => assert.equal((await ask()).code, code));
    test("but errors of fields are reported together, in the order of the contract", async () => {
      const response = await harness.request("POST /token", {
        Scopes: "all",
        ExpiresAt: 5,
        RateLimit: { Requests: "x" },
      });
      assert.deepEqual(Object.entries(errorsOf(response)), [
        ["/Name", "field_required"],
        ["/Scopes/0", "value_not_allowed"],
        ["/ExpiresAt", "type_mismatch"],
        ["/RateLimit/Requests", "type_mismatch"],
        ["/RateLimit/Seconds", "field_required"],
      ]);
      const { ModelState, detail } = response.json as { ModelState: object; detail: string };
      assert.deepEqual(Object.keys(ModelState), [
        "Name",
        "Scopes[0]",
        "ExpiresAt",
        "RateLimit.Requests",
        "RateLimit.Seconds",
      ]);
      assert.equal(detail, "5 fields are not valid.");
    });
  });
  describe("bodies", () => {
    const post = (body: string, type?: string) =>
      harness.request("POST /dns/recorda?dryRun=1", body, type === undefined ? {} : { "Content-Type": type });
    const good: [string, string, string?][] = [
      [
        "of single quotes and Python's words",
        "{'DomainId':D,'IP':'192.0.2.9','Name':'it\\'s' , 'Labels':None}".replace("it\\'s", "its"),
      ],
      ["with a field in any letter case, the last counts", '{"DomainId":D,"ip":"x","IP":"192.0.2.8","iP":"192.0.2.9"}'],
      [
        "with unknown fields and those of responses",
        '{"DomainId":D,"IP":"192.0.2.9","ID":77,"State":"Gone","Extra":[{}]}',
      ],
      [
        "with null and empty fields",
        '{"DomainId":"D","IP":"192.0.2.9","Name":null,"HostName":"","TTL":"","Labels":""}',
      ],
      ["of a form with a repeated field", "DomainId=1&DomainId=D&IP=192.0.2.9&&Name"],
      ["of a form with labels", "DomainId=D&IP=192.0.2.9&Labels[a]=b&Labels%5Bc%5D="],
      [
        "under any type that ends in +json",
        '{"DomainId":D,"IP":"192.0.2.9"}',
        "Application/Vnd.X+JSON; charset=latin1",
      ],
      ["with blanks around", '\ufeff \r\n{"DomainId": D ,"IP":" 192.0.2.9\\u00a0"}\n'],
    ];
    for (const [what, body, type] of good)
      test(what, async () => {
        const response = await post(
          body
            .replaceAll("D,", `${domain.ID},`)
            .replaceAll(/=D(?=&)|"D"|: D /g, (found) => found.replace("D", String(domain.ID))),
          type,
        );
        assert.equal(response.status, 200, response.text);
        assert.equal((response.json as DnsRecord).IP, "192.0.2.9");
        assert.equal((response.json as DnsRecord).HostName, what.includes("Python") ? `its.${domain.Name}.` : "@");
      });
    const bad: [string, string, string, string?][] = [
      ["broken JSON", '{"IP":', "body_not_readable"],
      ["what is neither JSON nor a form", "hello", "body_not_readable"],
      ["too deep", `{"a":${"[".repeat(32)}${"]".repeat(32)}}`, "body_not_readable"],
      ["a list", "[1]", "body_not_object"],
      ["a form with broken escapes", "IP=%zz", "body_not_readable"],
      ["a file", "--x\r\n", "media_type_not_supported", "multipart/form-data; boundary=x"],
      ["XML", "<a/>", "media_type_not_supported", "application/xml"],
    ];
    for (const [what, body, code, type] of bad)
      test(`${what} is rejected`, async () => assert.equal((await post(body, type)).code, code));
    test("that are compressed are rejected", async () => {
      const pack = (encoding: string) =>
        harness.request("POST /dns?dryRun=1", '{"Name":"packed.example"}', { "Content-Encoding": encoding });
      assert.equal((await pack("gzip")).code, "media_type_not_supported");
      assert.equal((await pack("Identity")).status, 200);
    });

    test("an empty body is an object without fields", async () => {
      for (const body of [undefined, "", " \n"]) {
        const response = await harness.request("POST /dns", body);
        assert.deepEqual(errorsOf(response), { "/Name": "field_required" });
      }
      assert.equal((await harness.request(`PUT /dns/recorda/${record}`)).status, 200);
    });

    test("an empty text counts as absent in a required field", async () => {
      assert.deepEqual(errorsOf(await harness.request("POST /dns", { Name: "" })), { "/Name": "field_required" });
      assert.deepEqual(errorsOf(await harness.request("POST /project", { Name: "" })), { "/Name": "field_required" });
      const empty = await harness.request(`PUT /dns/${domain.ID}/zonefile`, { ZoneFile: "" });
      assert.deepEqual(errorsOf(empty), { "/ZoneFile": "field_required" });
    });

    test("the id 0 counts as absent in an optional field", async () => {
      const response = await harness.request(`PUT /dns/recorda/${record}`, { DomainId: 0 });
      assert.equal(response.status, 200, response.text);
      const token = await harness.request("POST /token?dryRun=1", {
        Name: "zero",
        Scopes: "dns:read",
        DomainID: "0",
        ProjectID: 0,
      });
      assert.equal(token.status, 200, token.text);
    });

    test("query parameters are not fields of the body", async () => {
      const response = await harness.request(`POST /dns/recorda?DomainId=${domain.ID}&IP=192.0.2.1&dryRun=true`, {});
      assert.deepEqual(errorsOf(response), { "/DomainId": "field_required" });
    });

    test("a body is limited to 1 MB, a header to 16 kB", async () => {
      const large = await harness.request("POST /dns", JSON.stringify({ Name: "a".repeat(1024 * 1024) }));
      assert.deepEqual([large.status, large.code], [413, "body_too_large"]);
      const line = await dial(Number(new URL(harness.brume.url).port));
      line.send(`GET /dns HTTP/1.1\r\nX-Long: ${"a".repeat(16 * 1024)}\r\n\r\n`);
      assert.equal((await line.receive()).status, 431);
      line.close();
      const long = await harness.request(`GET /dns?x=${"a".repeat(8 * 1024)}`);
      assert.equal(long.code, "path_not_readable");
    });
  });

  describe("strict mode", () => {
    const strict = { Prefer: "handling=strict" };
    const post = (body: object | string, more = {}) =>
      harness.request("POST /dns/recordmx?dryRun=true", body, { ...strict, ...more });

    test("parses requests literally, and confirms it", async () => {
      const response = await post({ DomainId: domain.ID, HostName: "mail", Priority: 10, TTL: 60 });
      assert.deepEqual([response.status, response.headers.get("preference-applied")], [200, "handling=strict"]);
      const form = await post(`DomainId=${domain.ID}&HostName=mail&Priority=10`, {
        "Content-Type": "application/x-www-form-urlencoded",
      });
      assert.equal(form.status, 200, form.text);
      const client = createClient({ url: harness.brume.url, token: harness.token, strict: true });
      assert.equal(
        (await client.createRecordMX({ body: { DomainId: domain.ID, HostName: "mail" } }, { dryRun: true })).ID,
        0,
      );
    });

    const cases: [string, object | string, Record<string, string>][] = [
      [
        "unknown fields, also those of responses, because it creates",
        { DomainId: 1, HostName: "a", Extra: 1, IP: "x" },
        { "/Extra": "unknown_field", "/IP": "unknown_field" },
      ],
      ["another spelling", { DomainId: 1, HostName: "a", name: "b" }, { "/name": "unknown_field" }],
      [
        "texts for numbers",
        { DomainId: "1", HostName: "a", TTL: "60" },
        { "/DomainId": "type_mismatch", "/TTL": "type_mismatch" },
      ],
      ["fractions that are none", '{"DomainId":1,"HostName":"a","Priority":10.0}', { "/Priority": "type_mismatch" }],
      ["a field given twice", '{"DomainId":1,"DomainId":1,"HostName":"a"}', { "/DomainId": "duplicate_field" }],
    ];
    for (const [what, body, errors] of cases)
      test(`rejects ${what}`, async () => {
        const response = await post(body, { "Content-Type": "application/json" });
        assert.equal(response.code, "validation_failed", response.text);
        assert.deepEqual(errorsOf(response), errors);
        assert.equal(response.headers.get("preference-applied"), "handling=strict");
      });

    test("rejects relaxed JSON, forms under JSON types, and unknown queries", async () => {
      assert.equal((await post("{'DomainId':1}")).code, "body_not_readable");
      assert.equal((await post("DomainId=1", { "Content-Type": "application/json" })).code, "body_not_readable");
      const twice = await harness.request("GET /dns?state=x&state=y&nam=x", undefined, strict);
      assert.deepEqual(errorsOf(twice), { "?state": "duplicate_field", "?nam": "unknown_field" });
      assert.deepEqual(errorsOf(await harness.request("GET /dns?nam=x", undefined, strict)), {
        "?nam": "unknown_field",
      });
      assert.equal((await harness.request("GET /dns?nam=x")).status, 200);
    });

    test("requires the exact letter case of values", async () => {
      const change = { op: "create", Op: "create", TypeRecord: "a", IP: "192.0.2.1" };
      const response = await harness.request(
        `POST /dns/${domain.ID}/changeset?dryRun=true`,
        { Changes: [change] },
        strict,
      );
      assert.deepEqual(errorsOf(response), {
        "/Changes/0/Op": "value_not_allowed",
        "/Changes/0/TypeRecord": "value_not_allowed",
        "/Changes/0/op": "unknown_field",
      });
    });
  });
});
