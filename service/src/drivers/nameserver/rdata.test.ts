import assert from "node:assert/strict";
import { isIPv6 } from "node:net";
import { test } from "node:test";
import fc from "fast-check";
import type { RecordData, RecordType } from "./port.ts";
import { roomFor, writeRdata } from "./rdata.ts";

function rdata(type: RecordType, data: RecordData): string {
  const bytes = Buffer.alloc(roomFor(data));
  return bytes.toString("hex", 0, writeRdata(bytes, 0, type, data));
}

test("addresses in every spelling", () => {
  assert.equal(rdata("A", { address: "192.0.2.255" }), "c00002ff");
  for (const [text, hex] of [
    ["::", "0".repeat(32)],
    ["::1", `${"0".repeat(31)}1`],
    ["2001:db8::", `20010db8${"0".repeat(24)}`],
    ["2001:DB8::a:0", `20010db8${"0".repeat(16)}000a0000`],
    ["1:2:3:4:5:6:7:8", "00010002000300040005000600070008"],
    ["1:2:3:4:5:6:7::", "00010002000300040005000600070000"],
    ["::ffff:192.0.2.1", "00000000000000000000ffffc0000201"],
  ] as const) {
    assert.equal(rdata("AAAA", { address: text }), hex, text);
  }
});

test("any IPv6 address comes out as the bytes it went in", () => {
  fc.assert(
    fc.property(fc.ipV6(), (address) => {
      fc.pre(isIPv6(address));
      const url = new URL(`http://[${rdata("AAAA", { address }).replace(/(.{4})(?!$)/g, "$1:")}]`);
      assert.equal(url.hostname, new URL(`http://[${address}]`).hostname);
    }),
  );
});

test("names, numbers and strings", () => {
  assert.equal(rdata("MX", { preference: 258, exchange: "" }), "010200");
  assert.equal(rdata("SRV", { priority: 1, weight: 2, port: 65535, target: "a.b" }), "00010002ffff0161016200");
  assert.equal(rdata("TXT", { strings: ["", "ab"] }), "00026162");
  assert.equal(rdata("TXT", { strings: ["ü".repeat(127)] }).length, 2 * 255);
});

test("what does not fit its type or its range is refused", () => {
  assert.throws(() => rdata("A", { address: "1.2.3" }), /IPv4/);
  assert.throws(() => rdata("A", { address: "01.2.3.4" }), /IPv4/);
  assert.throws(() => rdata("AAAA", { address: "fe80::1%lo" }), /IPv6/);
  assert.throws(() => rdata("MX", { preference: 0.5, exchange: "a" }), /preference/);
  assert.throws(() => rdata("CNAME", { priority: 0, weight: 0, port: 1, target: "a" }), /does not fit/);
  assert.throws(() => rdata("TXT", { strings: ["ü".repeat(128)] }), /256 bytes/);
});
