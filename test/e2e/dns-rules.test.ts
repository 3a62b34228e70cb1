/**
 * Rules between records (docs/spec.md#record, #record-endpoints): which records can coexist, the order of the checks, what an edit keeps,
 * what the name server serves when a response arrives, and what happens while the name server is slow.
 */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { Client } from "@brume/api/client.ts";
import type { DnsRecord } from "@brume/api/dns.ts";
import { createBuiltin } from "../../service/src/drivers/nameserver/builtin/builtin.ts";
import type { Nameserver } from "../../service/src/drivers/nameserver/interface.ts";
import { type Caller, onSqlite, refused } from "../support/harness.ts";
import { createTestService, type TestService } from "../support/testservice.ts";

onSqlite("rules", (harness) => {
  let domain: number;
  let zone: string;
  const serial = async () => (await harness.client.readDomain({ path: { id: domain } })).Serial;
  const a = (Name: string, IP = "192.0.2.1") => harness.client.createRecordA({ body: { DomainId: domain, Name, IP } });
  const cname = (MnemonicName: string, Name: string) =>
    harness.client.createRecordCNAME({ body: { DomainId: domain, MnemonicName, Name } });
  const ns = (HostName: string, Name = "ns.example.net") =>
    harness.client.createRecordNS({ body: { DomainId: domain, HostName, Name } });
  const txt = (Name: string, Text = "a") => harness.client.createRecordTXT({ body: { DomainId: domain, Name, Text } });
  const mx = (Name: string, HostName = "mail") =>
    harness.client.createRecordMX({ body: { DomainId: domain, Name, HostName } });
  const erase = async (...records: DnsRecord[]) => {
    for (const { ID } of records) await harness.client.deleteRecord({ path: { domainid: domain, recordId: ID } });
  };

  before(async () => {
    const made = await harness.domain();
    domain = made.ID;
    zone = made.Name;
  });

  test("a record set is limited to the size of one DNS response", async () => {
    const text = (i: number, size: number) => `${i}`.padEnd(size, "x");
    const texts = Array.from({ length: 15 }, (_, i) => text(i, 4096));
    // 15 records of 4,125 bytes; the last one fills the set up to 64,000 bytes.
    const most = text(15, 2104);
    const path = { id: domain };
    const spec = (Text: string) => ({ Op: "Create" as const, TypeRecord: "TXT" as const, Name: "full", Text });
    const change = (list: readonly string[]) =>
      harness.client.changeRecords({ path, body: { Changes: list.map(spec) } });
    await refused(change([...texts, `${most}x`]), "validation_failed", { "/Changes/15/Name": "too_long" });
    const { Records } = await change(texts);
    await refused(txt("full", `${most}x`), "validation_failed", { "/Name": "too_long" });
    const zoneFile = `other A 192.0.2.1\nfull TXT ${(`${most}x`.match(/.{1,255}/g) ?? []).map((part) => `"${part}"`).join(" ")}\n`;
    const body = { ZoneFile: zoneFile, Mode: "Merge" as const };
    const { errors } = await refused(harness.client.importZone({ path, body }), "zone_file_invalid");
    assert.match(
      errors[0]?.detail ?? "",
      /^line 2: .*TXT records at full\..* together they may have at most 64,000 bytes/,
    );
    const last = await txt("full", most);
    assert.deepEqual(await harness.lookUp(`full.${zone}`, "TXT"), [...texts, most].sort());
    await refused(txt("full", "y"), "validation_failed", { "/Name": "too_long" });
    const edit = (Text: string) => harness.client.updateRecordTXT({ path: { id: last.ID }, body: { Text } });
    await refused(edit(`${most}x`), "validation_failed", { "/Name": "too_long" });
    await erase(await edit("short"), await mx("full"), await txt("fuller", "y"));
    await erase(...Records.flatMap(({ After }) => (After === null ? [] : [After])));
  });

  describe("duplicates", () => {
    const sentence = "Подобная запись для данного домена уже существует";

    test("names are compared case-insensitively, and TTLs are ignored", async () => {
      const client = harness.client;
      const made = await mx("twin", "Mail.Example.NET");
      const again = client.createRecordMX({
        body: { DomainId: domain, Name: `TWIN.${zone}.`, HostName: "mail.EXAMPLE.net.", TTL: 5 },
      });
      const error = await refused(again, "record_exists", { "": "record_exists" });
      assert.deepEqual(error.problem?.ModelState, { "": [sentence] });
      assert.equal(error.status, 400);
      const other = await client.createRecordMX({
        body: { DomainId: domain, Name: "twin", HostName: "mail.example.net", Priority: 1 },
      });
      const edit = client.updateRecordMX({ path: { id: other.ID }, body: { Priority: 0 } });
      assert.deepEqual((await refused(edit, "record_exists")).problem?.ModelState, { "": [sentence] });
      await erase(made, other);
    });

    test("the strings of a TXT are compared with their letter case, without their quotes", async () => {
      const made = await txt("twin", "Abc");
      await refused(txt("twin", '"Abc" '), "record_exists");
      await erase(made, await txt("twin", "abc"), await txt("twin", '"A" "bc"'));
    });

    test("an address in any notation can exist once per name", async () => {
      const six = (Name: string, IP: string) =>
        harness.client.createRecordAAAA({ body: { DomainId: domain, Name, IP } });
      const made = await six("six", "2001:db8::1");
      await refused(six("six", "2001:0DB8:0:0::0001"), "record_exists");
      await erase(made, await six("six", "2001:db8::2"), await six("seven", "2001:db8::1"));
    });
  });

  describe("a CNAME", () => {
    test("is not allowed at the zone apex", async () => {
      for (const alias of ["@", zone, `${zone}.`])
        await refused(cname(alias, "a.b"), "cname_at_apex", { "/MnemonicName": "cname_at_apex" });
    });

    test("excludes other records, in any order of creation", async () => {
      const alias = await cname("alone", "a.b");
      await refused(a("alone"), "cname_conflict", { "/Name": "cname_conflict" });
      await refused(txt("ALONE"), "cname_conflict");
      await refused(ns("alone"), "cname_conflict", { "/HostName": "cname_conflict" });
      await refused(cname("alone", "a.c"), "cname_conflict");
      await refused(cname("alone", "A.B."), "record_exists");
      const below = await a("x.alone");
      await erase(alias, below);
      await erase(await a("alone"));
      const address = await a("alone2");
      await refused(cname("alone2", "a.b"), "cname_conflict", { "/MnemonicName": "cname_conflict" });
      await erase(address);
    });

    test("can get another target by an edit, but not a name with other records", async () => {
      const alias = await cname("moving", "a.b");
      const address = await a("taken");
      const edit = (body: object) => harness.client.updateRecordCNAME({ path: { id: alias.ID }, body });
      assert.equal((await edit({ Name: "c.d" })).HostName, "c.d.");
      await refused(edit({ MnemonicName: "taken" }), "cname_conflict");
      await refused(edit({ MnemonicName: "@" }), "cname_at_apex");
      assert.equal((await edit({ MnemonicName: "moved" })).MnemonicName, `moved.${zone}.`);
      assert.deepEqual(await harness.lookUp(`moving.${zone}`, "CNAME"), "ENOTFOUND");
      assert.deepEqual(await harness.lookUp(`moved.${zone}`, "CNAME"), ["c.d"]);
      await erase(alias, address);
    });

    test("cannot be an alias of itself", async () => {
      await refused(cname("loop", "loop"), "validation_failed", { "/Name": "format_invalid" });
      await refused(cname("loop", `LOOP.${zone}`), "validation_failed", { "/Name": "format_invalid" });
      const alias = await cname("loop", "other");
      const edit = harness.client.updateRecordCNAME({ path: { id: alias.ID }, body: { MnemonicName: "other" } });
      await refused(edit, "validation_failed", { "/MnemonicName": "format_invalid" });
      await erase(alias);
    });
  });

  describe("a delegated name", () => {
    test("can have NS records and addresses, and below it only addresses", async () => {
      const cut = [await ns("lab"), await ns("lab", "ns2.example.net")];
      const glue = [await a("lab"), await a("ns.lab"), await a("*.deep.lab")];
      for (const make of [
        () => txt("lab"),
        () => mx("x.lab"),
        () => ns("x.lab"),
        () => cname("y.lab", "a.b"),
        () => txt("a.b.lab"),
      ])
        await refused(make(), "delegation_conflict");
      const service = { DomainId: domain, Name: "lab", Service: "sip", Proto: "tcp", Port: 1, Target: "a.b" };
      await refused(harness.client.createRecordSRV({ body: service }), "delegation_conflict", {
        "/Name": "delegation_conflict",
      });
      await erase(...cut, ...glue);
      await erase(await txt("lab"));
    });

    test("cannot be created above records that it would exclude", async () => {
      const below = await txt("x.cut");
      await refused(ns("cut"), "delegation_conflict", { "/HostName": "delegation_conflict" });
      await erase(below);
      const at = await mx("cut");
      await refused(ns("cut"), "delegation_conflict");
      await erase(at);
      const deeper = await ns("x.cut");
      await refused(ns("cut"), "delegation_conflict");
      await erase(deeper);
      await erase(await ns("cut"));
    });

    test("is not affected by NS records at the apex", async () => {
      const existing = [await ns("@", "ns1.example.net"), await txt("@"), await mx("@"), await ns("sub")];
      assert.deepEqual(await harness.lookUp(zone, "NS"), ["ns1.example.net"]);
      await erase(...existing);
      assert.deepEqual(await harness.lookUp(zone, "NS"), ["ns1.brume.internal"]);
    });
  });

  describe("the order of checks", () => {
    let restricted: Caller;
    let small: Caller & { readonly project: number };
    before(async () => {
      restricted = await harness.as(["dns:write"], {
        DomainID: domain,
        RecordPattern: "mine*",
        RecordTypes: ["A", "CNAME"],
      });
      small = await harness.neighbour({ RecordsPerDomain: 1 });
    });

    test("of a create", async () => {
      const post = async (caller: Caller, type: string, body: object) =>
        (await caller.request(`POST /dns/record${type}`, body)).code;
      // Each line has a second error that a later check would report.
      assert.equal(await post(harness, "a", { DomainId: 9999, Name: "x.org.", IP: "x" }), "validation_failed");
      assert.equal(await post(harness, "a", { DomainId: domain, Name: "x.org.", IP: "x" }), "validation_failed");
      assert.equal(
        await post(restricted, "a", { DomainId: domain, Name: "x.org.", IP: "192.0.2.1" }),
        "name_outside_domain",
      );
      const alias = await cname("notmine", "a.b");
      assert.equal(
        await post(restricted, "a", { DomainId: domain, Name: "notmine", IP: "192.0.2.1" }),
        "token_restricted",
      );
      await erase(alias);
      const ownDomain = await small.client.createDomain({ body: { Name: "small.example", Ip: "192.0.2.1" } });
      const apex = { DomainId: ownDomain.ID, MnemonicName: "@", Name: "a.b" };
      assert.equal(await post(small, "cname", apex), "quota_exceeded");
      assert.equal(await post(small, "a", { DomainId: ownDomain.ID, IP: "192.0.2.1" }), "quota_exceeded");
      const cut = [await ns("both"), await a("both")];
      assert.equal(
        await post(harness, "cname", { DomainId: domain, MnemonicName: "both", Name: "a.b" }),
        "cname_conflict",
      );
      await erase(...cut);
    });

    test("of an edit", async () => {
      const record = await a("edit");
      const other = await harness.domain();
      const put = async (line: string, body: object, more?: Record<string, string>) =>
        (await harness.request(line, body, more)).code;
      assert.equal(await put("PUT /dns/recorda/99999", { DomainId: "x" }), "validation_failed");
      assert.equal(await put("PUT /dns/recorda/99999", { DomainId: 9999 }), "record_not_found");
      assert.equal(
        await put(`PUT /dns/recordtxt/${record.ID}`, { DomainId: other.ID }, { "If-Match": '"x"' }),
        "etag_mismatch",
      );
      assert.equal(await put(`PUT /dns/recordtxt/${record.ID}`, { DomainId: other.ID }), "record_type_mismatch");
      assert.equal(
        await put(`PUT /dns/recorda/${record.ID}`, { DomainId: other.ID, IP: "x" }),
        "record_in_other_domain",
      );
      assert.equal(await put(`PUT /dns/recorda/${record.ID}`, { DomainId: domain, IP: "x" }), "validation_failed");
      const wrong = { path: { id: record.ID }, body: { DomainId: other.ID } };
      await refused(harness.client.updateRecordA(wrong), "record_in_other_domain", {
        "/DomainId": "record_in_other_domain",
      });
      await erase(record);
    });

    test("of a deletion", async () => {
      const record = await a("gone");
      const other = await harness.domain();
      const code = async (line: string) => (await harness.request(line)).code;
      assert.equal(await code(`DELETE /dns/99999/${record.ID}`), "domain_not_found");
      assert.equal(await code(`DELETE /dns/${domain}/99999`), "record_not_found");
      assert.equal(await code(`DELETE /dns/${other.ID}/${record.ID}`), "record_not_found");
      assert.equal(await code(`DELETE /dns/record/${record.ID}`), "method_not_allowed");
      await erase(record);
      assert.equal(await code(`DELETE /dns/${domain}/${record.ID}`), "record_not_found");
      assert.equal(await code(`GET /dns/record/${record.ID}`), "record_not_found");
    });
  });

  describe("an edit", () => {
    test("keeps the fields that are absent, including the owner", async () => {
      const made = await harness.client.createRecordSRV({
        body: {
          DomainId: domain,
          Name: "chat",
          Service: "xmpp",
          Proto: "tcp",
          Priority: 1,
          Weight: 2,
          Port: 3,
          Target: "t",
          TTL: 60,
          Labels: { a: "b" },
        },
      });
      const edit = (body: object) => harness.client.updateRecordSRV({ path: { id: made.ID }, body });
      assert.deepEqual(await edit({ Weight: 9 }), {
        ...made,
        Weight: "9",
        CanonicalDescription: made.CanonicalDescription.replace(" 1 2 3 ", " 1 9 3 "),
      });
      assert.deepEqual(await edit({ Weight: 2, Name: "", Service: "", Target: null, TTL: "" }), made);
      const moved = await edit({ Name: "@", Proto: "udp" });
      assert.deepEqual([moved.HostName, moved.Service, moved.Proto, moved.Priority], ["@", "_xmpp.", "udp", "1"]);
      assert.equal(await harness.lookUp(`_xmpp._tcp.chat.${zone}`, "SRV"), "ENOTFOUND");
      assert.deepEqual(await harness.lookUp(`_xmpp._udp.${zone}`, "SRV"), [
        JSON.stringify({ name: `t.${zone}`, port: 3, priority: 1, weight: 2 }),
      ]);
      await erase(made);
    });

    test("can be repeated, and does not change the serial if nothing changes", async () => {
      const made = await a("same");
      const at = await serial();
      for (const body of [{}, { IP: "192.0.2.1" }, { Name: `SAME.${zone}`, TTL: "3600" }, made])
        assert.deepEqual(await harness.client.updateRecordA({ path: { id: made.ID }, body: body as object }), made);
      assert.equal(await serial(), at);
      await harness.client.updateRecordA({ path: { id: made.ID }, body: { TTL: 1 } });
      assert.ok((await serial()) > at);
      await erase(made);
    });

    test("changes the ETag of the record and of its domain only if something changes", async () => {
      const made = await harness.client.raw.createRecordA({ body: { DomainId: domain, Name: "tag", IP: "192.0.2.1" } });
      const path = { id: made.answer.ID };
      const tags = async () => [
        (await harness.client.raw.readRecord({ path })).etag,
        (await harness.client.raw.readDomain({ path: { id: domain } })).etag,
      ];
      const before = await tags();
      assert.equal(before[0], made.etag);
      assert.equal((await harness.client.raw.updateRecordA({ path, body: {} })).etag, made.etag);
      assert.deepEqual(await tags(), before);
      const edited = await harness.client.raw.updateRecordA(
        { path, body: { Labels: { a: "" } } },
        { ifMatch: made.etag ?? "" },
      );
      const after = await tags();
      assert.equal(after[0], edited.etag);
      assert.notEqual(after[0], before[0]);
      assert.notEqual(after[1], before[1]);
      const late = harness.client.updateRecordA({ path, body: { TTL: 2 } }, { ifMatch: made.etag ?? "" });
      assert.equal((await refused(late, "etag_mismatch")).headers.get("etag"), edited.etag);
      await erase(made.answer);
    });
  });

  test("a set is served with the smallest of its TTLs", async () => {
    const made = [await a("ttl", "192.0.2.1"), await a("ttl", "192.0.2.2")];
    await harness.client.updateRecordA({ path: { id: made[1]?.ID ?? 0 }, body: { TTL: 7 } });
    const found = await harness.brume.resolver.resolve4(`ttl.${zone}`, { ttl: true });
    assert.deepEqual(found.map(({ address, ttl }) => `${address} ${ttl}`).sort(), ["192.0.2.1 7", "192.0.2.2 7"]);
    assert.equal((await harness.client.readRecord({ path: { id: made[0]?.ID ?? 0 } })).TTL, 3600);
    await erase(...made);
  });
});

