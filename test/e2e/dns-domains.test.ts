/**
 * Domains (docs/spec.md#domain, #domain-endpoints): names, initial content, automatic records, ownership, lists, and deletion from the
 * name server.
 */
import assert from "node:assert/strict";
import { before, describe, test } from "node:test";
import type { Domain } from "@brume/api/dns.ts";
import { run } from "../support/dnstools.ts";
import { type Caller, onSqliteFirst, refused } from "../support/harness.ts";

onSqliteFirst("domains", (harness) => {
  const create = (body: object) => harness.client.createDomain({ body: body as { Name: string } });
  const read = (id: number) => harness.client.readDomain({ path: { id } });
  const erase = (domain: Domain) => harness.client.deleteDomain({ path: { id: domain.ID } });

  describe("names", () => {
    const names: [given: string, name: string, ascii?: string][] = [
      ["names.example", "names.example"],
      [" NAMES.Example. ", "names.example"],
      ["bücher.example", "bücher.example", "xn--bcher-kva.example"],
      ["XN--BCHER-KVA.example", "bücher.example", "xn--bcher-kva.example"],
      ["faß.example", "faß.example", "xn--fa-hia.example"],
      ["ДОМ.РФ", "дом.рф", "xn--d1aqf.xn--p1ai"],
      ["single", "single"],
      ["_tcp.under_score.example", "_tcp.under_score.example"],
      ["2.0.192.in-addr.arpa", "2.0.192.in-addr.arpa"],
      [`${"a.".repeat(126)}b`, `${"a.".repeat(126)}b`],
      [`${"a".repeat(63)}.example`, `${"a".repeat(63)}.example`],
    ];
    for (const [given, Name, NamePunyCode = Name] of names)
      test(`${given.slice(0, 30)} is ${NamePunyCode.slice(0, 30)}`, async () => {
        const domain = await create({ Name: given });
        const TechName = NamePunyCode.replaceAll(".", "_");
        assert.deepEqual(
          { ...domain, ID: 0, Serial: 0, DateCreate: "" },
          {
            ID: 0,
            Name,
            NamePunyCode,
            TechName,
            State: "Active",
            DateCreate: "",
            IsDelegate: false,
            LinkedRecords: [],
            NameServers: ["ns1.brume.internal"],
            Serial: 0,
            Import: null,
            Delegation: "Unknown",
            Labels: {},
          },
        );
        assert.deepEqual(await harness.lookUp(NamePunyCode, "NS"), ["ns1.brume.internal"]);
        await erase(domain);
      });

    test("that are invalid are rejected", async () => {
      for (const Name of ["a..b", ".", ".a", "-a.b", "a-.b", "a b", "*.a", "192.0.2.1", "xn--a.b", "a@b", "a.b.."])
        await refused(create({ Name }), "validation_failed", { "/Name": "format_invalid" });
      for (const Name of [`${"a".repeat(64)}.b`, `${"a.".repeat(127)}b`, `${"ж".repeat(63)}.example`])
        await refused(create({ Name }), "validation_failed", { "/Name": "too_long" });
      for (const body of [{}, { Name: "" }, { Name: "", DomainName: null }])
        await refused(create(body), "validation_failed", { "/Name": "field_required" });
    });

    test("are accepted in either field, and the first one that is not empty counts", async () => {
      for (const body of [
        { DomainName: "also.example" },
        { Name: "", DomainName: "also.example" },
        { domainNAME: "also.example", Name: null },
        { Name: "also.example", DomainName: "other.example" },
      ]) {
        const domain = await create(body);
        assert.equal(domain.Name, "also.example");
        await erase(domain);
      }
    });
  });

  describe("initial content", () => {
    test("an IPv4 or IPv6 address at the zone apex", async () => {
      for (const [Ip, type, shown] of [
        ["192.0.2.7", "A", "192.0.2.7"],
        ["2001:DB8::7", "AAAA", "2001:db8::7"],
      ] as const) {
        const domain = await create({ DomainName: "old.example", Migrate: "False", Ip });
        assert.deepEqual(
          domain.LinkedRecords.map((one) => [one.TypeRecord, one.HostName, one.IP, one.TTL, one.State, one.DomainID]),
          [[type, "@", shown, 3600, "Active", domain.ID]],
        );
        assert.deepEqual(await harness.lookUp("old.example", type), [shown]);
        await erase(domain);
      }
      await refused(create({ Name: "old.example", Ip: "192.0.2" }), "validation_failed", { "/Ip": "format_invalid" });
      const both = create({ Name: "a b", Ip: "here" });
      await refused(both, "validation_failed", { "/Name": "format_invalid", "/Ip": "format_invalid" });
    });

    test("labels, which an edit replaces", async () => {
      const domain = await create({ Name: "labels.example", Labels: { env: "prod", "brume.io/a": "" } });
      const path = { id: domain.ID };
      assert.deepEqual(domain.Labels, { env: "prod", "brume.io/a": "" });
      const edit = (body: object) => harness.client.raw.updateDomain({ path, body });
      const first = await edit({ Labels: { team: "web" } });
      assert.deepEqual(first.answer.Labels, { team: "web" });
      assert.equal(first.answer.Serial, domain.Serial);
      const same = await edit({});
      assert.deepEqual([same.answer.Labels, same.etag], [{ team: "web" }, first.etag]);
      const cleared = await edit({ Labels: {} });
      assert.deepEqual(cleared.answer.Labels, {});
      assert.notEqual(cleared.etag, first.etag);
      for (const [Labels, pointer] of [
        [{ "-a": "" }, "/Labels/-a"],
        [{ a: "b c" }, "/Labels/a"],
        [{ "a/b/c": "" }, "/Labels/a~1b~1c"],
      ] as const)
        await refused(edit({ Labels }), "validation_failed", { [pointer]: "format_invalid" });
      const many = Object.fromEntries(Array.from({ length: 33 }, (_, i) => [`k${i}`, ""]));
      await refused(edit({ Labels: many }), "validation_failed", { "/Labels": "too_long" });
      await erase(domain);
    });

    test("a zone file, with a list of the lines that were ignored", async () => {
      const ZoneFile = [
        "$ORIGIN file.example.",
        "$TTL 1h",
        "@ IN SOA ns.other. root.other. 1 2 3 4 5",
        "@ IN NS ns.other.",
        "@ 300 IN A 192.0.2.1",
        "www IN CNAME @",
        'txt IN TXT "a" "b;c" ; a comment',
        '@ IN CAA 0 issue "ca.example"',
        "_sip._tcp SRV 1 2 5060 sip",
        "sub IN NS ns.other.",
        "$GENERATE 1-3 host-$ A 192.0.2.$",
        "",
      ].join("\n");
      const domain = await create({ Name: "file.example", ZoneFile, Ip: "192.0.2.1" });
      assert.deepEqual(domain.Import, { State: "Completed", Records: 8, Skipped: ["line 8: CAA"], Detail: "" });
      assert.deepEqual(domain.LinkedRecords.map((one) => one.CanonicalDescription).sort(), [
        "@ 3600 IN A 192.0.2.1",
        "_sip._tcp.file.example. 3600 IN SRV 1 2 5060 sip.file.example.",
        "host-1.file.example. 3600 IN A 192.0.2.1",
        "host-2.file.example. 3600 IN A 192.0.2.2",
        "host-3.file.example. 3600 IN A 192.0.2.3",
        "sub.file.example. 3600 IN NS ns.other.",
        'txt.file.example. 3600 IN TXT "a" "b;c"',
        "www.file.example. 3600 IN CNAME @",
      ]);
      assert.deepEqual(await harness.lookUp("host-2.file.example", "A"), ["192.0.2.2"]);
      await erase(domain);
    });

    test("no domain is created if a line of the zone file is invalid", async () => {
      const ZoneFile = "www A 192.0.2.1\nwww A 192.0.2\nx CNAME a.b.\nx A 192.0.2.1\n";
      const unread = await refused(create({ Name: "bad.example", ZoneFile }), "zone_file_invalid");
      assert.deepEqual(
        unread.errors.map(({ pointer, code }) => [pointer, code]),
        [["/ZoneFile", "zone_file_invalid"]],
      );
      assert.match(unread.errors[0]?.detail ?? "", /^line 2: /);
      const clash = ZoneFile.replace("192.0.2\n", "192.0.2.2\n");
      const conflict = await refused(create({ Name: "bad.example", ZoneFile: clash }), "zone_file_invalid");
      assert.match(conflict.errors[0]?.detail ?? "", /^line 4: /);
      assert.deepEqual(await harness.client.listDomains({ query: { name: "bad.example" } }), []);
      assert.equal(await harness.lookUp("bad.example", "NS"), "EREFUSED");
      const both = create({ Name: "bad.example", ZoneFile: "x A 192.0.2.1", Migrate: true });
      await refused(both, "validation_failed", { "/Migrate": "fields_conflict" });
    });
  });

  describe("automatic content", () => {
    test("an SOA and an NS set that are not listed, unless own NS records replace the set", async () => {
      const domain = await create({ Name: "auto.example" });
      assert.deepEqual(await harness.lookUp("auto.example", "SOA"), [
        JSON.stringify({
          nsname: "ns1.brume.internal",
          hostmaster: "hostmaster.auto.example",
          serial: domain.Serial,
          refresh: 3600,
          retry: 600,
          expire: 1_209_600,
          minttl: 60,
        }),
      ]);
      const line = await run("dig", harness.brume.dns, "+noall", "+answer", "auto.example", "SOA");
      assert.match(line, /^auto\.example\.\s+3600\s+IN\s+SOA\s/);
      const body = { DomainId: domain.ID, Name: "ns.auto.example" };
      const ownNs = await harness.client.createRecordNS({ body });
      assert.deepEqual(await harness.lookUp("auto.example", "NS"), ["ns.auto.example"]);
      const { LinkedRecords, NameServers } = await read(domain.ID);
      assert.deepEqual([LinkedRecords, NameServers], [[ownNs], ["ns1.brume.internal"]]);
      await harness.client.deleteRecord({ path: { domainid: domain.ID, recordId: ownNs.ID } });
      assert.deepEqual(await harness.lookUp("auto.example", "NS"), ["ns1.brume.internal"]);
      await erase(domain);
    });

    test("the serial is the time, or the last serial plus one", async () => {
      const before = Math.floor(Date.now() / 1000);
      const domain = await create({ Name: "serial.example" });
      assert.ok(domain.Serial >= before && domain.Serial <= Math.floor(Date.now() / 1000) + 1, String(domain.Serial));
      let last = domain.Serial;
      for (let i = 0; i < 5; i++) {
        await harness.client.createRecordA({ body: { DomainId: domain.ID, Name: `h${i}`, IP: "192.0.2.1" } });
        const { Serial } = await read(domain.ID);
        assert.ok(Serial > last);
        assert.equal((await harness.brume.resolver.resolveSoa("serial.example")).serial, Serial);
        last = Serial;
      }
      await erase(domain);
      const again = await create({ Name: "Serial.Example" });
      assert.ok(again.Serial > last, "the serial continues in a new domain of the same name");
      assert.ok(again.ID > domain.ID);
      assert.deepEqual(again.LinkedRecords, []);
      await erase(again);
    });

    test("a zone file is returned for its media type in Accept", async () => {
      const domain = await create({ Name: "text.example", Ip: "192.0.2.1" });
      const records = [
        { TypeRecord: "TXT", Name: "ж", Text: 'say "ж"' },
        { TypeRecord: "MX", HostName: ".", TTL: 60 },
        { TypeRecord: "SRV", Service: "sip", Proto: "tcp", Name: "a", Port: 5060, Target: "@" },
        { TypeRecord: "CNAME", MnemonicName: "*", Name: "@" },
      ] as const;
      const Changes = records.map((record) => ({ Op: "Create" as const, ...record }));
      const { Serial } = await harness.client.changeRecords({ path: { id: domain.ID }, body: { Changes } });
      const response = await harness.request(`GET /dns/${domain.ID}`, undefined, { Accept: "text/dns" });
      assert.equal(response.headers.get("content-type"), "text/dns; charset=us-ascii");
      assert.ok(response.headers.has("etag"));
      assert.deepEqual(response.text.split("\n"), [
        `text.example. 3600 IN SOA ns1.brume.internal. hostmaster.text.example. ${Serial} 3600 600 1209600 60`,
        "text.example. 3600 IN NS ns1.brume.internal. ; brume: automatic",
        "text.example. 3600 IN A 192.0.2.1",
        "text.example. 60 IN MX 0 .",
        "*.text.example. 3600 IN CNAME text.example.",
        "_sip._tcp.a.text.example. 3600 IN SRV 0 0 5060 text.example.",
        'xn--f1a.text.example. 3600 IN TXT "say \\"\\208\\182\\""',
        "",
      ]);
      assert.equal(await harness.client.text("readDomain", { path: { id: domain.ID } }), response.text);
      for (const Accept of ["text/plain", "application/xml", "*/*", "text/dns;q=0"])
        assert.equal((await harness.request(`GET /dns/${domain.ID}`, undefined, { Accept })).text[0], "{");
      await erase(domain);
    });
  });

  describe("ownership", () => {
    let other: Caller;
    before(async () => {
      other = await harness.neighbour();
    });

    test("a name belongs to one project, with its parents and subdomains", async () => {
      const mine = await create({ Name: "mine.example" });
      for (const Name of ["mine.example", "MINE.example.", "sub.mine.example", "a.b.mine.example", "example"]) {
        const refusal = other.client.createDomain({ body: { Name } });
        const { detail } = await refused(refusal, "domain_not_available", { "/Name": "domain_not_available" });
        assert.ok(!detail.includes(String(mine.ID)), "the response contains nothing of the other project");
      }
      const beside = [
        await other.client.createDomain({ body: { Name: "notmine.example" } }),
        await other.client.createDomain({ body: { Name: "mine.example.net" } }),
      ];
      for (const { ID } of beside) await other.client.deleteDomain({ path: { id: ID } });
      await refused(create({ Name: "Mine.Example" }), "domain_exists", { "/Name": "domain_exists" });
      await erase(mine);
      const taken = await other.client.createDomain({ body: { Name: "mine.example" } });
      await refused(create({ Name: "mine.example" }), "domain_not_available");
      await other.client.deleteDomain({ path: { id: taken.ID } });
    });

    test("a project may have a domain inside another, and each serves its own names", async () => {
      const above = await create({ Name: "tree.example", ZoneFile: "a.sub A 192.0.2.1\nb A 192.0.2.2\n" });
      const below = await create({ Name: "sub.tree.example", ZoneFile: "a A 192.0.2.3\n" });
      const top = await create({ Name: "a.sub.tree.example", Ip: "192.0.2.4" });
      assert.deepEqual(await harness.lookUp("a.sub.tree.example", "A"), ["192.0.2.4"]);
      await erase(top);
      assert.deepEqual(await harness.lookUp("a.sub.tree.example", "A"), ["192.0.2.3"]);
      assert.deepEqual(await harness.lookUp("b.tree.example", "A"), ["192.0.2.2"]);
      await erase(below);
      assert.deepEqual(await harness.lookUp("a.sub.tree.example", "A"), ["192.0.2.1"]);
      await erase(above);
    });

    test("a project cannot see domains of another", async () => {
      const mine = await create({ Name: "secret.example", Ip: "192.0.2.1" });
      assert.deepEqual(await other.client.listDomains(), []);
      const record = mine.LinkedRecords[0]?.ID ?? 0;
      await refused(other.client.readDomain({ path: { id: mine.ID } }), "domain_not_found");
      await refused(other.client.readRecord({ path: { id: record } }), "record_not_found");
      await refused(other.client.deleteRecord({ path: { domainid: mine.ID, recordId: record } }), "domain_not_found");
      const body = { DomainId: mine.ID, IP: "192.0.2.2" };
      await refused(other.client.createRecordA({ body }), "validation_failed", { "/DomainId": "unknown_reference" });
      await refused(other.client.updateRecordA({ path: { id: record }, body: {} }), "record_not_found");
      await erase(mine);
    });
  });

  test("a deleted domain is refused by the name server, and its records do not exist", async () => {
    const domain = await create({ Name: "gone.example", Ip: "192.0.2.1" });
    await erase(domain);
    for (const type of ["A", "NS", "SOA"] as const)
      assert.equal(await harness.lookUp("gone.example", type), "EREFUSED");
    await refused(read(domain.ID), "domain_not_found");
    await refused(erase(domain), "domain_not_found");
    await refused(harness.client.readRecord({ path: { id: domain.LinkedRecords[0]?.ID ?? 0 } }), "record_not_found");
    const again = await create({ Name: "gone.example" });
    assert.equal(await harness.lookUp("gone.example", "A"), "ENODATA");
    await erase(again);
  });

  describe("lists", () => {
    const made: Domain[] = [];
    let reader: Caller;
    before(async () => {
      const caller = await harness.neighbour();
      reader = caller;
      for (const [Name, Labels] of [
        ["alpha.list", { env: "prod", tier: "web" }],
        ["beta.list", { env: "test" }],
        ["gamma.list", {}],
        ["alphabet.list", { env: "prod", old: "" }],
      ] as const)
        made.push(await caller.client.createDomain({ body: { Name, Labels, Ip: "192.0.2.1" } }));
    });
    const names = async (query: object) =>
      (await reader.client.listDomains({ query })).map(({ Name }) => Name.replace(".list", ""));

    test("contain complete objects, sorted by ID", async () => {
      assert.deepEqual(await reader.client.listDomains(), made);
    });

    test("can leave out the records", async () => {
      const bare = made.map((one) => ({ ...one, LinkedRecords: [] }));
      for (const records of ["false", "0", "No"])
        assert.deepEqual((await reader.request(`GET /dns?RECORDS=${records}`)).json, bare);
      assert.deepEqual((await reader.request("GET /dns?records=true")).json, made);
      assert.equal((await reader.request("GET /dns?records=maybe")).code, "query_invalid");
    });

    const filters: [object, string[]][] = [
      [{ name: "ALPHA.list" }, ["alpha"]],
      [{ name: "alpha" }, []],
      [{ name: "alpha*" }, ["alpha", "alphabet"]],
      [{ name: "*a.l*t" }, ["alpha", "beta", "gamma"]],
      [{ state: "active" }, ["alpha", "beta", "gamma", "alphabet"]],
      [{ state: "New" }, []],
      [{ state: "New,ACTIVE", name: "beta*" }, ["beta"]],
      [{ label: "env" }, ["alpha", "beta", "alphabet"]],
      [{ label: "!env" }, ["gamma"]],
      [{ label: "env=prod" }, ["alpha", "alphabet"]],
      [{ label: "env==prod,!old" }, ["alpha"]],
      [{ label: "env != prod" }, ["beta", "gamma"]],
      [{ label: "env in (prod, test)" }, ["alpha", "beta", "alphabet"]],
      [{ label: "env notin (prod)" }, ["beta", "gamma"]],
      [{ label: "old=" }, ["alphabet"]],
    ];
    for (const [query, wanted] of filters)
      test(JSON.stringify(query), async () => assert.deepEqual(await names(query), wanted));

    test("the label filter can be repeated", async () => {
      const response = await reader.request("GET /dns?label=env%3Dprod&Label=tier");
      assert.deepEqual(
        (response.json as Domain[]).map(({ Name }) => Name),
        ["alpha.list"],
      );
    });
  });

  test("query counters count the answers of a domain by code, and other projects do not see them", async () => {
    const domain = await create({ Name: "counted.example", Ip: "192.0.2.1" });
    const path = { id: domain.ID };
    const { resolver, client } = harness.brume;
    assert.deepEqual((await client.readDomainMetrics({ path })).Queries, 0);
    await resolver.resolve4("counted.example");
    await assert.rejects(resolver.resolve4("none.counted.example"));
    // A check of the service reads the counters.
    await client.readReadiness({});
    const { Serial, Queries, Answers } = await client.waitFor(
      "readDomainMetrics",
      { path },
      { until: (now) => now.Queries >= 2, timeout: 120_000 },
    );
    assert.deepEqual([Serial, Queries], [domain.Serial, 2]);
    assert.deepEqual(Answers, [
      { Code: "NOERROR", Count: 1 },
      { Code: "NXDOMAIN", Count: 1 },
    ]);
    const neighbour = await harness.brume.neighbour();
    await assert.rejects(neighbour.readDomainMetrics({ path }), { code: "domain_not_found" });
  });
});
