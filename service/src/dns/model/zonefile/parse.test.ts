/** Master files: the syntax by example, what is wrong by line, that a printed zone reads back, and that BIND or Knot can read it too. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import type { RecordType } from "@brume/api/dns.ts";
import fc from "fast-check";
import { anyText } from "../../../../../test/support/texts.ts";
import type { ApiError } from "../../../base/error.ts";
import { recordKey, type StoredRecord } from "../record.ts";
import { checkZone } from "../rules.ts";
import { automaticSoa } from "../served.ts";
import { checkText } from "../text.ts";
import { parseZone } from "./parse.ts";
import { type PrintedRecord, printZone } from "./print.ts";

const origin = "example.com";
const lines = (text: string) =>
  parseZone(text, origin).records.map(({ type, owner, ttl, value }) => `${owner} ${ttl} ${type} ${value}`);

/** Details of the errors of a zone file. */
function errorsOf(text: string): string[] {
  try {
    parseZone(text, origin);
  } catch (thrown) {
    const error = thrown as ApiError;
    assert.equal(error.code, "zone_file_invalid");
    for (const { pointer, code } of error.errors) assert.deepEqual([pointer, code], ["/ZoneFile", "zone_file_invalid"]);
    return error.errors.map(({ detail }) => detail);
  }
  return assert.fail("the file was taken");
}

test("a file with everything that RFC 1035 knows", () => {
  const zone = parseZone(
    [
      "\ufeff; a comment",
      "$ORIGIN com.",
      "$TTL 1h ; default",
      "example IN SOA ns1 host\\.master (",
      '  1 ; serial "with quote"',
      "  3600 600 1209600 60 )",
      "  NS ns1.example",
      "$ORIGIN example",
      "@ 300 MX 10 mail",
      "www\t300\tIN\tA\t10.0.0.1\r",
      "\tIN 1h30m AAAA 2001:DB8::1",
      "  1w2d IN TXT one (two",
      ' "three; four" ) ; five',
      "blog cname WWW",
      "\\119\\119w2 IN A 10.0.0.2",
      "*.wild A 10.0.0.3",
      "_sip._tcp SRV 10 0 5060 sip.other.net.",
      "_sip._tcp.lab SRV 0 0 0 .",
      "caa CAA 0 issue (",
      ' "ca.example" )',
      "x TYPE65280 \\# 1 00",
      "g A \\# 4 0a00 0004",
      "g AAAA \\# 16 20010db8000000000000000000000001",
      "g MX \\# 8 000A 01 61 02 6262 00",
      "g TXT \\# 3 026162",
      "lab IN NS ns.lab",
      "пример A 10.0.0.5",
      "www 60 A 10.0.0.1",
    ].join("\n"),
    origin,
  );
  assert.deepEqual(
    zone.records.map(({ type, owner, ttl, value }, i) => `${zone.lines[i]}: ${owner} ${ttl} ${type} ${value}`),
    [
      "9: @ 300 MX 10 mail.example.com",
      "10: www 300 A 10.0.0.1",
      "11: www 5400 AAAA 2001:db8::1",
      "12: www 777600 TXT one\u001ftwo\u001fthree; four",
      "14: blog 3600 CNAME WWW.example.com",
      "15: www2 3600 A 10.0.0.2",
      "16: *.wild 3600 A 10.0.0.3",
      "17: @ 3600 SRV _sip._tcp 10 0 5060 sip.other.net",
      "18: lab 3600 SRV _sip._tcp 0 0 0 .",
      "22: g 3600 A 10.0.0.4",
      "23: g 3600 AAAA 2001:db8::1",
      "24: g 3600 MX 10 a.bb",
      "25: g 3600 TXT ab",
      "26: lab 3600 NS ns.lab.example.com",
      "27: xn--e1afmkfd 3600 A 10.0.0.5",
    ],
  );
  assert.deepEqual(zone.skipped, ["line 19: CAA", "line 21: TYPE65280"]);
});

test("a TTL that is not given", () => {
  assert.deepEqual(lines("a A 10.0.0.1\n"), ["a 3600 A 10.0.0.1"]);
  assert.deepEqual(lines("@ SOA a b 1 2 3 4 77\na A 10.0.0.1\n"), ["a 77 A 10.0.0.1"]);
  assert.deepEqual(lines("@ 99 SOA a b 1 2 3 4 77\na A 10.0.0.1\nb 5 A 10.0.0.1\nc A 10.0.0.1"), [
    "a 99 A 10.0.0.1",
    "b 5 A 10.0.0.1",
    "c 5 A 10.0.0.1",
  ]);
  assert.deepEqual(lines("$TTL 7\nb 5 A 10.0.0.1\nc A 10.0.0.1"), ["b 5 A 10.0.0.1", "c 7 A 10.0.0.1"]);
  assert.deepEqual(lines("a 0 A 10.0.0.1"), ["a 0 A 10.0.0.1"]);
});

