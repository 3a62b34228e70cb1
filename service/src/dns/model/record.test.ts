/** Records: every request and answer of the contract's examples letter by letter, every line of its tables, and that what is shown reads back. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type RecordFields, type RecordType, recordTypes } from "@brume/api/dns.ts";
import { recordSpecs } from "@brume/api/record/types.ts";
import fc from "fast-check";
import type { ApiError } from "../../base/error.ts";
import { type DomainName, readDomainName } from "./name.ts";
import { ownerField, type RecordRow, readRecord, type StoredRecord, showRecord } from "./record.ts";
import { automaticSoa, endOfKey, fromServed, recordSets, servedOwner, sortKey } from "./served.ts";

const example: DomainName = { name: "example.com", ascii: "example.com" };
const created = Date.parse("2026-11-20T09:15:00.120Z");
const rowOf = (record: StoredRecord, id = 1, domainId = 3): RecordRow => ({
  ...record,
  id,
  domainId,
  created,
  active: true,
  labels: {},
});

/** What `http` makes of a body before the rules see it. */
function coerce(body: Record<string, unknown>): RecordFields {
  const numbers = ["DomainId", "TTL", "Priority", "Weight", "Port"];
  return Object.fromEntries(
    Object.entries(body)
      .filter(([key, value]) => !(numbers.includes(key) && value === ""))
      .map(([key, value]) => [key, numbers.includes(key) ? Number(value) : value]),
  ) as RecordFields;
}

