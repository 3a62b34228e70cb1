import assert from "node:assert/strict";
import { isIPv6 } from "node:net";
import { test } from "node:test";
import { type RecordType, recordSpecs } from "@brume/api/record/types.ts";
import fc from "fast-check";
import type { FieldKind, RecordData } from "../interface.ts";
import { maxRdataSize, writeRdata } from "./rdata.ts";

function rdata(type: RecordType, data: RecordData): string {
  const bytes = Buffer.alloc(maxRdataSize(data));
  return bytes.toString("hex", 0, writeRdata(bytes, 0, recordSpecs[type], data));
}

test("addresses in every spelling", () => {
  assert.equal(rdata("A", ["192.0.2.255"]), "c00002ff");
  for (const [text, hex] of [
    ["::", "0".repeat(32)],
    ["::1", `${"0".repeat(31)}1`],
    ["2001:db8::", `20010db8${"0".repeat(24)}`],
    ["2001:DB8::a:0", `20010db8${"0".repeat(16)}000a0000`],
    ["1:2:3:4:5:6:7:8", "00010002000300040005000600070008"],
    ["1:2:3:4:5:6:7::", "00010002000300040005000600070000"],
    ["::ffff:192.0.2.1", "00000000000000000000ffffc0000201"],
  ] as const) {
    assert.equal(rdata("AAAA", [text]), hex, text);
  }
});

test("any IPv6 address is encoded as its bytes", () => {
  fc.assert(
    fc.property(fc.ipV6(), (address) => {
      fc.pre(isIPv6(address));
      const url = new URL(`http://[${rdata("AAAA", [address]).replace(/(.{4})(?!$)/g, "$1:")}]`);
      assert.equal(url.hostname, new URL(`http://[${address}]`).hostname);
    }),
  );
});

test("names, numbers and strings", () => {
  assert.equal(rdata("MX", [258, ""]), "010200");
  assert.equal(rdata("SRV", [1, 2, 65535, "a.b"]), "00010002ffff0161016200");
  assert.equal(rdata("TXT", [["", "ab"]]), "00026162");
  assert.equal(rdata("TXT", [["ü".repeat(127)]]).length, 2 * 255);
});

test("data of another type or out of range is rejected", () => {
  assert.throws(() => rdata("A", ["1.2.3"]), /IPv4/);
  assert.throws(() => rdata("A", ["01.2.3.4"]), /IPv4/);
  assert.throws(() => rdata("AAAA", ["fe80::1%lo"]), /IPv6/);
  assert.throws(() => rdata("MX", [0.5, "a"]), /preference/);
  assert.throws(() => rdata("CNAME", [0, 0, 1, "a"]), /does not fit/);
  assert.throws(() => rdata("A", [1]), /does not fit type A/);
  assert.throws(() => rdata("A", []), /does not fit type A/);
  assert.throws(() => rdata("TXT", ["a"]), /does not fit type TXT/);
  assert.throws(() => rdata("TXT", [[]]), /needs a string/);
  assert.throws(() => rdata("TXT", [["ü".repeat(128)]]), /256 bytes/);
});

/** Fields as no type of today has them. */
function fields(...given: [FieldKind, number | string | readonly string[]][]): string {
  const data = given.map(([, value]) => value);
  const bytes = Buffer.alloc(maxRdataSize(data));
  const format = { name: "X", code: 65_280, data: given.map(([kind]) => ({ kind, name: kind })) };
  return bytes.toString("hex", 0, writeRdata(bytes, 0, format, data));
}

test("every kind of field has its wire form", () => {
  assert.equal(fields(["u8", 255], ["u16", 1], ["u32", 4_294_967_295]), "ff0001ffffffff");
  assert.equal(fields(["string", "issue"], ["text", "ü; x"]), "056973737565c3bc3b2078");
  assert.equal(fields(["name", "a.b"], ["string", ""]), "016101620000");
  assert.equal(fields(["u8", 3], ["hex", "00FFa1"]), "0300ffa1");
  assert.equal(fields(["base64", "AP+h"]), "00ffa1");
  const long = "x".repeat(4000);
  assert.equal(fields(["text", long]), Buffer.from(long).toString("hex"));
});

test("a field out of its range is rejected", () => {
  assert.throws(() => fields(["u8", 256]), /u8 256 is not in 0-255/);
  assert.throws(() => fields(["u32", 2 ** 32]), /is not in 0-4294967295/);
  assert.throws(() => fields(["string", "x".repeat(256)]), /256 bytes/);
  assert.throws(() => fields(["hex", "abc"]), /hexadecimal/);
  assert.throws(() => fields(["base64", "AP-h"]), /base64/);
});
