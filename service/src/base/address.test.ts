import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import {
  complement,
  contains,
  everything,
  formatAddresses,
  join,
  parseAddress,
  parseAddresses,
  prefixLength,
  readIPv4,
} from "./address.ts";

test("the canonical text of an address is parsed to the same address", () => {
  for (const text of [
    "0.0.0.0",
    "10.64.0.9",
    "255.255.255.255",
    "10.64.0.8/29",
    "0.0.0.0/0",
    "10.0.0.5-10.0.0.9",
    "::",
    "::1",
    "fd24:1::",
    "fd24:1::a",
    "2001:db8:0:1:1:1:1:1",
    "2001:db8::1:0:0:1",
    "fd24:1::/64",
    "::/0",
    "fd24::5-fd24::9",
  ]) {
    const { family, ...range } = parseAddresses(text);
    assert.equal(formatAddresses(family, range), text);
  }
});

test("other spellings of an address are parsed to the same address", () => {
  const same = (text: string, canonical: string) => {
    const { family, ...range } = parseAddresses(text);
    assert.equal(formatAddresses(family, range), canonical);
  };
  same("FD24:0001:0:0:0:0:0:000A", "fd24:1::a");
  same("::ffff:10.0.0.1", "::ffff:a00:1");
  same("10.0.0.1/32", "10.0.0.1");
  same("10.0.0.8-10.0.0.15", "10.0.0.8/29");
  same("10.0.0.0-10.0.0.0", "10.0.0.0");
});

test("other texts are rejected", () => {
  for (const text of [
    "",
    "any",
    "10.0.0",
    "10.0.0.256",
    "010.0.0.1",
    "10.0.0.1/33",
    "10.0.0.0/024",
    "10.0.0.1/24",
    "10.0.0.0/",
    "10.0.0.0/8/8",
    "10.0.0.0/+8",
    "10.0.0.9-10.0.0.5",
    "10.0.0.1-",
    "10.0.0.1-::1",
    "10.0.0.1-10.0.0.2-10.0.0.3",
    "fe80::1%eth0",
    "::/129",
    ":::",
    "10.0.0.1; drop",
    "10.0.0.1\n",
  ])
    assert.throws(() => parseAddresses(text), Error, JSON.stringify(text));
  assert.throws(() => parseAddress("10.0.0.0/8"));
  assert.equal(prefixLength("10.64.0.8/29"), 29);
});

const range = fc
  .tuple(fc.bigInt({ min: 0n, max: 300n }), fc.bigInt({ min: 0n, max: 40n }))
  .map(([first, more]) => ({ first, last: first + more }));

test("joined ranges and their complement contain each value exactly once", () => {
  const all = { first: 0n, last: 400n };
  fc.assert(
    fc.property(fc.array(range, { maxLength: 20 }), (ranges) => {
      const joined = join(ranges);
      const others = complement(ranges, all);
      for (let value = 0n; value <= 400n; value++) {
        assert.equal(contains(joined, value), contains(ranges, value));
        assert.equal(contains(others, value), !contains(ranges, value));
      }
      for (const [index, { first }] of joined.entries())
        assert.ok(index === 0 || first > (joined[index - 1]?.last ?? 0n) + 1n);
    }),
  );
  assert.deepEqual(complement([], everything(4)), [everything(4)]);
});

test("addresses of IPv4 are the same as numbers", () => {
  assert.equal(readIPv4("fd24::1"), null);
  assert.equal(readIPv4("10.0.0.0/8"), null);
  fc.assert(
    fc.property(fc.ipV4(), fc.integer({ min: 0, max: 2 ** 31 }), (text, more) => {
      const first = readIPv4(text) ?? Number.NaN;
      const last = Math.min(first + more, 2 ** 32 - 1);
      assert.equal(BigInt(first), parseAddress(text).value);
      const same = { first: BigInt(first), last: BigInt(last) };
      assert.equal(formatAddresses(4, { first, last }), formatAddresses(4, same));
      const [whole, all] = [{ first: 0, last: 2 ** 32 - 1 }, everything(4)];
      const others = complement([{ first, last }], whole);
      assert.deepEqual(
        others.map((each) => formatAddresses(4, each)),
        complement([same], all).map((each) => formatAddresses(4, each)),
      );
      assert.equal(contains([{ first, last }], same.last), true);
    }),
  );
});
