/** Numbers as written. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { toInteger, toPlain } from "./decimal.ts";

test("integers in their shortest form", () => {
  const rows: [string, number | null, string | null][] = [
    ["0", 0, "0"],
    ["-0", 0, "0"],
    ["0e99999999999", 0, "0"],
    ["10.0", 10, "10"],
    ["1e3", 1000, "1000"],
    ["1.50e1", 15, "15"],
    ["1.5", null, "1.5"],
    ["-1.10", null, "-1.1"],
    ["100e-2", 1, "1"],
    ["100e-3", null, "0.1"],
    ["0.00012e2", null, "0.012"],
    ["1.0000000000000000001", null, "1.0000000000000000001"],
    ["12345678901234567890", Number("12345678901234567890"), "12345678901234567890"],
    ["1e21", 1e21, "1000000000000000000000"],
    ["1e400", Number.POSITIVE_INFINITY, null],
    ["1e99999999999999999999", Number.POSITIVE_INFINITY, null],
    ["1e-400", null, null],
    ["1e-99999999999999999999", null, null],
  ];
  for (const [text, integer, plain] of rows) {
    assert.equal(toInteger(text), integer, text);
    assert.equal(toPlain(text), plain, text);
  }
});

test("every double is printed and parsed unchanged", () => {
  const double = fc.double({ noNaN: true, noDefaultInfinity: true });
  fc.assert(
    fc.property(double, (value) => {
      assert.equal(Number(toPlain(String(value))) + 0, value + 0);
      assert.equal(toInteger(String(value)) !== null, Number.isInteger(value));
    }),
  );
});
