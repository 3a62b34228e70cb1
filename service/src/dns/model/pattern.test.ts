/** Owner patterns of restricted tokens. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { ownerMatches } from "./pattern.ts";

test("patterns", () => {
  const cases: [string, string, boolean][] = [
    ["_acme-challenge*", "_acme-challenge", true],
    ["_acme-challenge*", "_acme-challenge.www", true],
    ["_acme-challenge*", "x_acme-challenge", false],
    ["@", "@", true],
    ["@", "www", false],
    ["*", "@", true],
    ["*", "a.b", true],
    ["w?w", "www", true],
    ["w?w", "ww", false],
    ["WWW", "www", true],
    ["", "@", false],
    ["*.lab", "a.b.lab", true],
    ["*.lab", "lab", false],
    ["?", "*", true],
    ["почта*", "xn--80a1acny", true],
    ["xn--80a*", "xn--80a1acny", true],
    ["a.b", "axb", false],
    ["a**b", "ab", true],
  ];
  for (const [pattern, owner, expected] of cases)
    assert.equal(ownerMatches(pattern, owner), expected, `${pattern} ${owner}`);
});

test("property: agrees with a regular expression", () => {
  const word = fc.string({ unit: fc.constantFrom(...Array.from("ab.*?")), maxLength: 10 });
  const owner = fc.string({ unit: fc.constantFrom(...Array.from("ab.")), maxLength: 12 });
  fc.assert(
    fc.property(word, owner, (pattern, name) => {
      const source = pattern.replaceAll(".", "\\.").replaceAll("?", ".").replaceAll("*", ".*");
      assert.equal(ownerMatches(pattern, name), new RegExp(`^${source}$`).test(name));
    }),
    { numRuns: 2000 },
  );
});