describe("a name server that is slow", () => {
  let brume: TestService;
  let client: Client;
  let nameserver: Nameserver;
  let gate: Promise<void> = Promise.resolve();
  before(async () => {
    nameserver = await createBuiltin({
      host: "127.0.0.1",
      port: 0,
      rateLimit: 0,
      transfer: { addresses: [], keys: [], notify: [] },
      log: () => {},
    });
    const publish: Nameserver["publish"] = async (changes) => {
      await gate;
      return nameserver.publish(changes);
    };
    brume = await createTestService("sqlite", { nameserver: { ...nameserver, publish } });
    client = brume.client;
  });
  after(() => brume.close());

  test("leaves records New until they are served, then Active", async () => {
    const domain = await client.createDomain({ body: { Name: "slow.example" } });
    let open = (): void => {};
    gate = new Promise((resolve) => {
      open = resolve;
    });
    const body = { DomainId: domain.ID, Name: "www", IP: "192.0.2.1" };
    const made = await client.createRecordA({ body }, { wait: 0 });
    assert.equal(made.State, "New");
    assert.equal((await client.readDomain({ path: { id: domain.ID } })).State, "New");
    assert.deepEqual((await client.listDomains({ query: { state: "New" } })).length, 1);
    const waiting = client.raw.createRecordA({ body: { ...body, IP: "192.0.2.2" } }, { wait: 60 });
    await client.readRecord({ path: { id: made.ID } });
    open();
    const { answer, headers } = await waiting;
    assert.deepEqual([answer.State, headers.get("preference-applied")], ["Active", "wait=60"]);
    assert.equal((await client.readRecord({ path: { id: made.ID } })).State, "Active");
    assert.deepEqual(await brume.resolver.resolve4("www.slow.example"), ["192.0.2.1", "192.0.2.2"]);
  });

  test("delays a response by at most two seconds", async () => {
    let open = (): void => {};
    gate = new Promise((resolve) => {
      open = resolve;
    });
    const domain = await client.createDomain({ body: { Name: "slower.example" } });
    assert.equal(domain.State, "New");
    open();
    const settled = await client.waitFor("readDomain", { path: { id: domain.ID } });
    assert.equal(settled.State, "Active");
  });
});
