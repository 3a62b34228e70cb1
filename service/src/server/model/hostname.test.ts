import assert from "node:assert/strict";
import { test } from "node:test";
import { hostNamePattern } from "@brume/api/serverinput.ts";
import fc from "fast-check";
import { anyText } from "../../../../test/support/texts.ts";
import { hostNameOf, numberedHostName } from "./hostname.ts";

test("other characters become one hyphen, none at the ends", () => {
  const names: readonly (readonly [string, string | null])[] = [
    ["web-1", "web-1"],
    ["Web Server_1", "web-server-1"],
    ["--a..b--", "a-b"],
    ["node (old)", "node-old"],
    ["café", "caf"],
    ["база", null],
    ["-", null],
    ["a".repeat(64), "a".repeat(63)],
    [`${"a".repeat(62)} b`, "a".repeat(62)],
  ];
  for (const [name, label] of names) assert.equal(hostNameOf(name), label, name);
});

test("every name gives a valid host name or none", () => {
  const pattern = new RegExp(hostNamePattern, "u");
  fc.assert(
    fc.property(anyText(80), fc.integer({ min: 1 }), (name, id) => {
      assert.match(hostNameOf(name) ?? numberedHostName(id), pattern);
    }),
  );
});