/** docs/spec.md#record-endpoints: create, its answer, edit, its answer. */
const examples: readonly [RecordType, id: number, string, string, string, string][] = [
  [
    "A",
    8,
    '{"DomainId":"3","IP":"10.63.0.2","Name":"www","TTL":"3600"}',
    '{"ID":8,"TypeRecord":"A","IP":"10.63.0.2","HostName":"www.example.com.","Priority":"","Text":"","MnemonicName":"","ExtHostName":"","State":"Active","DateCreate":"2026-11-20T09:15:00.120Z","Service":"","Proto":"","Weight":"","TTL":3600,"Port":"","Target":"","CanonicalDescription":"www.example.com. 3600 IN A 10.63.0.2","PunyName":"www.example.com.","DomainID":3,"Labels":{}}',
    '{"DomainId":"3","IP":"10.63.0.3","Name":"www.example.com","TTL":300}',
    '{"ID":8,"TypeRecord":"A","IP":"10.63.0.3","HostName":"www.example.com.","Priority":"","Text":"","MnemonicName":"","ExtHostName":"","State":"Active","DateCreate":"2026-11-20T09:15:00.120Z","Service":"","Proto":"","Weight":"","TTL":300,"Port":"","Target":"","CanonicalDescription":"www.example.com. 300 IN A 10.63.0.3","PunyName":"www.example.com.","DomainID":3,"Labels":{}}',
  ],
  [
    "AAAA",
    9,
    '{"DomainId":3,"IP":"2001:0DB8::17","Name":"@"}',
    '{"ID":9,"TypeRecord":"AAAA","IP":"2001:db8::17","HostName":"@","Priority":"","Text":"","MnemonicName":"","ExtHostName":"","State":"Active","DateCreate":"2026-11-20T09:15:00.120Z","Service":"","Proto":"","Weight":"","TTL":3600,"Port":"","Target":"","CanonicalDescription":"@ 3600 IN AAAA 2001:db8::17","PunyName":"@","DomainID":3,"Labels":{}}',
    '{"DomainId":3,"IP":"2001:db8::18"}',
    '{"ID":9,"TypeRecord":"AAAA","IP":"2001:db8::18","HostName":"@","Priority":"","Text":"","MnemonicName":"","ExtHostName":"","State":"Active","DateCreate":"2026-11-20T09:15:00.120Z","Service":"","Proto":"","Weight":"","TTL":3600,"Port":"","Target":"","CanonicalDescription":"@ 3600 IN AAAA 2001:db8::18","PunyName":"@","DomainID":3,"Labels":{}}',
  ],
  [
    "CNAME",
    10,
    '{"DomainId":3,"Name":"@","MnemonicName":"blog"}',
    '{"ID":10,"TypeRecord":"CNAME","IP":"","HostName":"@","Priority":"","Text":"","MnemonicName":"blog.example.com.","ExtHostName":"","State":"Active","DateCreate":"2026-11-20T09:15:00.120Z","Service":"","Proto":"","Weight":"","TTL":3600,"Port":"","Target":"","CanonicalDescription":"blog.example.com. 3600 IN CNAME @","PunyName":"blog.example.com.","DomainID":3,"Labels":{}}',
    '{"DomainId":3,"Name":"pages.example.net","MnemonicName":"blog"}',
    '{"ID":10,"TypeRecord":"CNAME","IP":"","HostName":"pages.example.net.","Priority":"","Text":"","MnemonicName":"blog.example.com.","ExtHostName":"","State":"Active","DateCreate":"2026-11-20T09:15:00.120Z","Service":"","Proto":"","Weight":"","TTL":3600,"Port":"","Target":"","CanonicalDescription":"blog.example.com. 3600 IN CNAME pages.example.net.","PunyName":"blog.example.com.","DomainID":3,"Labels":{}}',
  ],
  [
    "MX",
    11,
    '{"DomainId":3,"HostName":"mail.example.com","Priority":"10"}',
    '{"ID":11,"TypeRecord":"MX","IP":"","HostName":"@","Priority":"10","Text":"","MnemonicName":"","ExtHostName":"mail.example.com.","State":"Active","DateCreate":"2026-11-20T09:15:00.120Z","Service":"","Proto":"","Weight":"","TTL":3600,"Port":"","Target":"","CanonicalDescription":"@ 3600 MX 10 mail.example.com.","PunyName":"@","DomainID":3,"Labels":{}}',
    '{"DomainId":3,"HostName":"mail","Priority":20}',
    '{"ID":11,"TypeRecord":"MX","IP":"","HostName":"@","Priority":"20","Text":"","MnemonicName":"","ExtHostName":"mail.example.com.","State":"Active","DateCreate":"2026-11-20T09:15:00.120Z","Service":"","Proto":"","Weight":"","TTL":3600,"Port":"","Target":"","CanonicalDescription":"@ 3600 MX 20 mail.example.com.","PunyName":"@","DomainID":3,"Labels":{}}',
  ],
  [
    "NS",
    12,
    '{"DomainId":3,"HostName":"lab","Name":"ns.example.net"}',
    '{"ID":12,"TypeRecord":"NS","IP":"","HostName":"lab.example.com.","Priority":"","Text":"","MnemonicName":"","ExtHostName":"ns.example.net.","State":"Active","DateCreate":"2026-11-20T09:15:00.120Z","Service":"","Proto":"","Weight":"","TTL":3600,"Port":"","Target":"","CanonicalDescription":"lab.example.com. 3600 IN NS ns.example.net.","PunyName":"lab.example.com.","DomainID":3,"Labels":{}}',
    '{"DomainId":3,"HostName":"lab","Name":"ns.example.net","TTL":600}',
    '{"ID":12,"TypeRecord":"NS","IP":"","HostName":"lab.example.com.","Priority":"","Text":"","MnemonicName":"","ExtHostName":"ns.example.net.","State":"Active","DateCreate":"2026-11-20T09:15:00.120Z","Service":"","Proto":"","Weight":"","TTL":600,"Port":"","Target":"","CanonicalDescription":"lab.example.com. 600 IN NS ns.example.net.","PunyName":"lab.example.com.","DomainID":3,"Labels":{}}',
  ],
  [
    "SRV",
    13,
    '{"DomainId":3,"Service":"xmpp-client","Proto":"tcp","Name":"@","Priority":"20","Weight":"0","Port":"5222","Target":"chat.example.com"}',
    '{"ID":13,"TypeRecord":"SRV","IP":"","HostName":"@","Priority":"20","Text":"","MnemonicName":"","ExtHostName":"","State":"Active","DateCreate":"2026-11-20T09:15:00.120Z","Service":"_xmpp-client.","Proto":"tcp","Weight":"0","TTL":3600,"Port":"5222","Target":"chat.example.com.","CanonicalDescription":"_xmpp-client._tcp.example.com. 3600 IN SRV 20 0 5222 chat.example.com.","PunyName":"@","DomainID":3,"Labels":{}}',
    '{"DomainId":3,"Service":"_xmpp-client.","Proto":"tcp","Name":"@","Priority":"20","Weight":"5","Port":"5223","Target":"chat"}',
    '{"ID":13,"TypeRecord":"SRV","IP":"","HostName":"@","Priority":"20","Text":"","MnemonicName":"","ExtHostName":"","State":"Active","DateCreate":"2026-11-20T09:15:00.120Z","Service":"_xmpp-client.","Proto":"tcp","Weight":"5","TTL":3600,"Port":"5223","Target":"chat.example.com.","CanonicalDescription":"_xmpp-client._tcp.example.com. 3600 IN SRV 20 5 5223 chat.example.com.","PunyName":"@","DomainID":3,"Labels":{}}',
  ],
  [
    "TXT",
    14,
    '{"DomainId":"3","TTL":60,"Name":"_acme-challenge.example.com","Text":"abc"}',
    String.raw`{"ID":14,"TypeRecord":"TXT","IP":"","HostName":"_acme-challenge.example.com.","Priority":"","Text":"\"abc\" ","MnemonicName":"","ExtHostName":"","State":"Active","DateCreate":"2026-11-20T09:15:00.120Z","Service":"","Proto":"","Weight":"","TTL":60,"Port":"","Target":"","CanonicalDescription":"_acme-challenge.example.com. 60 IN TXT \"abc\"","PunyName":"_acme-challenge.example.com.","DomainID":3,"Labels":{}}`,
    '{"DomainId":"3","Name":"_acme-challenge","TTL":"60","Text":"def"}',
    String.raw`{"ID":14,"TypeRecord":"TXT","IP":"","HostName":"_acme-challenge.example.com.","Priority":"","Text":"\"def\" ","MnemonicName":"","ExtHostName":"","State":"Active","DateCreate":"2026-11-20T09:15:00.120Z","Service":"","Proto":"","Weight":"","TTL":60,"Port":"","Target":"","CanonicalDescription":"_acme-challenge.example.com. 60 IN TXT \"def\"","PunyName":"_acme-challenge.example.com.","DomainID":3,"Labels":{}}`,
  ],
];

