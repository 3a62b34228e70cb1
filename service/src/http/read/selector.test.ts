/** Filters of lists: the grammar of docs/spec.md#lists. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { ApiError } from "../../base/error.ts";
import { termsOf } from "../../base/term.ts";
import { conditionsOf, matches, nameMatcher, parseSelector, type Requirement, stateMatcher } from "./selector.ts";

/** Anything that a string can hold, halves of surrogate pairs too. */
const unit = fc.oneof(fc.nat(0x7f), fc.nat(0xffff)).map((code) => String.fromCharCode(code));

test("valid selectors", () => {
  const rows: [string, Requirement[]][] = [
    ["env", [{ key: "env", op: "present" }]],
    ["!env", [{ key: "env", op: "absent" }]],
    [" ! env ", [{ key: "env", op: "absent" }]],
    ["env=prod", [{ key: "env", op: "in", values: ["prod"] }]],
    ["env == prod", [{ key: "env", op: "in", values: ["prod"] }]],
    ["env=", [{ key: "env", op: "in", values: [""] }]],
    ["env!=prod", [{ key: "env", op: "notin", values: ["prod"] }]],
    ["env in (a,b)", [{ key: "env", op: "in", values: ["a", "b"] }]],
    ["env in(a)", [{ key: "env", op: "in", values: ["a"] }]],
    ["env in ( a , )", [{ key: "env", op: "in", values: ["a", ""] }]],
    ["env notin (a,b)", [{ key: "env", op: "notin", values: ["a", "b"] }]],
    ["in", [{ key: "in", op: "present" }]],
    ["in in (in)", [{ key: "in", op: "in", values: ["in"] }]],
    ["notin=in", [{ key: "notin", op: "in", values: ["in"] }]],
    ["example.com/a_b-c.d=E", [{ key: "example.com/a_b-c.d", op: "in", values: ["E"] }]],
    [
      "a,!b , c in (x,y),d",
      [
        { key: "a", op: "present" },
        { key: "b", op: "absent" },
        { key: "c", op: "in", values: ["x", "y"] },
        { key: "d", op: "present" },
      ],
    ],
  ];
  for (const [text, requirements] of rows) assert.deepEqual(parseSelector(text), requirements, text);
});

test("invalid selectors, with the position of the error", () => {
  const rows: [string, number][] = [
    ["", 1],
    [",", 1],
    ["a,", 3],
    ["a b", 3],
    ["a=b=c", 4],
    ["!a=b", 3],
    ["a in b", 6],
    ["a in (b", 8],
    ["a in (b c)", 9],
    ["a in", 5],
    ["a = = b", 5],
    ["a=b/c", 3],
    ["-a", 1],
    ["a/b/c", 1],
    ["(a)", 1],
    ["a>b", 2],
    ["a IN (b)", 3],
    [`a=${"x".repeat(64)}`, 3],
    ["ключ", 1],
    ["a\u0000", 2],
  ];
  for (const [text, place] of rows)
    assert.throws(
      () => parseSelector(text),
      (error) => {
        assert.ok(error instanceof ApiError);
        assert.equal(error.code, "query_invalid", text);
        assert.equal(error.errors[0]?.pointer, "?label");
        assert.match(error.message, new RegExp(` at character ${place}, not `), `${text}: ${error.message}`);
        return true;
      },
    );
});

test("labels that match", () => {
  const labels = { env: "prod", empty: "" };
  const rows: [string, boolean][] = [
    ["env", true],
    ["other", false],
    ["!env", false],
    ["!other", true],
    ["env=prod", true],
    ["env=Prod", false],
    ["ENV", false],
    ["env!=prod", false],
    ["env!=test", true],
    ["other!=x", true],
    ["env in (a,prod)", true],
    ["other in (a)", false],
    ["other in ()", false],
    ["empty in ()", true],
    ["empty=", true],
    ["env notin (a)", true],
    ["other notin (a)", true],
    ["env,empty", true],
    ["env,other", false],
    ["constructor", false],
    ["!toString", true],
  ];
  for (const [text, expected] of rows) assert.equal(matches(parseSelector(text), labels), expected, text);
});

const key = fc.stringMatching(/^(?:[a-z.]{1,9}\/)?[A-Za-z0-9](?:[A-Za-z0-9._-]{0,9}[A-Za-z0-9])?$/);
const value = fc.stringMatching(/^(?:[A-Za-z0-9](?:[A-Za-z0-9._-]{0,9}[A-Za-z0-9])?)?$/);
const plain = { noNullPrototype: true };
const bare = fc.constantFrom("present" as const, "absent" as const);
const among = fc.constantFrom("in" as const, "notin" as const);
const requirement: fc.Arbitrary<Requirement> = fc.oneof(
  fc.record({ key, op: bare }, plain),
  fc.record({ key, op: among, values: fc.array(value, { minLength: 1, maxLength: 4 }) }, plain),
);

function print(requirement: Requirement): string {
  if ("values" in requirement) return `${requirement.key} ${requirement.op} (${requirement.values.join(", ")})`;
  return requirement.op === "present" ? requirement.key : `!${requirement.key}`;
}

