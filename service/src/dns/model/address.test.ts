/** Addresses: what is read, what is refused, and that two texts of one address become one. `node:net` is the witness. */
import assert from "node:assert/strict";
import { isIPv4, isIPv6 } from "node:net";
import { test } from "node:test";
import fc from "fast-check";
import { readAddress, readIPv4, readIPv6 } from "./address.ts";

test("IPv4 is four decimal numbers and nothing else", () => {
  for (const good of ["0.0.0.0", "255.255.255.255", "10.63.0.2", "1.2.3.4"]) assert.equal(readIPv4(good), good);
  for (const bad of [
    "",
    "1.2.3",
    "1.2.3.4.5",
    "256.1.1.1",
    "01.2.3.4",
    "1.2.3.04",
    "1.2.3.4 ",
    "0x1.2.3.4",
    "1..2.3",
    ".1.2.3.4",
    "1.2.3.4.",
    "1.2.3.1e1",
    "١.2.3.4",
    "16909060",
  ])
    assert.equal(readIPv4(bad), null, bad);
});

test("IPv6 is shown by RFC 5952", () => {
  const forms = {
    "2001:0DB8::17": "2001:db8::17",
    "2001:db8:0:0:1:0:0:1": "2001:db8::1:0:0:1",
    "2001:db8:0:1:1:1:1:1": "2001:db8:0:1:1:1:1:1",
    "2001:0:0:1:0:0:0:1": "2001:0:0:1::1",
    "0:0:0:0:0:0:0:0": "::",
    "0:0:0:0:0:0:0:1": "::1",
    "1:0:0:0:0:0:0:0": "1::",
    "::1:2": "::1:2",
    "::ffff:192.0.2.1": "::ffff:192.0.2.1",
    "::FFFF:C000:0201": "::ffff:192.0.2.1",
    "64:ff9b::192.0.2.33": "64:ff9b::c000:221",
    "1:2:3:4:5:6:7::": "1:2:3:4:5:6:7:0",
  };
  for (const [given, shown] of Object.entries(forms)) assert.equal(readIPv6(given), shown, given);
});

test("IPv6 with a zone, two gaps or an ambiguous IPv4 part is rejected", () => {
  for (const bad of [
    "",
    ":",
    ":::",
    "1::2::3",
    "fe80::1%eth0",
    "1:2:3:4:5:6:7",
    "1:2:3:4:5:6:7:8:9",
    "1:2:3:4:5:6:7:8::",
    "::ffff:010.0.0.1",
    "::ffff:1.2.3",
    "12345::",
    "g::",
    "1.2.3.4::",
    "[::1]",
    "::1 ",
    "::\u0001",
  ])
    assert.equal(readIPv6(bad), null, bad);
});

test("the parser accepts the same addresses as Node, except zones", () => {
  const text = fc.oneof(
    fc.ipV4(),
    fc.ipV6(),
    fc.string({ unit: fc.constantFrom(...Array.from("0123456789abcdefF:.%x ")), maxLength: 40 }),
    fc
      .array(fc.constantFrom("0", "00", "ffff", "1", "", ":", "1.2.3.4"), { maxLength: 9 })
      .map((parts) => parts.join(":")),
  );
  fc.assert(
    fc.property(text, (one) => {
      assert.equal(readIPv4(one) !== null, isIPv4(one));
      assert.equal(readIPv6(one) !== null, isIPv6(one) && !one.includes("%"));
      const shown = readIPv6(one);
      if (shown === null) return;
      assert.equal(readIPv6(shown), shown);
      const hosts = [one, shown].map((address) => new URL(`http://[${address}]/`).hostname);
      assert.equal(hosts[0], hosts[1]);
    }),
    { numRuns: 2000 },
  );
});

test("the kind of an address is known", () => {
  assert.deepEqual(readAddress("10.0.0.1"), { type: "A", value: "10.0.0.1" });
  assert.deepEqual(readAddress("2001:DB8::1"), { type: "AAAA", value: "2001:db8::1" });
  assert.equal(readAddress("example.com"), null);
});