test("texts with escapes, several strings, UTF-8", () => {
  assert.deepEqual(lines('a TXT "a\\"b" c\\;d "\\195\\169é" ( "x" "y" )'), [
    'a 3600 TXT a"b\u001fc;d\u001féé\u001fx\u001fy',
  ]);
  assert.deepEqual(lines('a TXT unquoted words \\"q'), ['a 3600 TXT unquoted\u001fwords\u001f"q']);
});

test("errors of all lines are reported, and nothing is imported", () => {
  const cases: [string, string[]][] = [
    [
      "a A 1.2.3\n\n b c\nc. A 1.1.1.1",
      [
        'line 1: the A record must have an IPv4 address such as 192.0.2.1, not "1.2.3".',
        'line 3: "b" is no type of record.',
        'line 4: the owner is not inside "example.com": "c.".',
      ],
    ],
    [" A 10.0.0.1", ["line 1: there is no previous owner to continue with."]],
    ["a..b A 10.0.0.1\n TXT x", ['line 1: the owner must not have an empty label, as "a..b" has.']],
    [
      "$INCLUDE other.zone\n$FOO x\n$TTL soon\n$TTL 9999999999\n$ORIGIN a b",
      [
        "line 1: $INCLUDE is not supported, insert the lines of the file instead.",
        'line 2: "$FOO" is no directive.',
        'line 3: $TTL must have a time such as 3600 or 1h after it, not "soon".',
        'line 4: the TTL must be at most 2147483647, not "9999999999".',
        "line 5: $ORIGIN must have one value after it.",
      ],
    ],
    [
      'a TXT "open\nb A 10.0.0.x',
      [
        "line 1: a quoted text does not end on its line.",
        'line 2: the A record must have an IPv4 address such as 192.0.2.1, not "10.0.0.x".',
      ],
    ],
    [
      "a A ) 10.0.0.1\nb ( A\n10.0.0.1",
      ['line 1: there is a ")" without a "(" before it.', 'line 2: there is a "(" without a ")" after it.'],
    ],
    [
      "a CH A 10.0.0.1\na IN\na 300\na A\na A 10.0.0.1 x",
      [
        "line 1: class CH is not served here, only IN.",
        "line 2: the type of the record is missing.",
        "line 3: the type of the record is missing.",
        "line 4: the A record must have 1 word of data, not 0.",
        "line 5: the A record must have 1 word of data, not 2.",
      ],
    ],
    [
      "a MX mail\na MX 65536 m\na MX 5 .\na MX 5 10.0.0.1\na MX 5 10.0.0.1.\na NS .\na CNAME a",
      [
        "line 1: the MX record must have 2 words of data, not 1.",
        "line 2: the MX record must have numbers from 0 to 65535 before its target.",
        'line 3: the MX record must have a host name as target, not ".".',
        'line 4: the MX record must have a host name as target, not the address "10.0.0.1".',
        'line 5: the MX record must have a host name as target, not the address "10.0.0.1.".',
        'line 6: the NS record must have a host name as target, not ".".',
        'line 7: the owner must not be an alias of itself, as "a.example.com." is.',
      ],
    ],
    [
      "a SRV 0 0 0 t\n*._tcp SRV 0 0 0 t\n* NS t",
      [
        'line 1: the owner must begin with _service._proto in an SRV record: "a.example.com.".',
        'line 2: the owner may not begin with * in an SRV record: "*._tcp.example.com.".',
        'line 3: the owner may not begin with * in an NS record: "*.example.com.".',
      ],
    ],
    [
      'a TXT ""\na TXT\na TXT "\\007"\na TXT "\\255"\na A \\# 3 000000\na A \\# 4 00',
      [
        "line 2: the TXT record must have a text.",
        "line 3: the TXT record must not hold control characters, and has U+0007.",
        "line 4: the TXT record must be UTF-8, and some bytes are not.",
        "line 5: the A record has 3 bytes of data that are no A data.",
        "line 6: the A record must have a length and as many bytes in hexadecimal behind \\#.",
      ],
    ],
    [
      "$GENERATE 1-2 a A\n$GENERATE 5-1 a A 10.0.0.$\n$GENERATE 0-99999 a$ A 10.0.0.1\n$GENERATE 250-300 a$ A 10.0.0.$\n$GENERATE 1-2 a${x} A 10.0.0.1",
      [
        "line 1: $GENERATE must have a range, an owner, a type and data after it.",
        'line 2: the range must be such as 1-254 or 0-100/2, not "5-1".',
        'line 3: the range must have at most 65536 steps, not as many as "0-99999".',
        'line 4: the A record must have an IPv4 address such as 192.0.2.1, not "10.0.0.256".',
        'line 5: must have an offset, width and base such as ${0,3,d}, not "a${x}".',
      ],
    ],
  ];
  for (const [text, details] of cases) assert.deepEqual(errorsOf(text), details);
});

