/** Parsers of blocks, endpoints, identities and keys: what they accept, in which canonical text, and what they reject. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import fc from "fast-check";
import { anyText } from "../../../../../test/support/texts.ts";
import {
  createSharedKey,
  type FieldValue,
  quote,
  readBlocks,
  readHostPort,
  readIdentity,
  readKey,
  readPeer,
} from "./fields.ts";

/** The canonical text, or the code of the problem. */
const resultOf = (value: FieldValue): string => (typeof value === "string" ? value : value.code);
const all = (read: (text: string) => FieldValue, rows: readonly (readonly [string, string])[]) => {
  for (const [text, wanted] of rows) assert.equal(resultOf(read(text)), wanted, text);
};

test("blocks lose host bits and duplicates, and keep their order", () => {
  all(readBlocks, [
    ["10.0.0.0/24", "10.0.0.0/24"],
    ["10.0.0.7/24", "10.0.0.0/24"],
    [" 10.2.0.0/16 , 10.1.0.0/16 ", "10.2.0.0/16,10.1.0.0/16"],
    ["10.0.0.1,10.0.0.1/32", "10.0.0.1/32"],
    ["10.0.0.0/08", "10.0.0.0/8"],
    ["0.0.0.0/0", "0.0.0.0/0"],
    ["128.0.0.0/1", "128.0.0.0/1"],
    ["0.0.0.0/8", "out_of_range"],
    ["127.0.0.0/8", "out_of_range"],
    ["10.0.0.0/24,127.0.0.1", "out_of_range"],
    ["169.254.0.0/16", "out_of_range"],
    ["169.254.1.1/32", "out_of_range"],
    ["224.0.0.0/4", "out_of_range"],
    ["240.0.0.0/4", "out_of_range"],
    ["255.255.255.255", "out_of_range"],
    ["169.255.0.0/16", "169.255.0.0/16"],
    ["223.255.255.0/24", "223.255.255.0/24"],
    ["10.0.0.0/24,", "10.0.0.0/24"],
    [",", "format_invalid"],
    ["10.0.0.0/33", "format_invalid"],
    ["10.0.0.0-10.0.0.9", "format_invalid"],
    ["010.0.0.0/8", "format_invalid"],
    ["10.0.0/24", "format_invalid"],
    ["fd00::/8", "format_invalid"],
    ["any", "format_invalid"],
    ["10.0.0.0/24;10.0.1.0/24", "format_invalid"],
    [
      Array.from({ length: 16 }, (_, i) => `10.0.${i}.0/24`).join(),
      Array.from({ length: 16 }, (_, i) => `10.0.${i}.0/24`).join(),
    ],
    [Array.from({ length: 17 }, (_, i) => `10.0.${i}.0/24`).join(), "too_long"],
  ]);
});

test("blocks can be restricted to a surrounding block", () => {
  all(
    (text) => readBlocks(text, "10.64.0.8/29"),
    [
      ["10.64.0.8/29", "10.64.0.8/29"],
      ["10.64.0.15,10.64.0.8/30", "10.64.0.15/32,10.64.0.8/30"],
      ["10.64.0.16/32", "out_of_range"],
      ["10.64.0.7", "out_of_range"],
      ["10.64.0.0/28", "out_of_range"],
    ],
  );
});

test("the peer of IPsec is an address, a host name or any", () => {
  all(readPeer, [
    ["203.0.113.50", "203.0.113.50"],
    ["VPN.example.com", "VPN.example.com"],
    ["office", "office"],
    ["xn--bcher-kva.example", "xn--bcher-kva.example"],
    ["my_box.dyn.example", "my_box.dyn.example"],
    ["ANY", "any"],
    ["0.0.0.0", "format_invalid"],
    ["127.0.0.1", "format_invalid"],
    ["169.254.1.1", "format_invalid"],
    ["224.0.0.1", "format_invalid"],
    ["255.255.255.255", "format_invalid"],
    ["256.1.1.1", "format_invalid"],
    ["1.2.3", "format_invalid"],
    ["%any", "format_invalid"],
    ["any,203.0.113.50", "format_invalid"],
    ["bücher.example", "format_invalid"],
    ["-a.example", "format_invalid"],
    ["a..example", "format_invalid"],
    ["a.example.", "format_invalid"],
    ["fd00::1", "format_invalid"],
    ["a b", "format_invalid"],
    ["a}\nsecrets {", "format_invalid"],
    [`${"a".repeat(63)}.example`, `${"a".repeat(63)}.example`],
    [`${"a".repeat(64)}.example`, "format_invalid"],
    [`${"a.".repeat(127)}a`, "format_invalid"],
  ]);
});

