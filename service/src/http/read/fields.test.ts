/**
 * Fields of a body: docs/spec.md#reading-the-request-body, rules 8 to 12, lists and maps of docs/spec.md#coercion, docs/spec.md#strict-mode,
 * and how errors are reported.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { boolean, date, id, integer, Labels, list, name, optional, text, word } from "@brume/api/common.ts";
import { type TObject, Type } from "typebox";
import { decodeBody } from "./body.ts";
import { readFields } from "./fields.ts";

function read(schema: TObject, body: string, strict = false) {
  return readFields(schema, decodeBody(new TextEncoder().encode(body), {}, strict), { strict });
}

/** What is read of a good body. */
function value(schema: TObject, body: string, strict = false): unknown {
  const { value, errors } = read(schema, body, strict);
  assert.deepEqual(errors, [], body);
  return value;
}

/** Pointer and code of each error. */
function errors(schema: TObject, body: string, strict = false): string[] {
  return read(schema, body, strict).errors.map(({ pointer, code }) => `${pointer} ${code}`);
}

function details(schema: TObject, body: string, strict = false): string[] {
  return read(schema, body, strict).errors.map(({ detail }) => detail);
}

const plain = Type.Object({ Name: optional(text()), Size: optional(integer(0, 9)), On: optional(boolean()) });
const number = optional(integer(1, 9));
const rule = Type.Object({ Name: optional(text()), Source: text(), Port: optional(integer(1, 65535)) });
const rich = Type.Object({
  Keys: optional(list(id())),
  Names: optional(list(text())),
  Labels: optional(Labels),
  Rules: optional(list(rule)),
  Quotas: optional(Type.Object({ Servers: number, CPU: number })),
});

test("rule 8: names in any ASCII letter case; the last of several matches counts", () => {
  assert.deepEqual(value(plain, '{"NAME":"a","sIZE":1,"on":true}'), { Name: "a", Size: 1, On: true });
  assert.deepEqual(value(plain, '{"Name":"a","name":"b"}'), { Name: "b" });
  assert.deepEqual(value(plain, '{"name":"b","Name":"a"}'), { Name: "a" });
  assert.deepEqual(value(plain, '{"Name":"a","Name":"b"}'), { Name: "b" });
  assert.deepEqual(value(plain, '{"Name":"a","name":"b","Name":"c"}'), { Name: "c" });
  assert.deepEqual(value(plain, "{'Name':'a','name':'b','Name':'c'}"), { Name: "c" });
  assert.deepEqual(value(plain, "Name=a&name=b&Name=c"), { Name: "c" });
  assert.deepEqual(value(plain, '{"Name":"a","name":null}'), {});
  assert.deepEqual(value(rich, '{"Quotas":{"cpu":1,"CPU":2,"cpu":3}}'), { Quotas: { CPU: 3 } });
  assert.deepEqual(value(plain, '{"ſize":1,"\u212aeys":1}'), {});
});

test("rule 8: other names, the first that is present and not empty", () => {
  const schema = Type.Object({ Name: text({ "x-also": ["DomainName", "Title"] }), Title2: optional(text()) });
  assert.deepEqual(value(schema, '{"domainname":"a"}'), { Name: "a" });
  assert.deepEqual(value(schema, '{"Title":"c","DomainName":"b","Name":"a"}'), { Name: "a" });
  assert.deepEqual(value(schema, '{"Title":"c","DomainName":"b","Name":""}'), { Name: "b" });
  assert.deepEqual(value(schema, '{"Title":"c","DomainName":" ","Name":null}'), { Name: "c" });
  assert.deepEqual(value(schema, "Title=c&DomainName=&Name="), { Name: "c" });
  assert.deepEqual(errors(schema, '{"Title":"","DomainName":7.5e999}'), ["/Name type_mismatch"]);
  const edit = Type.Object({ Name: optional(text({ "x-also": ["Title"] })) });
  assert.deepEqual(value(edit, '{"Title":""}'), { Name: "" });
});

test("rule 8: the name of a field is never an alias of another", () => {
  const schema = Type.Object({ A: optional(text({ "x-also": ["B"] })), B: optional(text()) });
  assert.deepEqual(value(schema, '{"b":"x"}'), { B: "x" });
});