for (const [type, id, ...texts] of examples)
  test(`the contract's examples of ${type}`, () => {
    const [create, created, edit, edited] = texts.map((text) => JSON.parse(text) as Record<string, unknown>);
    const made = readRecord(type, coerce(create ?? {}), example);
    assert.equal(JSON.stringify(showRecord(rowOf(made, id), example)), JSON.stringify(created));
    const changed = readRecord(type, coerce(edit ?? {}), example, made);
    assert.equal(JSON.stringify(showRecord(rowOf(changed, id), example)), JSON.stringify(edited));
  });

const shown = (type: RecordType, fields: RecordFields, domain = example) =>
  showRecord(rowOf(readRecord(type, fields, domain)), domain);

test("owner and value are read from the first field that is not empty", () => {
  const owners: [RecordType, RecordFields, string][] = [
    ["A", { IP: "10.0.0.1", Name: "a", HostName: "b" }, "a"],
    ["A", { IP: "10.0.0.1", Name: "", HostName: "b" }, "b"],
    ["A", { IP: "10.0.0.1" }, "@"],
    ["AAAA", { IP: "::1", HostName: "b" }, "b"],
    ["CNAME", { MnemonicName: "m", Name: "t", HostName: "u" }, "m"],
    ["MX", { Name: "n", HostName: "mail" }, "n"],
    ["MX", { HostName: "mail" }, "@"],
    ["MX", { Name: "n", HostName: "h", ExtHostName: "mail" }, "h"],
    ["MX", { Name: "n", ExtHostName: "mail" }, "n"],
    ["MX", { Name: "n", HostName: "mail", ExtHostName: "" }, "n"],
    ["NS", { HostName: "h", Name: "ns" }, "h"],
    ["NS", { Name: "ns" }, "@"],
    ["SRV", { Name: "n", HostName: "h", Service: "s", Proto: "tcp", Target: "t", Port: 1 }, "n"],
    ["SRV", { HostName: "h", Service: "s", Proto: "tcp", Target: "t", Port: 1 }, "h"],
    ["TXT", { HostName: "h", Text: "x" }, "h"],
  ];
  for (const [type, fields, owner] of owners)
    assert.equal(readRecord(type, fields, example).owner, owner, JSON.stringify(fields));
  const values: [RecordType, RecordFields, string][] = [
    ["CNAME", { MnemonicName: "m", Name: "t", HostName: "u" }, "t.example.com"],
    ["CNAME", { MnemonicName: "m", HostName: "u" }, "u.example.com"],
    ["MX", { HostName: "mail" }, "0 mail.example.com"],
    ["MX", { HostName: "h", ExtHostName: "mail", Priority: 5 }, "5 mail.example.com"],
    ["NS", { Name: "ns.x.y", ExtHostName: "other.x" }, "ns.x.y"],
    ["NS", { ExtHostName: "other.x" }, "other.x"],
    ["SRV", { Service: "_SIP.", Proto: "_UDP.", Target: "a.b", Port: 0 }, "_sip._udp 0 0 0 a.b"],
    ["TXT", { Text: '"a" "b" ' }, "a\u001fb"],
  ];
  for (const [type, fields, value] of values)
    assert.equal(readRecord(type, fields, example).value, value, JSON.stringify(fields));
});

