/** Every kind of field, from a request, a zone file and a message to the bytes that the name server sends, and back. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { FieldKind } from "@brume/api/record/spec.ts";
import { recordSpecs, recordTypes } from "@brume/api/record/types.ts";
import { maxRdataSize, writeRdata } from "../../drivers/nameserver/wire/rdata.ts";
import { kindsOf } from "./data.ts";
import { kinds } from "./kind.ts";

const example = { name: "example.com", ascii: "example.com" };
const readName = (word: string) => (word === "." ? "" : word.replace(/\.$/, ""));

function encode(kind: FieldKind, value: string): Buffer {
  const data = [kinds[kind].toData(value)];
  const bytes = Buffer.alloc(maxRdataSize(data));
  const end = writeRdata(bytes, 0, { name: "X", code: 65_280, data: [{ kind, name: kind }] }, data);
  return bytes.subarray(0, end);
}

/** The text of a request, the words of a zone file, the value that is kept, the wire form, the response, the printed zone file. */
const samples: readonly [FieldKind, string, readonly string[], string, string, string, string][] = [
  ["u8", "255", ["255"], "255", "ff", "255", "255"],
  ["u16", "007", ["007"], "7", "0007", "7", "7"],
  ["u32", "4294967295", ["4294967295"], "4294967295", "ffffffff", "4294967295", "4294967295"],
  ["ipv4", "192.0.2.1", ["192.0.2.1"], "192.0.2.1", "c0000201", "192.0.2.1", "192.0.2.1"],
  [
    "ipv6",
    "2001:DB8::0:1",
    ["2001:DB8::0:1"],
    "2001:db8::1",
    "20010db8000000000000000000000001",
    "2001:db8::1",
    "2001:db8::1",
  ],
  ["name", "a.b.", ["a.b."], "a.b", "0161016200", "a.b.", "a.b."],
  ["name", ".", ["."], ".", "00", ".", "."],
  ["string", "a b", ["a b"], '"a\\032b"', "03612062", "a b", '"a\\032b"'],
  ["string", 'ü"', ['ü\\"'], '"\\195\\188\\""', "03c3bc22", 'ü"', '"\\195\\188\\""'],
  ["string", "", [""], '""', "00", "", '""'],
  ["strings", '"a" "b c"', ["a", "b c"], "a\x1fb c", "016103622063", '"a" "b c" ', '"a" "b c"'],
  [
    "text",
    "ca.example; x",
    ["ca.example; x"],
    "ca.example; x",
    "63612e6578616d706c653b2078",
    "ca.example; x",
    '"ca.example; x"',
  ],
  ["hex", "00FF a1", ["00FF", "a1"], "00ffa1", "00ffa1", "00ffa1", "00ffa1"],
  ["base64", "AP+h", ["AP", "+h"], "AP+h", "00ffa1", "AP+h", "AP+h"],
];

for (const [kind, text, words, value, wire, shown, printed] of samples)
  test(`${kind}: ${JSON.stringify(text)}`, () => {
    const definition = kinds[kind];
    assert.equal(definition.read(text, example.ascii), value);
    assert.equal(definition.parse(words, readName), value);
    const bytes = encode(kind, value);
    assert.equal(bytes.toString("hex"), wire);
    assert.equal(definition.size(value), bytes.length);
    assert.deepEqual(definition.decode(bytes, 0, bytes.length), { value, end: bytes.length });
    assert.equal(definition.show(value, example), shown);
    assert.equal(definition.print(value), printed);
    if (!definition.takesRest)
      assert.ok(kind === "text" || !value.includes(" "), "a value in the middle has no blanks");
  });

test("an invalid value is rejected, in a request and in a zone file", () => {
  const bad: readonly [FieldKind, string][] = [
    ["u8", "256"],
    ["u16", "-1"],
    ["u32", "4294967296"],
    ["ipv4", "1.2.3"],
    ["ipv6", "1.2.3.4"],
    ["name", "a..b"],
    ["name", "192.0.2.1"],
    ["string", "x".repeat(256)],
    ["string", "\n"],
    ["text", "\0"],
    ["hex", "abc"],
    ["hex", ""],
    ["base64", "AP-h"],
  ];
  for (const [kind, text] of bad) {
    assert.equal(typeof kinds[kind].read(text, example.ascii), "object", `${kind} ${text}`);
    const readBad = (word: string) => kinds.name.read(word, "");
    assert.equal(typeof kinds[kind].parse([text], readBad), "object", `${kind} ${text}`);
  }
});

test("a message that ends inside a field is invalid", () => {
  for (const [kind, , , value] of samples) {
    if (kinds[kind].takesRest || kind === "text") continue;
    const bytes = encode(kind, value);
    const field = kinds[kind].decode(bytes.subarray(0, bytes.length - 1), 0, bytes.length - 1);
    assert.equal(field, null, kind);
  }
});

test("the table of types is sound", () => {
  assert.equal(new Set(recordTypes.map((type) => recordSpecs[type].code)).size, recordTypes.length);
  for (const type of recordTypes) {
    const spec = recordSpecs[type];
    assert.equal(spec.name, type);
    const fields = ["Name", "HostName", ...Object.keys(spec.fields)];
    const used = [
      ...(spec.owner ?? []),
      ...(spec.labels ?? []).map(({ field }) => field),
      ...spec.data.flatMap(({ from, shown, errorField }) => [
        ...from,
        shown,
        ...(errorField === undefined ? [] : [errorField]),
      ]),
    ];
    for (const name of used) assert.ok(fields.includes(name), `${type} has no field ${name}`);
    const open = kindsOf(type).findIndex((kind) => kind.takesRest || kind === kinds.text);
    assert.ok(open < 0 || open === spec.data.length - 1, `only the last field of ${type} can have blanks`);
  }
});