test("rule 9: unknown fields are ignored, also names of JavaScript properties", () => {
  const hostile = '{"__proto__":{"Name":"x"},"constructor":{"prototype":{}},"toString":1,"Other":[{}],"Size":1}';
  assert.deepEqual(value(plain, hostile), { Size: 1 });
  assert.deepEqual(value(plain, hostile.replaceAll('"', "'")), { Size: 1 });
  assert.deepEqual(value(plain, "__proto__[Name]=x&constructor=y&Size=1"), { Size: 1 });
});

test("rule 10: null is absent; empty text is absent for all but text", () => {
  const optionals = Type.Object({
    Text: optional(text()),
    Word: optional(word(["A"])),
    Date: optional(date()),
    Number: number,
    List: optional(list(id())),
    Map: optional(Labels),
    Object: optional(Type.Object({ A: text() })),
  });
  const names = Object.keys(optionals.properties);
  const all = (given: string): string => `{${names.map((name) => `"${name}":${given}`).join(",")}}`;
  assert.deepEqual(value(optionals, all("null")), {});
  assert.deepEqual(value(optionals, all('""')), { Text: "" });
  assert.deepEqual(value(optionals, all('"  "')), { Text: "" });
  assert.deepEqual(value(optionals, names.map((name) => `${name}=`).join("&")), { Text: "" });
  const required = Type.Object({
    Text: text(),
    Number: integer(1, 2),
    List: list(id()),
    Raw: text({ "x-verbatim": true }),
  });
  const missing = ["/Text", "/Number", "/List", "/Raw"].map((pointer) => `${pointer} field_required`);
  assert.deepEqual(errors(required, "{}"), missing);
  assert.deepEqual(errors(required, '{"Text":"","Number":"","List":"","Raw":""}'), missing);
  assert.deepEqual(errors(required, '{"Text":null,"Number":null,"List":null,"Raw":null}'), missing);
});

test("rule 11: an absent field of an update is absent in its value", () => {
  assert.deepEqual(Object.keys(value(plain, '{"Size":1}') as object), ["Size"]);
  assert.deepEqual(value(plain, ""), {});
});

test("rule 12: text is trimmed and normalised to NFC, with exceptions", () => {
  const schema = Type.Object({ Name: text(), Text: text({ "x-verbatim": true }) });
  assert.deepEqual(value(schema, '{"Name":" e\u0301 ","Text":" e\u0301 "}'), { Name: "é", Text: " e\u0301 " });
});

test("defaults replace absent values, not invalid ones", () => {
  const schema = Type.Object({ Size: optional(integer(0, 9, { default: 3 })) });
  assert.deepEqual(value(schema, "{}"), { Size: 3 });
  assert.deepEqual(value(schema, '{"Size":""}'), { Size: 3 });
  assert.deepEqual(read(schema, '{"Size":10}').value, {});
});

test("lists of ids and texts", () => {
  const rows: [string, unknown][] = [
    ['{"Keys":[1,"2"," 3 "]}', { Keys: [1, 2, 3] }],
    ['{"Keys":[]}', { Keys: [] }],
    ['{"Keys":7}', { Keys: [7] }],
    ['{"Keys":"7"}', { Keys: [7] }],
    ['{"Keys":"1, 2,,3,"}', { Keys: [1, 2, 3] }],
    ['{"Keys":[1,null,""]}', { Keys: [1] }],
    ["Keys=1&Keys=2", { Keys: [1, 2] }],
    ["Keys=1,2", { Keys: [1, 2] }],
    ["Keys[]=1&Keys[]=2", { Keys: [1, 2] }],
    ["Keys[1]=2&Keys[0]=1&Keys[999999999]=3", { Keys: [1, 2, 3] }],
    ["keys=1&KEYS[]=2", { Keys: [1, 2] }],
    ['{"Names":["a,b"," c ",17,true]}', { Names: ["a,b", "c", "17", "true"] }],
    ['{"Names":true}', { Names: ["true"] }],
  ];
  for (const [body, wanted] of rows) assert.deepEqual(value(rich, body), wanted, body);
  assert.deepEqual(errors(rich, '{"Keys":{"0":1}}'), ["/Keys type_mismatch"]);
  assert.deepEqual(errors(rich, "Keys[a]=1"), ["/Keys type_mismatch"]);
  assert.deepEqual(errors(rich, '{"Keys":[1,"x",0,[2],{}]}'), [
    "/Keys/1 type_mismatch",
    "/Keys/2 out_of_range",
    "/Keys/3 type_mismatch",
    "/Keys/4 type_mismatch",
  ]);
  assert.deepEqual(errors(rich, '{"Keys":"1,x"}'), ["/Keys/1 type_mismatch"]);
});

