/** Reading of request targets: docs/spec.md#base-address-and-paths, rule by rule, on the real contract. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { contract } from "@brume/api/contract.ts";
import type { Operation } from "@brume/api/operation.ts";
import fc from "fast-check";
import { createRouter, parseId } from "./path.ts";

/** Anything that a string can hold, halves of surrogate pairs too. */
const unit = fc.oneof(fc.nat(0x7f), fc.nat(0xffff)).map((code) => String.fromCharCode(code));

const route = createRouter(contract);

function found(target: string) {
  const result = route(target);
  assert.ok(result.found, `${target} was not found`);
  return result;
}

function reason(target: string): string {
  const result = route(target);
  assert.ok(!result.found, `${target} was found`);
  return result.reason;
}

test("every operation is found under its own path", () => {
  for (const [name, operation] of Object.entries<Operation>(contract)) {
    const result = found(operation.path.replaceAll(/\{.+?\}/g, "7"));
    assert.equal(result.operations.get(operation.method), name);
  }
});

test("spellings of one path", () => {
  const rows: [string, string, string][] = [
    ["/dns", "/dns", ""],
    ["/dns/", "/dns", ""],
    ["//dns///", "/dns", ""],
    ["/DnS", "/dns", ""],
    ["/d%6Es", "/dns", ""],
    ["/dns?", "/dns", ""],
    ["/dns?limit=1?x", "/dns", "limit=1?x"],
    ["http://host/Dns?", "/dns", ""],
    ["HTTPS://user@host:8080/dns?a=b", "/dns", "a=b"],
    ["/dns//123/7", "/dns/123/7", ""],
    ["/dns/recordtxt/", "/dns/recordtxt", ""],
    ["/dns/0123", "/dns/123", ""],
    ["/openapi.json", "/openapi.json", ""],
  ];
  for (const [target, path, query] of rows) {
    const result = found(target);
    assert.deepEqual([result.path, result.query], [path, query], target);
  }
});

test("the query is not part of the path", () => {
  assert.equal(found("/dns?/dns/5").path, "/dns");
  assert.equal(found("/dns?%zz").query, "%zz");
});

test("a slash that is percent-encoded does not split", () => {
  assert.deepEqual(found("/dns/a%2Fb").params, { id: "a/b" });
  assert.equal(found("/dns/a%2Fb").path, "/dns/a%2Fb");
});

test("parameters keep their letter case, under the names of their own path", () => {
  assert.deepEqual(found("/DNS/Abc").params, { id: "Abc" });
  assert.deepEqual(found("/dns/3/14").params, { domainid: "3", recordId: "14" });
});

test("a literal wins over a parameter, and only its methods count", () => {
  const record = found("/dns/record/5");
  assert.deepEqual([...record.operations], [["GET", "readRecord"]]);
  assert.deepEqual(record.allow, ["GET", "HEAD", "OPTIONS"]);
  assert.deepEqual(found("/dns/RECORD/5").params, { id: "5" });
});

test("a parameter matches if the literal leads to no operation", () => {
  assert.deepEqual(found("/dns/record").params, { id: "record" });
});

test("letters of other alphabets that look or fold alike do not match", () => {
  assert.equal(reason("/to%E2%84%AAen"), "path_not_found");
});

test("allowed methods: HEAD with every GET but the stream, OPTIONS always", () => {
  assert.deepEqual(found("/dns").allow, ["GET", "HEAD", "POST", "OPTIONS"]);
  assert.deepEqual(found("/dns/3").allow, ["GET", "HEAD", "PUT", "DELETE", "OPTIONS"]);
  assert.deepEqual(found("/dns/recorda/3").allow, ["PUT", "OPTIONS"]);
  assert.deepEqual(found("/event").allow, ["GET", "OPTIONS"]);
});

test("paths without an operation", () => {
  for (const target of ["/", "//", "/dn", "/dnss", "/dns/1/2/3", "/dns.", "/../token", "http://host", "http://host?x"])
    assert.equal(reason(target), "path_not_found", target);
});

test("targets that cannot be decoded", () => {
  for (const target of ["", "*", "dns", "?x", "/%", "/dns/%zz", "/%ff", "/dns/%C3", "/\u{1f600}", "mailto:a@b"])
    assert.equal(reason(target), "path_not_readable", target);
});

test("raw bytes in a target are UTF-8", () => {
  assert.deepEqual(found("/dns/\u00c3\u00a9").params, { id: "é" });
  assert.equal(reason("/dns/\u00e9"), "path_not_readable");
});

test("ids: 1 to 10 digits, at most 2147483647", () => {
  const rows: [string, number | null][] = [
    ["1", 1],
    ["0000000007", 7],
    ["2147483647", 2147483647],
    ["0", 0],
    ["2147483648", null],
    ["00000000001", null],
    ["", null],
    ["-1", null],
    ["+1", null],
    ["1.0", null],
    ["1e3", null],
    [" 1", null],
    ["1\n", null],
    ["٣", null],
    ["0x1", null],
  ];
  for (const [text, id] of rows) assert.equal(parseId(text), id, JSON.stringify(text));
});

test("two operations cannot have the same method and path", () => {
  const operation: Operation = { method: "GET", path: "/a/{id}", access: "open", summary: "", answer: null };
  assert.throws(
    () => createRouter({ one: operation, two: { ...operation, path: "/A/{other}" } }),
    /belongs to two operations/,
  );
});

test("the router never throws, and the returned path leads to the same operations", () => {
  const piece = fc.oneof(
    fc.constantFrom(
      "/",
      "//",
      "dns",
      "DNS",
      "record",
      "%",
      "%2F",
      "%ff",
      "?",
      "http://h",
      "7",
      "\u00e9",
      "\ud800",
      "__proto__",
    ),
    fc.string({ unit }),
  );
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 8 }), (pieces) => {
      const result = route(pieces.join(""));
      if (!result.found) return;
      const again = found(result.path);
      assert.equal(again.operations, result.operations);
      assert.equal(again.path, result.path);
      assert.equal(again.query, "");
    }),
  );
});
