/** Forms: docs/spec.md#reading-the-request-body, rule 6. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { ApiError } from "../../base/error.ts";
import { type FormNode, parseForm, partsOf, splitName } from "./form.ts";

/** Anything that a string can hold, halves of surrogate pairs too. */
const unit = fc.oneof(fc.nat(0x7f), fc.nat(0xffff)).map((code) => String.fromCharCode(code));

/** Values and parts as one plain value. */
function show(node: FormNode): unknown {
  const parts = [...partsOf(node)].map(([name, part]) => [name, show(part)] as const);
  return parts.length === 0 ? node.values : { values: node.values, parts };
}

function isRefused(error: unknown): boolean {
  assert.ok(error instanceof ApiError, String(error));
  assert.equal(error.code, "body_not_readable");
  return true;
}

test("names and their steps", () => {
  const rows: [string, string[]][] = [
    ["Name", ["Name"]],
    ["SshKeys[]", ["SshKeys"]],
    ["SshKeys[0]", ["SshKeys", "0"]],
    ["Labels[env]", ["Labels", "env"]],
    ["Labels[example.com/a.b]", ["Labels", "example.com/a.b"]],
    ["Rules[0].Name", ["Rules", "0", "Name"]],
    ["Rules[0][Name]", ["Rules", "0", "Name"]],
    ["Quotas.Servers", ["Quotas", "Servers"]],
    ["Rules[].Name", ["Rules", "", "Name"]],
    ["", [""]],
    ["[0]", ["[0]"]],
    [".a", [".a"]],
    ["a[", ["a["]],
    ["a]", ["a]"]],
    ["a[b", ["a[b"]],
    ["a[b]c", ["a[b]c"]],
    ["a..b", ["a..b"]],
    ["a[[b]]", ["a[[b]]"]],
    ["a.", ["a."]],
  ];
  for (const [name, steps] of rows) assert.deepEqual(splitName(name), steps, name);
});

test("pairs, spaces and percent-encoding", () => {
  const rows: [string, unknown][] = [
    [
      "a=1&b=2",
      [
        ["a", ["1"]],
        ["b", ["2"]],
      ],
    ],
    ["a=", [["a", [""]]]],
    ["&a=1&&", [["a", ["1"]]]],
    ["a=b=c", [["a", ["b=c"]]]],
    ["a+b=c+d%2B%20", [["a b", ["c d+ "]]]],
    ["%41=%C3%A9é", [["a", ["éé"]]]],
    [
      "a&b=1",
      [
        ["a", [""]],
        ["b", ["1"]],
      ],
    ],
    [
      "a=1&b=2&a=3",
      [
        ["b", ["2"]],
        ["a", ["1", "3"]],
      ],
    ],
    ["a%5B0%5D=x", [["a", { values: [], parts: [["0", ["x"]]] }]]],
    [
      "__proto__[x]=1&constructor=2",
      [
        ["__proto__", { values: [], parts: [["x", ["1"]]] }],
        ["constructor", ["2"]],
      ],
    ],
  ];
  for (const [text, parts] of rows) {
    const shown = show(parseForm(text, false)) as { parts: unknown };
    assert.deepEqual(shown.parts, parts, text);
  }
});

test("invalid forms", () => {
  for (const text of ["hello", "a&b", "a=%zz", "a=%", "%ff=1", "a=%C3", `a${"[b]".repeat(40)}=1`])
    assert.throws(() => parseForm(text, false), isRefused, text);
});

test("any text is parsed or throws body_not_readable", () => {
  const token = fc.constantFrom("a", "b", "=", "&", "+", "%", "%41", "[", "]", ".", "0", "__proto__");
  const text = fc.oneof(
    fc.string({ unit }),
    fc.array(token).map((parts) => parts.join("")),
  );
  fc.assert(
    fc.property(text, (text) => {
      try {
        show(parseForm(text, false));
      } catch (error) {
        isRefused(error);
      }
    }),
    { numRuns: 1000 },
  );
});