test("lists that ignore items that are not integers", () => {
  const schema = Type.Object({ SshKeys: optional(list(id({ "x-id": true }), { "x-skip": true })) });
  assert.deepEqual(value(schema, '{"SshKeys":"System.Collections.Generic.List`1[System.Int32]"}'), { SshKeys: [] });
  assert.deepEqual(value(schema, '{"SshKeys":[1,"x",{},2.5,0,3]}'), { SshKeys: [1, 3] });
  assert.deepEqual(errors(schema, '{"SshKeys":[1,-3]}'), ["/SshKeys/1 out_of_range"]);
  assert.deepEqual(errors(schema, '{"SshKeys":[1,"x"]}', true), ["/SshKeys/1 type_mismatch"]);
});

test("limits of the number of items", () => {
  const schema = Type.Object({ Keys: list(id(), { minItems: 1, maxItems: 2 }) });
  assert.deepEqual(errors(schema, '{"Keys":[]}'), ["/Keys too_short"]);
  assert.deepEqual(errors(schema, '{"Keys":[null]}'), ["/Keys too_short"]);
  assert.deepEqual(errors(schema, '{"Keys":[1,2,3]}'), ["/Keys too_long"]);
  assert.deepEqual(errors(schema, '{"Keys":["x"]}'), ["/Keys/0 type_mismatch"]);
  assert.deepEqual(details(schema, '{"Keys":[1,2,3]}'), ["Keys must have at most 2 items, not 3."]);
});

test("maps", () => {
  const rows: [string, unknown][] = [
    [
      '{"Labels":{"env":"prod","a.b/c":"","n":1,"t":true,"x":" y "}}',
      { env: "prod", "a.b/c": "", n: "1", t: "true", x: "y" },
    ],
    ['{"Labels":{"Env":"a","env":"b"}}', { Env: "a", env: "b" }],
    ['{"Labels":{"env":"a","env":"b"}}', { env: "b" }],
    ['{"Labels":{"env":null}}', {}],
    ['{"Labels":{}}', {}],
    ["Labels[env]=prod&labels[a.b/c]=", { env: "prod", "a.b/c": "" }],
    ['{"Labels":{"constructor":"x","toString":"y"}}', { constructor: "x", toString: "y" }],
  ];
  for (const [body, labels] of rows) assert.deepEqual(value(rich, body), { Labels: labels }, body);
  for (const body of ['{"Labels":[]}', '{"Labels":"a=b"}', '{"Labels":7}', "Labels=a"])
    assert.deepEqual(errors(rich, body), ["/Labels type_mismatch"], body);
  assert.deepEqual(errors(rich, '{"Labels":{"a/b/c":"x","__proto__":"x","k":"-","l":{},"m":[1]}}'), [
    "/Labels/a~1b~1c format_invalid",
    "/Labels/__proto__ format_invalid",
    "/Labels/k format_invalid",
    "/Labels/l type_mismatch",
    "/Labels/m type_mismatch",
  ]);
  const many = Object.fromEntries(Array.from({ length: 33 }, (_, index) => [`k${index}`, ""]));
  assert.deepEqual(errors(rich, JSON.stringify({ Labels: many })), ["/Labels too_long"]);
});