test("at most 100 lines are reported, and a huge $GENERATE ends early", () => {
  assert.equal(errorsOf("a A x\n".repeat(5000)).length, 100);
  assert.equal(parseZone("$GENERATE 1-65536 a$ A 10.0.0.1\n".repeat(1000), origin, 500).records.length, 501);
  assert.equal(parseZone("a A 10.0.0.1\n".repeat(1000), origin, 500).records.length, 1);
});

const label = fc.constantFrom(
  "a",
  "B",
  "wWw",
  "x-y",
  "_dmarc",
  "xn--e1afmkfd",
  "0/25",
  "a\\046b",
  "\\032\\092",
  "\\255",
);
const owner = fc.oneof(
  fc.constant("@"),
  fc.array(label, { minLength: 1, maxLength: 3 }).map((labels) => labels.join(".")),
);
const host = fc.oneof(
  fc.constant("example.com"),
  owner.filter((one) => one !== "@").map((one) => `${one}.net`),
);
const text = fc
  .string({ unit: fc.constantFrom(...Array.from('abc"\\;() \t@$é😀')), minLength: 1, maxLength: 400 })
  .filter((one) => typeof checkText(one) === "string");
const number = fc.integer({ min: 0, max: 65_535 });
const values: Record<RecordType, fc.Arbitrary<string>> = {
  A: fc.ipV4(),
  AAAA: fc.constantFrom("::", "::1", "2001:db8::1", "::ffff:192.0.2.1"),
  CNAME: host,
  NS: host,
  MX: fc.oneof(
    fc.constant("0 ."),
    fc.tuple(number, host).map((parts) => parts.join(" ")),
  ),
  SRV: fc.tuple(number, number, number, fc.oneof(host, fc.constant("."))).map((parts) => `_s._tcp ${parts.join(" ")}`),
  TXT: fc.oneof(
    text,
    fc
      .array(fc.constantFrom("", "a=1", 'b="2"', "é;"), { minLength: 2, maxLength: 3 })
      .map((strings) => strings.join("\u001f")),
  ),
};
const record = fc.constantFrom<RecordType>("A", "AAAA", "CNAME", "NS", "MX", "SRV", "TXT").chain((type) =>
  fc.record(
    {
      type: fc.constant(type),
      owner: type === "SRV" ? owner.map((one) => one.replace(/^\*\.?/, "") || "@") : owner,
      ttl: fc.integer({ min: 0, max: 2_147_483_647 }),
      value: values[type],
      labels: fc.constantFrom('{"env":"prod"}', '{"a/b.c":"","team":"x_y"}'),
    },
    { requiredKeys: ["type", "owner", "ttl", "value"] },
  ),
);

/** Zones that could be stored. */
const zones = fc.array(record, { maxLength: 20 }).map((list) => {
  const guilty = new Set(checkZone(list).map(({ index }) => index));
  return list.filter((_, index) => !guilty.has(index));
});
const print = (records: readonly StoredRecord[], domain = origin) =>
  printZone(
    { ascii: domain, labels: "{}" },
    automaticSoa(domain, ["ns1.brume.internal"]),
    7,
    ["ns1.brume.internal", "ns2.brume.internal"],
    records,
  );
const sorted = (records: readonly StoredRecord[]) =>
  records.map(({ type, owner: name, ttl, value }) => JSON.stringify([type, name, ttl, value])).sort();