test("the field of the owner is known, so that errors can name it", () => {
  assert.equal(ownerField("A", {}), "Name");
  assert.equal(ownerField("A", { HostName: "x" }), "HostName");
  assert.equal(ownerField("CNAME", { Name: "x" }), "MnemonicName");
  assert.equal(ownerField("MX", { HostName: "x" }), "Name");
  assert.equal(ownerField("MX", { HostName: "x", ExtHostName: "y" }), "HostName");
  assert.equal(ownerField("NS", {}), "HostName");
});

test("response forms at the top, of wildcards, of the root, in Unicode", () => {
  assert.equal(shown("CNAME", { MnemonicName: "b", Name: "@" }).HostName, "@");
  assert.equal(shown("MX", { HostName: "@" }).ExtHostName, "example.com.");
  assert.equal(shown("MX", { HostName: "." }).CanonicalDescription, "@ 3600 MX 0 .");
  assert.equal(shown("A", { Name: "*", IP: "10.0.0.1" }).HostName, "*.example.com.");
  const srv = shown("SRV", { Name: "lab", Service: "s", Proto: "tcp", Target: ".", Port: 1 });
  assert.equal(srv.CanonicalDescription, "_s._tcp.lab.example.com. 3600 IN SRV 0 0 1 .");
  assert.deepEqual([srv.HostName, srv.PunyName], ["lab.example.com.", "lab.example.com."]);
  const russian = readDomainName("пример.рф") as DomainName;
  const mail = shown("MX", { Name: "почта", HostName: "хост" }, russian);
  assert.equal(mail.CanonicalDescription, "почта.пример.рф. 3600 MX 0 хост.пример.рф.");
  assert.equal(mail.PunyName, "xn--80a1acny.xn--e1afmkfd.xn--p1ai.");
  const top = shown("SRV", { Service: "s", Proto: "tcp", Target: "@", Port: 1 }, russian);
  assert.equal(top.CanonicalDescription, "_s._tcp.пример.рф. 3600 IN SRV 0 0 1 пример.рф.");
  assert.equal(
    showRecord({ ...rowOf(readRecord("A", { IP: "10.0.0.1" }, example)), active: false }, example).State,
    "New",
  );
});

function errorOf(type: RecordType, fields: RecordFields, previous?: StoredRecord, at?: string): ApiError {
  try {
    readRecord(type, fields, example, previous, at);
  } catch (error) {
    return error as ApiError;
  }
  return assert.fail(`${type} ${JSON.stringify(fields)} was taken`);
}