test("lists of objects", () => {
  const web = { Rules: [{ Name: "web", Source: "any", Port: 80 }, { Source: "10.0.0.1" }] };
  const forms = [
    JSON.stringify(web),
    '{"rules":[{"NAME":"web","SOURCE":"any","port":"80"},{"Source":"10.0.0.1","Number":2}]}',
    "Rules[0].Name=web&Rules[0].Source=any&Rules[0].Port=80&Rules[1].Source=10.0.0.1",
    "rules[1][source]=10.0.0.1&rules[0][name]=web&Rules[0][Source]=any&Rules[0][Port]=80",
  ];
  for (const body of forms) assert.deepEqual(value(rich, body), web, body);
  for (const body of [
    '{"Rules":{"Source":"any"}}',
    '{"Rules":"any"}',
    "Rules=any",
    "Rules.Source=any",
    "Rules[].Source=any",
  ])
    assert.deepEqual(errors(rich, body), ["/Rules type_mismatch"], body);
  assert.deepEqual(errors(rich, '{"Rules":[{"Source":"a"},{"Port":0},7,null,[]]}'), [
    "/Rules/1/Source field_required",
    "/Rules/1/Port out_of_range",
    "/Rules/2 type_mismatch",
    "/Rules/3 type_mismatch",
    "/Rules/4 type_mismatch",
  ]);
  assert.deepEqual(details(rich, '{"Rules":[null]}'), ["Rules must have objects only, not null."]);
});

test("objects inside objects", () => {
  for (const body of [
    '{"Quotas":{"servers":"3","CPU":4}}',
    "Quotas[Servers]=3&Quotas[CPU]=4",
    "quotas.servers=3&Quotas.CPU=4",
  ])
    assert.deepEqual(value(rich, body), { Quotas: { Servers: 3, CPU: 4 } }, body);
  for (const body of ['{"Quotas":[]}', '{"Quotas":"3"}', "Quotas=3", '{"Quotas":7}'])
    assert.deepEqual(errors(rich, body), ["/Quotas type_mismatch"], body);
  assert.deepEqual(errors(rich, "Quotas[CPU]=x&Quotas[Servers][0]=1"), [
    "/Quotas/Servers type_mismatch",
    "/Quotas/CPU type_mismatch",
  ]);
  const nested = Type.Object({ RateLimit: optional(Type.Object({ Requests: integer(1, 9), Seconds: integer(1, 9) })) });
  assert.deepEqual(errors(nested, '{"RateLimit":{"Seconds":1}}'), ["/RateLimit/Requests field_required"]);
  assert.deepEqual(errors(nested, '{"RateLimit":{}}').length, 2);
});

test("all errors, in the order and spelling of the schema", () => {
  const body = Type.Object({ Name: name(), CPU: integer(1, 64), Type: word(["A", "B"]), When: date() });
  assert.deepEqual(errors(body, '{"when":"x","type":"C","cpu":900}'), [
    "/Name field_required",
    "/CPU out_of_range",
    "/Type value_not_allowed",
    "/When type_mismatch",
  ]);
});

test("sentences", () => {
  const schema = Type.Object({
    Name: optional(name()),
    TTL: optional(integer(1, 2147483647)),
    CPU: optional(integer(1, 64)),
    Type: optional(word(["A", "B"])),
    Key: optional(text({ maxLength: 3, "x-secret": true })),
    Secrets: optional(Type.Object({ Size: integer(1, 9) }, { "x-secret": true })),
  });
  const rows: [string, string][] = [
    ['{"TTL":"abc"}', 'TTL must be an integer between 1 and 2147483647, not "abc".'],
    ['{"TTL":[1]}', "TTL must be an integer between 1 and 2147483647, not a list."],
    ['{"TTL":{"digits":"1"}}', "TTL must be an integer between 1 and 2147483647, not an object."],
    ["TTL[a]=1", "TTL must be an integer between 1 and 2147483647, not an object."],
    ['{"TTL":1.50}', "TTL must be an integer between 1 and 2147483647, not 1.5."],
    ['{"CPU":900}', "CPU must be between 1 and 64, not 900."],
    ['{"cpu":12345678901234567890}', "CPU must be between 1 and 64, not 12345678901234567890."],
    ['{"Type":"C"}', 'Type must be one of A, B, not "C".'],
    ['{"Name":"<b>"}', 'Name must be text with no control characters, no < and no >, not "<b>".'],
    [`{"Name":"${"x".repeat(70)}"}`, "Name must be at most 64 characters long, not 70."],
    [`{"TTL":"${"x".repeat(70)}"}`, `TTL must be an integer between 1 and 2147483647, not "${"x".repeat(40)}…".`],
    ['{"Key":"hunter2"}', "Key must be at most 3 characters long, not 7."],
    ['{"Key":["hunter2"]}', "Key must be text."],
    ['{"Secrets":{"Size":"hunter2"}}', "Size must be an integer between 1 and 9."],
  ];
  for (const [body, detail] of rows) assert.deepEqual(details(schema, body), [detail]);
});

