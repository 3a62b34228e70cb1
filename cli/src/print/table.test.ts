import assert from "node:assert/strict";
import { test } from "node:test";
import { createStyle, plainText, safe, widthOf } from "./style.ts";
import { align, cell, formatObject, formatTable } from "./table.ts";

const plain = createStyle(false);

test("columns are aligned by the width on a terminal", () => {
  assert.deepEqual(
    align([
      ["a", "b"],
      ["\u001B[32mlong\u001B[39m", "c"],
      ["日本", ""],
    ]),
    ["a     b", "\u001B[32mlong\u001B[39m  c", "日本"],
  );
  assert.deepEqual(["日本", "e\u0301", "🙂", "x"].map(widthOf), [4, 1, 2, 1]);
});

test("a value is one short text", () => {
  const values = [null, "", true, 5, ["a", "b"], [{ a: 1 }], [], { a: 1, b: "x" }, "2026-11-20T09:15:00.120Z"];
  assert.deepEqual(values.map(cell), ["-", "-", "yes", "5", "a,b", "1", "-", "a=1,b=x", "2026-11-20 09:15"]);
});

test("data cannot control the terminal", () => {
  assert.equal(safe("a\u001B[2Jb\u0007\n"), "a\uFFFD[2Jb\uFFFD\n");
  assert.equal(cell("\u001B]0;title\u0007"), "\uFFFD]0;title\uFFFD");
  assert.equal(plainText("\r\r\n\u001B[1;32mok\u001B[0m\u0007\r\n"), "\nok\uFFFD\n");
});

test("a table has the columns of its object, and plain fields where there are none", () => {
  const record = { ID: 1, TypeRecord: "A", TTL: 60, PunyName: "@", CanonicalDescription: "@ 60 IN A 192.0.2.1" };
  assert.deepEqual(formatTable([record], "Record", false, plain), [
    "ID  NAME  TYPE  TTL  VALUE",
    "1   @     A     60   192.0.2.1",
  ]);
  assert.deepEqual(formatTable([{ A: 1, B: [{}], C: null }], "", false, plain), ["A  C", "1  -"]);
  assert.deepEqual(formatObject({ A: 1, List: [{ B: "x" }], Text: "a\nb\n" }, plain), [
    "A:    1",
    "List 1:",
    "  B: x",
    "Text:",
    "  a",
    "  b",
  ]);
});