test("all invalid fields are reported, with expected and received value", () => {
  const cases: [RecordType, RecordFields, string[]][] = [
    ["A", {}, ["/IP field_required"]],
    ["A", { IP: "::1", Name: "a b" }, ["/Name format_invalid", "/IP format_invalid"]],
    ["A", { IP: "10.0.0.01" }, ["/IP format_invalid"]],
    ["AAAA", { IP: "fe80::1%1" }, ["/IP format_invalid"]],
    ["CNAME", {}, ["/MnemonicName field_required", "/Name field_required"]],
    ["CNAME", { MnemonicName: "a", HostName: "10.0.0.1" }, ["/HostName format_invalid"]],
    ["CNAME", { MnemonicName: "a", Name: "a" }, ["/Name format_invalid"]],
    ["CNAME", { MnemonicName: "a", Name: "A.Example.com." }, ["/Name format_invalid"]],
    ["CNAME", { MnemonicName: "a", Name: "." }, ["/Name format_invalid"]],
    ["MX", {}, ["/HostName field_required"]],
    ["MX", { ExtHostName: ".", Priority: 1 }, ["/ExtHostName format_invalid"]],
    ["NS", {}, ["/Name field_required"]],
    ["NS", { HostName: "*", Name: "ns" }, ["/HostName format_invalid"]],
    ["NS", { Name: "." }, ["/Name format_invalid"]],
    ["SRV", {}, ["/Service field_required", "/Proto field_required", "/Port field_required", "/Target field_required"]],
    [
      "SRV",
      { Service: "a.b", Proto: "-", Port: 1, Target: "::1" },
      ["/Service format_invalid", "/Proto format_invalid", "/Target format_invalid"],
    ],
    [
      "SRV",
      { Name: "*", Service: "_", Proto: "tcp", Port: 1, Target: "a" },
      ["/Name format_invalid", "/Service format_invalid"],
    ],
    [
      "SRV",
      { Name: "a.".repeat(119).slice(0, -1), Service: "s", Proto: "tcp", Port: 1, Target: "a" },
      ["/Service too_long"],
    ],
    ["TXT", {}, ["/Text field_required"]],
    ["TXT", { Text: '"\\010"' }, ["/Text format_invalid"]],
    ["TXT", { Text: "x".repeat(4097), Name: "-" }, ["/Name format_invalid", "/Text too_long"]],
  ];
  for (const [type, fields, expected] of cases) {
    const error = errorOf(type, fields);
    assert.equal(error.code, "validation_failed");
    assert.deepEqual(
      error.errors.map(({ pointer, code }) => `${pointer} ${code}`),
      expected,
      JSON.stringify(fields),
    );
    for (const { pointer, detail } of error.errors)
      assert.ok(detail.startsWith(`${pointer.slice(1)} `) && detail.endsWith("."), detail);
  }
  assert.equal(
    errorOf("A", { IP: "10.1" }).errors[0]?.detail,
    'IP must be an IPv4 address such as 192.0.2.1, not "10.1".',
  );
  assert.equal(errorOf("A", {}, undefined, "/Changes/17").errors[0]?.pointer, "/Changes/17/IP");
});

test("a name outside of the domain is reported alone, after the fields", () => {
  const error = errorOf("A", { Name: "www.other.org.", IP: "10.0.0.1" }, undefined, "/Changes/2");
  assert.equal(error.code, "name_outside_domain");
  assert.deepEqual(
    error.errors.map(({ pointer, code }) => [pointer, code]),
    [["/Changes/2/Name", "name_outside_domain"]],
  );
  assert.equal(error.errors[0]?.detail, 'Name must be "example.com" or a name inside it, not "www.other.org.".');
  assert.deepEqual(
    errorOf("A", { Name: "www.other.org.", IP: "x" }).errors.map(({ pointer }) => pointer),
    ["/IP"],
  );
});

test("absent fields of an edit stay", () => {
  const srv = readRecord(
    "SRV",
    { Name: "a", Service: "s", Proto: "tcp", Port: 1, Weight: 2, Priority: 3, Target: "t", TTL: 60 },
    example,
  );
  assert.deepEqual(readRecord("SRV", {}, example, srv), srv);
  assert.equal(readRecord("SRV", { Proto: "udp" }, example, srv).value, "_s._udp 3 2 1 t.example.com");
  assert.equal(readRecord("SRV", { Weight: 0, Target: "." }, example, srv).value, "_s._tcp 3 0 1 .");
  const mx = readRecord("MX", { HostName: ".", TTL: 5 }, example);
  assert.equal(errorOf("MX", { Priority: 7 }, mx).errors[0]?.pointer, "/Priority");
  assert.equal(readRecord("MX", { HostName: "m", Priority: 7 }, example, mx).value, "7 m.example.com");
  const cname = readRecord("CNAME", { MnemonicName: "a", Name: "b" }, example);
  assert.equal(errorOf("CNAME", { MnemonicName: "b" }, cname).errors[0]?.pointer, "/MnemonicName");
  assert.deepEqual(
    readRecord("TXT", { Text: "", Name: "" }, example, { type: "TXT", owner: "a", ttl: 1, value: "x" }),
    {
      type: "TXT",
      owner: "a",
      ttl: 1,
      value: "x",
    },
  );
});