test("the peer of WireGuard has a port", () => {
  all(readHostPort, [
    ["vpn.example.com:51820", "vpn.example.com:51820"],
    ["203.0.113.50:00080", "203.0.113.50:80"],
    ["203.0.113.50:0", "format_invalid"],
    ["203.0.113.50:65536", "format_invalid"],
    ["203.0.113.50", "format_invalid"],
    [":51820", "format_invalid"],
    ["[fd00::1]:51820", "format_invalid"],
    ["127.0.0.1:51820", "format_invalid"],
    ["a:1:2", "format_invalid"],
  ]);
});

test("identities are addresses, host names and user@host, and never patterns", () => {
  all(readIdentity, [
    ["192.168.1.7", "192.168.1.7"],
    ["office.example", "office.example"],
    ["Admin.x+1@office.example", "Admin.x+1@office.example"],
    ["0.0.0.0", "format_invalid"],
    ["any", "format_invalid"],
    ["%any", "format_invalid"],
    ["*", "format_invalid"],
    ["*@office.example", "format_invalid"],
    ["*.example", "format_invalid"],
    ["@office.example", "format_invalid"],
    ["a@b@c", "format_invalid"],
    ["a@192.0.2.1", "format_invalid"],
    ["C=CH, CN=x", "format_invalid"],
    ["#6f6666696365", "format_invalid"],
    ["fd00::1", "format_invalid"],
    ['a" psk "b', "format_invalid"],
  ]);
});

test("a key is the canonical base64 of 32 bytes", () => {
  const key = Buffer.alloc(32, 255).toString("base64");
  all(readKey, [
    [key, key],
    [key.slice(0, -1), "format_invalid"],
    [key.replace("8=", "9="), "format_invalid"],
    [Buffer.alloc(31, 255).toString("base64"), "format_invalid"],
    [Buffer.alloc(33, 255).toString("base64"), "format_invalid"],
    [` ${key}`, "format_invalid"],
    [key.replaceAll("/", "_"), "format_invalid"],
  ]);
});

test("an accepted value is canonical, and nothing throws", () => {
  const piece = fc.constantFrom(
    "10.0.0.0",
    "/24",
    "/",
    ",",
    "a",
    ".",
    "@",
    ":",
    "51820",
    "any",
    "-",
    "1",
    " ",
    "\n",
    '"',
  );
  const text = fc.oneof(
    anyText(60),
    fc.array(piece).map((parts) => parts.join("")),
  );
  for (const read of [readBlocks, readPeer, readHostPort, readIdentity, readKey])
    fc.assert(
      fc.property(text, (text) => {
        const taken = read(text);
        if (typeof taken === "string") {
          assert.equal(read(taken), taken);
          assert.match(taken, /^[A-Za-z0-9@.,:/+_=-]+$/);
        } else assert.match(taken.must, /^must [ -~…]{1,200}$/);
      }),
    );
});

test("a quoted value is short and visible", () => {
  assert.equal(quote("a\u0007b\u202e"), '"a\\u0007b\\u{202e}"');
  assert.equal(quote("x".repeat(100)), `"${"x".repeat(40)}…"`);
});

test("a created key is 32 letters and digits", () => {
  for (let i = 0; i < 100; i++) assert.match(createSharedKey(randomBytes), /^[A-Za-z0-9]{32}$/);
});

test("a created key skips bytes that would make some letters more probable", () => {
  let next = 247;
  const key = createSharedKey((bytes) => Uint8Array.from({ length: bytes }, () => next++ % 256));
  assert.equal(key, "9ABCDEFGHIJKLMNOPQRSTUVWXYZabcde");
});