test("a printed selector is parsed unchanged", () => {
  const requirements = fc.array(requirement, { minLength: 1, maxLength: 5 });
  fc.assert(fc.property(requirements, (all) => assert.deepEqual(parseSelector(all.map(print).join(",")), all)));
});

test("any text is a selector or throws query_invalid", () => {
  const text = fc.oneof(
    fc.string({ unit }),
    fc.array(fc.constantFrom("a", "!", "=", "in", "notin", "(", ")", ",", " ")).map((parts) => parts.join("")),
  );
  fc.assert(
    fc.property(text, (text) => {
      try {
        assert.ok(parseSelector(text).length > 0);
      } catch (error) {
        assert.ok(error instanceof ApiError && error.code === "query_invalid");
      }
    }),
  );
});

test("names with a run of characters", () => {
  const rows: [string, string, boolean][] = [
    ["web", "WEB", true],
    ["web", "web1", false],
    ["*", "", true],
    ["", "", true],
    ["", "a", false],
    ["*.com", "example.COM", true],
    ["*.com", ".com", true],
    ["*.com", "com", false],
    ["a*a", "a", false],
    ["a*a", "aa", true],
    ["a*b*c", "a-b-b-c", true],
    ["a*b*c", "acb", false],
    ["a**c", "abc", true],
    ["*b*", "abc", true],
    ["a.c", "abc", false],
    ["(+", "(+", true],
    ["ПОЧТА*", "почта.рф", true],
    ["ΣΑ*", "σας", true],
    ["*σ", "ΣΑΣ", true],
    ["e\u0301*", "École", true],
  ];
  for (const [pattern, name, expected] of rows)
    assert.equal(nameMatcher(pattern)(name), expected, `${pattern} ${name}`);
});

test("names match as a regular expression would", () => {
  const text = fc.array(fc.constantFrom("a", "b", "."), { maxLength: 8 }).map((parts) => parts.join(""));
  const pattern = fc.array(fc.constantFrom("a", "b", ".", "*"), { maxLength: 6 }).map((parts) => parts.join(""));
  fc.assert(
    fc.property(pattern, text, (pattern, text) => {
      const regex = new RegExp(`^${pattern.replaceAll(".", "\\.").replaceAll("*", ".*")}$`);
      assert.equal(nameMatcher(pattern)(text), regex.test(text));
    }),
    { numRuns: 1000 },
  );
});

test("states: one word or several, in any letter case", () => {
  const wanted = stateMatcher("active, New");
  assert.deepEqual(["Active", "New", "Failed", ""].map(wanted), [true, true, false, false]);
});

test("filters that an index can use", () => {
  const rows: [Parameters<typeof conditionsOf>[0], ReturnType<typeof conditionsOf>][] = [
    [{}, null],
    [{ name: "Web" }, [{ term: "nWEB" }]],
    [{ name: "web*1*" }, [{ prefix: "nWEB" }]],
    [{ name: "*web" }, null],
    [{ label: "!a,b!=c,d notin (e)" }, null],
    [{ label: "a,b=c" }, [{ term: "lb=c" }]],
    [{ label: "a,b in (c,)" }, [{ term: "lb=c" }, { term: "lb=" }]],
    [{ label: "a", name: "*" }, [{ prefix: "la=" }]],
    [{ label: "a", name: "web*" }, [{ prefix: "nWEB" }]],
    [{ label: "a=b", name: "web" }, [{ term: "nWEB" }]],
  ];
  for (const [filters, expected] of rows) assert.deepEqual(conditionsOf(filters), expected, JSON.stringify(filters));
  assert.throws(() => conditionsOf({ name: "web", label: "(" }), ApiError);
});

test("every object that the filters select meets one of the conditions of the index", () => {
  const letter = fc.constantFrom("a", "A", "ß", "s", "é", "e\u0301", "\u0301", "ς", "σ", "İ", "i", "ŉ", "-");
  const name = fc.string({ unit: letter, minLength: 1, maxLength: 4 });
  const pattern = fc.string({ unit: fc.oneof(letter, fc.constant("*")), minLength: 1, maxLength: 4 });
  const labels = fc.dictionary(fc.constantFrom("a", "b"), fc.constantFrom("", "x"), { noNullPrototype: true });
  const some = fc.constantFrom(undefined, "a", "a=x", "a in (,x)", "a,b=x", "!a", "b!=x,a");
  const filters = fc.record({ name: fc.option(pattern, { nil: undefined }), label: some });
  fc.assert(
    fc.property(name, labels, filters, (name, labels, filters) => {
      const isSelected =
        (filters.name === undefined || nameMatcher(filters.name)(name)) &&
        (filters.label === undefined || matches(parseSelector(filters.label), labels));
      const conditions = conditionsOf(filters);
      const terms = termsOf({ name, labels: JSON.stringify(labels) });
      const isFound = conditions?.some((each) =>
        terms.some((term) => ("term" in each ? term === each.term : term.startsWith(each.prefix))),
      );
      assert.ok(!isSelected || conditions === null || isFound);
    }),
    { numRuns: 1000 },
  );
});