const label = fc.constantFrom("www", "a", "_dmarc", "mail", "x-1", "почта", "日本");
const owner = fc.oneof(
  fc.constant("@"),
  fc.array(label, { minLength: 1, maxLength: 3 }).map((labels) => labels.join(".")),
);
const target = fc.oneof(fc.constantFrom("@", "mail", "a.b.c", "xn--e1afmkfd.x", "пример.рф"), owner);
const number = fc.integer({ min: 0, max: 65_535 });
const text = fc
  .string({ unit: fc.constantFrom(...Array.from('a"\\ ;é😀')), minLength: 1, maxLength: 300 })
  .filter((one) => !/^("[^"]*"\s*)+$/.test(one));
const fields = fc.record({
  owner,
  target,
  number,
  port: number,
  weight: number,
  text,
  ttl: fc.integer({ min: 1, max: 2_147_483_647 }),
});

test("property: an update with the response of a record changes nothing; its served form is parsed again", () => {
  const domains = [example, readDomainName("пример.рф") as DomainName];
  fc.assert(
    fc.property(fc.constantFrom(...recordTypes), fields, fc.constantFrom(...domains), (type, f, domain) => {
      const given: Record<RecordType, RecordFields> = {
        A: { Name: f.owner, IP: "10.0.0.1" },
        AAAA: { Name: f.owner, IP: "2001:db8::1" },
        CNAME: { MnemonicName: f.owner, Name: `x.${f.target === "@" ? "a" : f.target}` },
        MX: { Name: f.owner, HostName: f.target, Priority: f.number },
        NS: { HostName: f.owner, Name: f.target },
        SRV: {
          Name: f.owner,
          Service: "sip",
          Proto: "udp",
          Priority: f.number,
          Weight: f.weight,
          Port: f.port,
          Target: f.target,
        },
        TXT: { Name: f.owner, Text: f.text },
      };
      const record = readRecord(type, { ...given[type], TTL: f.ttl }, domain);
      const answer = showRecord(rowOf(record), domain);
      assert.deepEqual(readRecord(type, coerce(answer as never), domain, record), record);
      assert.deepEqual(readRecord(type, coerce(answer as never), domain), record);
      const data = type === "SRV" ? record.value.slice(record.value.indexOf(" ") + 1) : record.value;
      const [set] = recordSets([record], domain.ascii).values();
      assert.deepEqual(fromServed(type, set?.owner ?? "", record.ttl, data, domain.ascii), record);
    }),
    { numRuns: 500 },
  );
});

test("a set has its smallest TTL, and an SRV has the owner of its service", () => {
  const records = [
    readRecord("A", { Name: "www", IP: "10.0.0.1", TTL: 300 }, example),
    readRecord("A", { Name: "www", IP: "10.0.0.2", TTL: 60 }, example),
    readRecord("SRV", { Name: "lab", Service: "sip", Proto: "udp", Port: 5060, Target: "." }, example),
    readRecord("MX", { HostName: "." }, example),
    readRecord("TXT", { Text: "x".repeat(300) }, example),
  ];
  assert.deepEqual(
    [...recordSets(records, "example.com").values()],
    [
      { owner: "www.example.com", type: recordSpecs.A, ttl: 60, data: [["10.0.0.1"], ["10.0.0.2"]] },
      {
        owner: "_sip._udp.lab.example.com",
        type: recordSpecs.SRV,
        ttl: 3600,
        data: [[0, 0, 5060, ""]],
      },
      { owner: "example.com", type: recordSpecs.MX, ttl: 3600, data: [[0, ""]] },
      { owner: "example.com", type: recordSpecs.TXT, ttl: 3600, data: [[["x".repeat(255), "x".repeat(45)]]] },
    ],
  );
  assert.equal(servedOwner(records[2] as StoredRecord), "_sip._udp.lab");
  assert.equal(automaticSoa("example.com", ["ns1.brume.internal"]).rname, "hostmaster.example.com");
});

test("property: the records at and below a name are one range of sort keys", () => {
  const name = fc.oneof(
    fc.constant("@"),
    fc
      .array(fc.constantFrom("a", "a-b", "a0", "_a", "*", "z", "aa"), { minLength: 1, maxLength: 4 })
      .map((labels) => labels.join(".")),
  );
  fc.assert(
    fc.property(name, name, (one, other) => {
      const isBelow = one === "@" ? true : other === one || other.endsWith(`.${one}`);
      const key = sortKey(other);
      assert.equal(key >= sortKey(one) && key < endOfKey(sortKey(one)), isBelow, `${one} ${other}`);
      assert.equal(key === sortKey(one), one === other);
    }),
    { numRuns: 2000 },
  );
});
