/**
 * Records as existing clients write them (docs/spec.md#record): which fields contain owner and value, and how names, texts and numbers are
 * parsed and shown. `dns-rules.test.ts` tests which records can coexist.
 */
import assert from "node:assert/strict";
import { before, describe, test } from "node:test";
import type { DnsRecord, RecordFields, RecordType } from "@brume/api/dns.ts";
import { onSqliteFirst, type TestResponse } from "../support/harness.ts";

onSqliteFirst("records", (harness) => {
  let domain: number;
  let zone: string;
  before(async () => {
    const made = await harness.domain();
    domain = made.ID;
    zone = made.Name;
  });

  const create = (type: RecordType, fields: object): Promise<TestResponse> =>
    harness.request(`POST /dns/record${type.toLowerCase()}`, { DomainId: domain, ...fields });
  const edit = (record: DnsRecord, fields: object): Promise<TestResponse> =>
    harness.request(`PUT /dns/record${record.TypeRecord.toLowerCase()}/${record.ID}`, fields);
  const erase = (record: DnsRecord) => harness.client.deleteRecord({ path: { domainid: domain, recordId: record.ID } });

  /** Creates a record, checks some of its fields and deletes it; `Z` is the domain name. */
  async function shows(type: RecordType, fields: RecordFields, wanted: Partial<DnsRecord>): Promise<void> {
    const put = <T>(value: T): T => JSON.parse(JSON.stringify(value).replaceAll("Z!", zone)) as T;
    const response = await create(type, put(fields));
    assert.equal(response.status, 200, `${JSON.stringify(fields)}: ${response.text}`);
    const record = response.json as DnsRecord;
    const expected = put(wanted);
    const part = Object.fromEntries(Object.keys(expected).map((key) => [key, record[key as keyof DnsRecord]]));
    assert.deepEqual(part, expected, JSON.stringify(fields));
    assert.equal(record.State, "Active");
    await erase(record);
  }

  /** Returns the code of each entry of `errors`, by pointer. */
  async function refuses(type: RecordType, fields: object, wanted: Record<string, string>, code = "validation_failed") {
    const put = (value: object): object => JSON.parse(JSON.stringify(value).replaceAll("Z!", zone)) as object;
    const response = await create(type, put(fields));
    assert.equal(response.code, code, `${JSON.stringify(fields)}: ${response.text}`);
    const { errors } = response.json as { errors: { pointer: string; code: string }[] };
    const found = Object.fromEntries(errors.map((one) => [one.pointer, one.code]));
    assert.deepEqual(found, wanted, response.text);
  }

  describe("the owner", () => {
    const owners: [given: string, shown: string, puny?: string][] = [
      ["", "@"],
      ["@", "@"],
      [" @ ", "@"],
      ["Z!", "@"],
      ["Z!.", "@"],
      ["www", "www.Z!."],
      ["WWW.Mail", "WWW.Mail.Z!."],
      ["www.Z!", "www.Z!."],
      ["www.Z!.", "www.Z!."],
      ["notZ!", "notZ!.Z!."],
      ["other.org", "other.org.Z!."],
      ["_dmarc", "_dmarc.Z!."],
      ["a_b.c-d", "a_b.c-d.Z!."],
      ["*", "*.Z!."],
      ["*.apps", "*.apps.Z!."],
      ["bücher", "bücher.Z!.", "xn--bcher-kva.Z!."],
      ["XN--BCHER-KVA", "bücher.Z!.", "xn--bcher-kva.Z!."],
      ["BÜCHER。наука", "bücher.наука.Z!.", "xn--bcher-kva.xn--80aa3ak5a.Z!."],
      ["faß", "faß.Z!.", "xn--fa-hia.Z!."],
    ];
    for (const [given, shown, puny = shown] of owners)
      test(`${JSON.stringify(given)} is ${shown}`, () =>
        shows(
          "A",
          { Name: given, IP: "192.0.2.1" },
          { HostName: shown, PunyName: puny, CanonicalDescription: `${shown} 3600 IN A 192.0.2.1` },
        ));

    test("may be absent", () => shows("A", { IP: "192.0.2.1" }, { HostName: "@" }));

    test("lies inside the domain", async () => {
      for (const Name of ["other.org.", ".", "org."])
        await refuses("A", { Name, IP: "192.0.2.1" }, { "/Name": "name_outside_domain" }, "name_outside_domain");
    });

    test("has valid DNS labels", async () => {
      const long = "a".repeat(64);
      for (const Name of ["-a", "a-", "a..b", ".a", "a b", "a:b", "*a", "a.*", "a.*.b", "ä-.b", "-ä", "ab--ä", "xn--a"])
        await refuses("A", { Name, IP: "192.0.2.1" }, { "/Name": "format_invalid" });
      for (const Name of [long, `${`${"a".repeat(63)}.`.repeat(4)}Z!`, `${"a.".repeat(127)}Z!`])
        await refuses("A", { Name, IP: "192.0.2.1" }, { "/Name": "too_long" });
    });

    test("can be a wildcard in five types only", async () => {
      await shows("AAAA", { Name: "*", IP: "::1" }, { HostName: "*.Z!." });
      await shows("CNAME", { MnemonicName: "*", Name: "@" }, { MnemonicName: "*.Z!." });
      await shows("MX", { Name: "*", HostName: "a.b" }, { HostName: "*.Z!." });
      await shows("TXT", { Name: "*", Text: "a" }, { HostName: "*.Z!." });
      await refuses("NS", { HostName: "*", Name: "a.b" }, { "/HostName": "format_invalid" });
      const srv = { Service: "sip", Proto: "tcp", Port: 1, Target: "a.b" };
      await refuses("SRV", { Name: "*", ...srv }, { "/Name": "format_invalid" });
    });
  });

  describe("fields", () => {
    const t = "t.example.net";
    const srv = { Service: "sip", Proto: "udp", Port: 5060, Target: t };
    const expectedRecords: [RecordType, RecordFields, Partial<DnsRecord>][] = [
      ["A", { HostName: "h", IP: "192.0.2.1" }, { HostName: "h.Z!." }],
      ["A", { Name: "n", HostName: "h", IP: "192.0.2.1" }, { HostName: "n.Z!." }],
      ["A", { Name: "", HostName: "h", IP: "192.0.2.1" }, { HostName: "h.Z!." }],
      ["AAAA", { HostName: "h", IP: "2001:DB8:0:0:1::1" }, { HostName: "h.Z!.", IP: "2001:db8::1:0:0:1" }],
      ["CNAME", { MnemonicName: "m", HostName: t }, { MnemonicName: "m.Z!.", HostName: `${t}.` }],
      ["CNAME", { MnemonicName: "m", Name: t, HostName: "x" }, { MnemonicName: "m.Z!.", HostName: `${t}.` }],
      ["MX", { HostName: t }, { HostName: "@", ExtHostName: `${t}.`, Priority: "0" }],
      ["MX", { HostName: t, Name: "n" }, { HostName: "n.Z!.", ExtHostName: `${t}.` }],
      ["MX", { ExtHostName: t, HostName: "h", Name: "n" }, { HostName: "h.Z!.", ExtHostName: `${t}.` }],
      ["MX", { ExtHostName: t, Name: "n" }, { HostName: "n.Z!.", ExtHostName: `${t}.` }],
      ["MX", { ExtHostName: t }, { HostName: "@", ExtHostName: `${t}.` }],
      ["NS", { HostName: "h", ExtHostName: t }, { HostName: "h.Z!.", ExtHostName: `${t}.` }],
      ["NS", { Name: t, ExtHostName: "x" }, { HostName: "@", ExtHostName: `${t}.` }],
      ["SRV", { HostName: "h", ...srv }, { HostName: "h.Z!.", PunyName: "h.Z!." }],
      ["SRV", { Name: "n", HostName: "h", ...srv }, { HostName: "n.Z!.", Priority: "0", Weight: "0", Port: "5060" }],
      ["TXT", { HostName: "h", Text: "a" }, { HostName: "h.Z!." }],
      ["TXT", { Name: "n", HostName: "h", Text: "a" }, { HostName: "n.Z!." }],
    ];
    for (const [type, fields, wanted] of expectedRecords)
      test(`${type} of ${Object.keys(fields).join(", ")}`, () => shows(type, fields, wanted));

    const required: [RecordType, string[]][] = [
      ["A", ["/IP"]],
      ["AAAA", ["/IP"]],
      ["CNAME", ["/MnemonicName", "/Name"]],
      ["MX", ["/HostName"]],
      ["NS", ["/Name"]],
      ["SRV", ["/Service", "/Proto", "/Port", "/Target"]],
      ["TXT", ["/Text"]],
    ];
    for (const [type, pointers] of required)
      test(`${type} needs ${pointers.join(", ")}, and all are reported at once`, async () => {
        const wanted = Object.fromEntries(pointers.map((pointer) => [pointer, "field_required"]));
        await refuses(type, {}, wanted);
        await refuses(type, Object.fromEntries(pointers.map((pointer) => [pointer.slice(1), ""])), wanted);
      });

    test("the domain is required and must exist", async () => {
      const without = await harness.request("POST /dns/recorda", { IP: "192.0.2.1" });
      assert.deepEqual((without.json as { errors: unknown[] }).errors.length, 1);
      await refuses("A", { DomainId: null, IP: "192.0.2.1" }, { "/DomainId": "field_required" });
      await refuses("A", { DomainId: 999_999, IP: "wrong" }, { "/DomainId": "unknown_reference" });
      await refuses("A", { DomainId: "x", IP: "192.0.2.1" }, { "/DomainId": "type_mismatch" });
      await refuses("A", { DomainId: 2_147_483_648, IP: "192.0.2.1" }, { "/DomainId": "out_of_range" });
    });

    test("Labels is the last key of a record, and an edit replaces all labels", async () => {
      const made = await create("TXT", { Text: "a", Labels: { env: "prod", "a.b/c": "" } });
      assert.match(made.text, /,"Labels":\{"env":"prod","a.b\/c":""\}\}$/);
      const record = made.json as DnsRecord;
      const [{ Serial } = { Serial: 0 }] = await harness.client.listDomains({ query: { name: zone } });
      assert.deepEqual(((await edit(record, { Labels: { x: "1" } })).json as DnsRecord).Labels, { x: "1" });
      assert.deepEqual(((await edit(record, {})).json as DnsRecord).Labels, { x: "1" });
      assert.deepEqual(((await edit(record, { Labels: {} })).json as DnsRecord).Labels, {});
      const { Serial: after } = await harness.client.readDomain({ path: { id: domain } });
      assert.equal(after, Serial, "labels are nothing that DNS shows");
      await erase(record);
    });
  });

  describe("values", () => {
    test("an A record has four decimal numbers", async () => {
      await shows("A", { IP: " 192.0.2.255 " }, { IP: "192.0.2.255" });
      for (const IP of [
        "1.2.3",
        "1.2.3.256",
        "01.2.3.4",
        "0x1.2.3.4",
        "1.2.3.4/32",
        "::1",
        "::ffff:1.2.3.4",
        "www",
        "1 2",
      ])
        await refuses("A", { IP }, { "/IP": "format_invalid" });
    });

    test("an AAAA record is shown in the form of RFC 5952", async () => {
      const shown: [string, string][] = [
        ["2001:0DB8::0017", "2001:db8::17"],
        ["0:0:0:0:0:0:0:0", "::"],
        ["1:0:0:2:0:0:0:3", "1:0:0:2::3"],
        ["1:0:2:3:4:5:6:7", "1:0:2:3:4:5:6:7"],
        ["2001:db8::192.0.2.1", "2001:db8::c000:201"],
        ["::FFFF:192.0.2.1", "::ffff:192.0.2.1"],
      ];
      for (const [IP, wanted] of shown) await shows("AAAA", { IP }, { IP: wanted });
      for (const IP of ["192.0.2.1", "fe80::1%eth0", "[::1]", "1::2::3", "12345::", "::/0", ":"])
        await refuses("AAAA", { IP }, { "/IP": "format_invalid" });
    });

    test("a target with a dot is absolute, without a dot relative to the domain", async () => {
      const targets: [string, string][] = [
        ["mail", "mail.Z!."],
        ["MAIL.example.NET", "MAIL.example.NET."],
        ["mail.example.net.", "mail.example.net."],
        ["host.", "host."],
        ["@", "Z!."],
        ["Z!", "Z!."],
        ["почта.рф", "почта.рф."],
      ];
      const srv = { Service: "sip", Proto: "tcp", Port: 1 };
      for (const [given, shown] of targets) {
        await shows("MX", { HostName: given }, { ExtHostName: shown });
        await shows("NS", { HostName: "sub", Name: given }, { ExtHostName: shown });
        await shows("SRV", { ...srv, Target: given }, { Target: shown });
        await shows("CNAME", { MnemonicName: "c", Name: given }, { HostName: shown === "Z!." ? "@" : shown });
      }
      for (const given of ["192.0.2.1", "192.0.2.1.", "2001:db8::1", "a..b", "a b", "*.b", "-"]) {
        await refuses("MX", { HostName: given }, { "/HostName": "format_invalid" });
        await refuses("NS", { HostName: "sub", Name: given }, { "/Name": "format_invalid" });
        await refuses("SRV", { ...srv, Target: given }, { "/Target": "format_invalid" });
        await refuses("CNAME", { MnemonicName: "c", Name: given }, { "/Name": "format_invalid" });
      }
    });

    test("a target of a single dot is allowed for MX and SRV only", async () => {
      await shows("MX", { HostName: "." }, { ExtHostName: ".", CanonicalDescription: "@ 3600 MX 0 ." });
      await shows("SRV", { Service: "sip", Proto: "tcp", Port: 0, Target: "." }, { Target: ".", Port: "0" });
      await refuses("MX", { HostName: ".", Priority: 10 }, { "/HostName": "format_invalid" });
      await refuses("CNAME", { MnemonicName: "c", Name: "." }, { "/Name": "format_invalid" });
      await refuses("NS", { HostName: "sub", Name: "." }, { "/Name": "format_invalid" });
    });

    test("a service is accepted with and without underscores", async () => {
      for (const Service of ["xmpp-client", "_xmpp-client", "_xmpp-client.", "XMPP-Client."])
        for (const Proto of ["tcp", "_TCP", "_tcp."]) {
          const wanted = {
            Service: "_xmpp-client.",
            Proto: "tcp",
            CanonicalDescription: "_xmpp-client._tcp.chat.Z!. 60 IN SRV 1 2 3 t.example.",
          };
          await shows(
            "SRV",
            { Service, Proto, Name: "chat", TTL: 60, Priority: 1, Weight: 2, Port: 3, Target: "t.example" },
            wanted,
          );
        }
      for (const word of ["a.b", "", "-a", "a b", "é", "_", "a".repeat(63)])
        await refuses(
          "SRV",
          { Service: word, Proto: "tcp", Port: 1, Target: "a.b" },
          { "/Service": word === "" ? "field_required" : "format_invalid" },
        );
    });

    test("numbers are accepted as numbers and as strings", async () => {
      for (const Priority of ["10", 10, " 10 ", "+10", 10.0]) {
        const response = await create("MX", { HostName: "a.b", Priority });
        assert.equal((response.json as DnsRecord).Priority, "10", response.text);
        await erase(response.json as DnsRecord);
      }
      for (const Priority of [-1, 65_536, "65536"])
        await refuses("MX", { HostName: "a.b", Priority }, { "/Priority": "out_of_range" });
      for (const Priority of [1.5, true, "ten", "1.0", [1], {}])
        await refuses("MX", { HostName: "a.b", Priority }, { "/Priority": "type_mismatch" });
      for (const [TTL, shown] of [
        ["", 3600],
        [1, 1],
        [2_147_483_647, 2_147_483_647],
        ["60", 60],
      ])
        await shows("TXT", { Text: "a", TTL: TTL as number }, { TTL: shown as number });
      for (const TTL of [-1, 2_147_483_648]) await refuses("TXT", { Text: "a", TTL }, { "/TTL": "out_of_range" });
    });
  });

  describe("texts", () => {
    const texts: [given: string, shown: string, served?: string[]][] = [
      ["abc", '"abc" ', ["abc"]],
      ['"abc"', '"abc" ', ["abc"]],
      ['"abc" ', '"abc" ', ["abc"]],
      ['"a" "b"\t"c"  ', '"a" "b" "c" ', ["a", "b", "c"]],
      ['say "hi"', '"say \\"hi\\"" ', ['say "hi"']],
      ['"say \\"hi\\" \\\\"', '"say \\"hi\\" \\\\" ', ['say "hi" \\']],
      ["back\\slash", '"back\\\\slash" ', ["back\\slash"]],
      ['"\\065\\195\\164"', '"Aä" ', ["Aä"]],
      ['"open', '"\\"open" ', ['"open']],
      [" blanks ", '" blanks " ', [" blanks "]],
      ["a\tb", '"a\tb" ', ["a\tb"]],
      ["e\u0301", '"e\u0301" ', ["e\u0301"]],
      ["x".repeat(256), `"${"x".repeat(255)}" "x" `, ["x".repeat(255), "x"]],
      ["ж".repeat(128), `"${"ж".repeat(127)}" "ж" `, ["ж".repeat(127), "ж"]],
    ];
    for (const [given, shown, served] of texts)
      test(`${JSON.stringify(given.slice(0, 24))} is shown as ${JSON.stringify(shown.slice(0, 24))}`, async () => {
        const response = await create("TXT", { Name: "t", Text: given });
        const record = response.json as DnsRecord;
        assert.equal(record.Text, shown);
        assert.equal(record.CanonicalDescription, `t.${zone}. 3600 IN TXT ${shown.slice(0, -1)}`);
        const [strings] = await harness.brume.resolver.resolveTxt(`t.${zone}`);
        // The resolver decodes bytes as Latin-1 or UTF-8, depending on its version.
        const utf8 = strings?.map((string) =>
          served?.includes(string) ? string : Buffer.from(string, "latin1").toString(),
        );
        assert.deepEqual(utf8, served);
        assert.equal(((await edit(record, { Text: record.Text })).json as DnsRecord).Text, shown);
        await erase(record);
      });

    test("has 1 to 4096 bytes and no control character but tab", async () => {
      await shows("TXT", { Text: "x".repeat(4096) }, {});
      await shows("TXT", { Text: "ж".repeat(2048) }, {});
      await refuses("TXT", { Text: "x".repeat(4097) }, { "/Text": "too_long" });
      await refuses("TXT", { Text: "ж".repeat(2049) }, { "/Text": "too_long" });
      await shows("TXT", { Text: '""' }, { Text: '"" ' });
      for (const Text of ["a\nb", "a\u007f", '"\\007"', '"\\255"', "\u0085"])
        await refuses("TXT", { Text }, { "/Text": "format_invalid" });
    });
  });

  describe("existing clients", () => {
    const form = "DomainId=D!&Name=_acme-challenge.Z!&Text=a%2Bb+c&TTL=60";
    const bodies: [string, string, string | undefined][] = [
      ["a form under a JSON type", form, "application/json"],
      ["a form under its own type", form, "application/x-www-form-urlencoded; charset=utf-8"],
      ["a form without a type", form, undefined],
      [
        "JSON under a form type",
        '{"domainID":"D!","NAME":"_acme-challenge","text":"a+b c","ttl":"60"}',
        "application/x-www-form-urlencoded",
      ],
      [
        "the output of Python",
        "{'DomainId': 'D!', 'Name': '_acme-challenge.Z!', 'Text': 'a+b c', 'TTL': 60, 'Labels': None}",
        "text/plain",
      ],
      [
        "a byte order mark",
        '\ufeff{"DomainId":D!,"Name":"_acme-challenge","Text":"a+b c","TTL":60.0}',
        "application/problem+json",
      ],
    ];
    for (const [what, body, type] of bodies)
      test(`send ${what}`, async () => {
        const sent = body.replace("D!", String(domain)).replaceAll("Z!", zone);
        const response = await harness.request(
          "POST /dns/recordtxt",
          sent,
          type === undefined ? {} : { "content-type": type },
        );
        assert.equal(response.status, 200, response.text);
        const record = response.json as DnsRecord;
        assert.deepEqual([record.HostName, record.Text, record.TTL], [`_acme-challenge.${zone}.`, '"a+b c" ', 60]);
        const again = await harness.request(
          "POST /dns/recordtxt",
          sent,
          type === undefined ? {} : { "content-type": type },
        );
        assert.equal(again.status, 400);
        assert.ok(again.text.includes('"ModelState":{"":["Подобная запись для данного домена уже существует"]}'));
        await erase(record);
      });

    test("depend on the order of the keys of a record", async () => {
      const response = await create("TXT", { Name: "order", Text: "abc" });
      assert.match(response.text, /^\{"ID":\d+,"TypeRecord":"TXT".*"Text":"\\"abc\\" ".*,"Labels":\{\}\}$/);
      assert.ok(!response.text.includes("["), "a record holds no list");
      await erase(response.json as DnsRecord);
    });

    test("send a body with DELETE, and get an empty response", async () => {
      const record = (await create("A", { Name: "gone", IP: "192.0.2.1" })).json as DnsRecord;
      const response = await harness.request(`DELETE /dns/${domain}/${record.ID}`, "{not: read", {
        "content-type": "image/png",
      });
      assert.deepEqual([response.status, response.text, response.headers.get("content-length")], [200, "", "0"]);
      assert.equal(response.headers.get("content-type"), null);
    });
  });
});