test("property: a printed zone is ASCII and is parsed again completely, with labels and the NS set at the top", () => {
  fc.assert(
    fc.property(zones, (records) => {
      const printed = print(records);
      assert.match(printed, /^[\n -~]*$/);
      const read = parseZone(printed, origin);
      assert.deepEqual(sorted(read.records), sorted(records));
      assert.equal(read.definesTop, true);
      const labelled = (list: readonly StoredRecord[], of: (one: StoredRecord) => string | undefined) =>
        list.flatMap((one) => (of(one) === undefined ? [] : [`${recordKey(one)} ${of(one)}`])).sort();
      assert.deepEqual(
        labelled(read.records, (one) => read.labels.get(one)),
        labelled(records, (one) => (one as PrintedRecord).labels),
      );
    }),
    { numRuns: 500 },
  );
});

test("property: any text is a zone or an error, and a zone can be printed and parsed again", () => {
  const word = fc.constantFrom(
    "@",
    "a",
    "www",
    "IN",
    "300",
    "A",
    "TXT",
    "MX",
    "10.0.0.1",
    "10",
    "(",
    ")",
    '"',
    "\\",
    ";",
    "$TTL",
    "$ORIGIN",
    "$GENERATE",
    "1-3",
    "$",
    "${1,2,n}",
    "\n",
    "\n ",
    "\r\n",
    "\t",
    "é",
    "\\065",
    "\\#",
    "4",
    "CNAME",
    "_a._b",
    "SRV",
    ".",
    "x.",
  );
  const file = fc
    .array(fc.tuple(word, fc.constantFrom(" ", " ", "", "\n")), { maxLength: 40 })
    .map((parts) => parts.flat().join(""));
  // Words alone seldom make a zone.
  const lines = fc.constantFrom("a A 192.0.2.1\n", 'b 60 TXT "x;y" z\n', "c IN MX 5 d\n", "*.e AAAA 2001:db8::1\n");
  const zones = fc.array(lines, { maxLength: 6 }).map((parts) => parts.join(""));
  let taken = 0;
  fc.assert(
    fc.property(fc.oneof(file, zones, anyText(100)), (given) => {
      let zone: ReturnType<typeof parseZone>;
      try {
        zone = parseZone(given, origin);
      } catch (error) {
        assert.equal((error as ApiError).code, "zone_file_invalid", String(error));
        return;
      }
      if (zone.records.length > 0) taken++;
      assert.deepEqual(sorted(parseZone(print(zone.records), origin).records), sorted(zone.records));
    }),
    { numRuns: 5000 },
  );
  assert.ok(taken > 0);
});

test("the automatic NS set is used if the zone has none", () => {
  const top: StoredRecord = { type: "NS", owner: "@", ttl: 60, value: "ns.other.net" };
  assert.deepEqual(print([]).split("\n"), [
    "example.com. 3600 IN SOA ns1.brume.internal. hostmaster.example.com. 7 3600 600 1209600 60",
    "example.com. 3600 IN NS ns1.brume.internal. ; brume: automatic",
    "example.com. 3600 IN NS ns2.brume.internal. ; brume: automatic",
    "",
  ]);
  assert.deepEqual(print([top]).split("\n").slice(1), ["example.com. 60 IN NS ns.other.net. ; brume: own", ""]);
});

/** Other parsers, each with its arguments to check `zone` in a folder. */
const checkers: [string, (folder: string) => string[]][] = [
  ["named-checkzone", (folder) => ["-i", "none", "-k", "ignore", origin, join(folder, "zone")]],
  ["kzonecheck", (folder) => ["-o", origin, join(folder, "zone")]],
  ["knotc", (folder) => ["-c", join(folder, "knot.conf"), "zone-check", origin]],
];
const checker = checkers.find(([command]) => spawnSync(command, ["-h"]).error === undefined);
const none = `none of ${checkers.map(([command]) => command).join(", ")} is on PATH`;

test("another parser accepts a printed zone", { skip: checker ? false : none }, () => {
  const [command, argsOf] = checker as (typeof checkers)[number];
  const folder = mkdtempSync(join(tmpdir(), "zonefile-"));
  const settings = [
    `server:\n  rundir: ${folder}`,
    `database:\n  storage: ${folder}`,
    `zone:\n  - domain: ${origin}\n    storage: ${folder}\n    file: zone\n    semantic-checks: off\n`,
  ];
  writeFileSync(join(folder, "knot.conf"), settings.join("\n"));
  try {
    for (const sample of fc.sample(zones, 20)) {
      // Some want addresses for a server at the top.
      const records = sample.filter(({ type, value }) => type !== "NS" || value !== origin);
      writeFileSync(join(folder, "zone"), print(records));
      const { status, stdout, stderr } = spawnSync(command, argsOf(folder), { encoding: "utf8" });
      assert.equal(status, 0, `${stdout}${stderr}\n${print(records)}`);
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
});