test("no error sentence contains a line break", () => {
  const odd = "\r\n\u0000\u0007\u001b[31m\u2028\u202e\u200b\ufeffx😀".repeat(9);
  const [detail = ""] = details(plain, JSON.stringify({ Size: odd }));
  assert.match(detail, /^Size must be an integer between 0 and 9, not "[\x20-\x7e😀…]{40,300}"\.$/u);
});

test("at most a thousand errors are reported", () => {
  const body = JSON.stringify({ Keys: Array.from({ length: 5000 }, () => "x") });
  assert.equal(errors(rich, body).length, 1000);
});

test("strict: unknown fields, and names in other letter case", () => {
  assert.deepEqual(errors(plain, '{"Name":"a","Nam/e":1,"size":1,"__proto__":2}', true), [
    "/Nam~1e unknown_field",
    "/size unknown_field",
    "/__proto__ unknown_field",
  ]);
  assert.deepEqual(errors(rich, '{"Rules":[{"Source":"a","x":1}],"Quotas":{"cpu":1}}', true), [
    "/Rules/0/x unknown_field",
    "/Quotas/cpu unknown_field",
  ]);
  assert.deepEqual(errors(plain, "name=a&Size=1", true), ["/name unknown_field"]);
  assert.deepEqual(value(plain, "Name=a&Size=1&On=true", true), { Name: "a", Size: 1, On: true });
});

test("strict: keys of responses are accepted if the schema lists them", () => {
  const rule = Type.Object({ Source: text() }, { "x-shown": ["Source", "Packets"] });
  const schema = Type.Object({ Rules: optional(list(rule)) }, { "x-shown": ["ConfirmBy"] });
  const body = '{"Rules":[{"Source":"any","Packets":7}],"ConfirmBy":null}';
  assert.deepEqual(value(schema, body, true), { Rules: [{ Source: "any" }] });
  assert.deepEqual(errors(schema, '{"Packets":7,"Rules":[{"Source":"any","packets":7}]}', true), [
    "/Rules/0/packets unknown_field",
    "/Packets unknown_field",
  ]);
});

test("strict: fields given twice", () => {
  const also = Type.Object({ Name: text({ "x-also": ["DomainName"] }) });
  assert.deepEqual(errors(plain, '{"Name":"a","Name":"a"}', true), ["/Name duplicate_field"]);
  assert.deepEqual(errors(plain, "Name=a&Name=b", true), ["/Name duplicate_field"]);
  assert.deepEqual(errors(also, '{"Name":"a","DomainName":"b"}', true), ["/Name duplicate_field"]);
  assert.deepEqual(errors(rich, '{"Labels":{"a":"1","a":"2"},"Rules":[{"Source":"a","Source":"a"}]}', true), [
    "/Labels/a duplicate_field",
    "/Rules/0/Source duplicate_field",
  ]);
  assert.deepEqual(value(also, '{"DomainName":"b"}', true), { Name: "b" });
  assert.deepEqual(value(rich, "Keys=1&Keys=2", true), { Keys: [1, 2] });
});

test("strict: values are not converted, but null is still absent", () => {
  assert.deepEqual(errors(plain, '{"Name":17,"Size":"1","On":1}', true), [
    "/Name type_mismatch",
    "/Size type_mismatch",
    "/On type_mismatch",
  ]);
  assert.deepEqual(errors(rich, '{"Keys":7,"Names":"a,b","Labels":{"n":1},"Quotas":""}', true), [
    "/Keys type_mismatch",
    "/Names type_mismatch",
    "/Labels/n type_mismatch",
    "/Quotas type_mismatch",
  ]);
  assert.deepEqual(errors(rich, '{"Keys":[null]}', true), ["/Keys/0 type_mismatch"]);
  assert.deepEqual(errors(plain, '{"Size":1.0}', true), ["/Size type_mismatch"]);
  assert.deepEqual(value(plain, '{"Name":null,"Size":null}', true), {});
});
