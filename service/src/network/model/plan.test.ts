import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { parseAddresses, type Range } from "../../base/address.ts";
import * as plan from "./plan.ts";

const pool = parseAddresses("10.64.0.0/16");
const text = (range: Range | null): string | null => (range === null ? null : plan.cidrOf(plan.storedBlock(4, range)));
const block = (cidr: string) => plan.storedBlock(4, parseAddresses(cidr));

test("a block is the lowest that is free and aligned", () => {
  const taken: Range[] = [];
  const take = (size: bigint) => {
    const found = plan.findBlock([pool], size, taken);
    if (found !== null) taken.push(found);
    return text(found);
  };
  assert.equal(take(8n), "10.64.0.0/29");
  assert.equal(take(256n), "10.64.1.0/24");
  assert.equal(take(8n), "10.64.0.8/29");
  assert.equal(take(64n), "10.64.0.64/26");
  assert.equal(take(8n), "10.64.0.16/29");
});

test("blocks reserved in any order never overlap, and are in the pools outside of the edge zone", () => {
  const sizes = fc.array(fc.constantFrom(4n, 8n, 16n, 32n, 64n, 128n, 256n), { maxLength: 60 });
  fc.assert(
    fc.property(sizes, fc.integer({ min: 20, max: 26 }), (wanted, prefix) => {
      const pools = plan.blockPools([parseAddresses(`10.0.0.0/${prefix}`), parseAddresses("10.9.0.0/24")]);
      const taken: Range[] = [];
      for (const size of wanted) {
        const found = plan.findBlock(pools, size, taken);
        if (found === null) continue;
        assert.equal(found.last - found.first + 1n, size);
        assert.equal(found.first % size, 0n);
        assert.ok(pools.some(({ first, last }) => found.first >= first && found.last <= last));
        assert.ok(!taken.some(({ first, last }) => found.first <= last && first <= found.last));
        taken.push(found);
      }
    }),
  );
});

test("a free block is found whenever there is one", () => {
  const small = parseAddresses("10.0.0.0/28");
  fc.assert(
    fc.property(fc.uniqueArray(fc.integer({ min: 0, max: 15 })), (used) => {
      const taken = used.map((offset) => ({ first: small.first + BigInt(offset), last: small.first + BigInt(offset) }));
      const free = [0, 4, 8, 12].find((start) => !used.some((offset) => offset >= start && offset < start + 4));
      assert.equal(
        plan.findBlock([small], 4n, taken)?.first,
        free === undefined ? undefined : small.first + BigInt(free),
      );
    }),
  );
});

const countIn = (taken: readonly string[]) => async (first: string, last: string) =>
  taken.filter((ip) => ip >= first && ip <= last).length;

test("servers get the lowest free address, except the gateway", async () => {
  const one = block("10.64.0.8/29");
  const gateway = plan.pack(4, parseAddresses("10.64.0.9").first);
  const taken: string[] = [];
  const take = () => plan.findFreeAddress(one, gateway, countIn(taken));
  for (let next = await take(); next !== null; next = await take()) taken.push(next);
  assert.deepEqual(taken.map(plan.showAddress), ["10.64.0.10", "10.64.0.11", "10.64.0.12", "10.64.0.13", "10.64.0.14"]);
  assert.equal(plan.countServerAddresses(one, gateway), 5);
  assert.equal(plan.countServerAddresses(one, null), 6);
});

test("the lowest free address is found by counting, for any taken ones", async () => {
  const one = block("10.0.0.0/27");
  const at = (offset: number) => plan.pack(4, plan.rangeOf(one).first + BigInt(offset));
  const offsets = fc.uniqueArray(fc.integer({ min: 1, max: 30 }), { maxLength: 30 });
  const gateways = fc.option(fc.integer({ min: 0, max: 40 }));
  await fc.assert(
    fc.asyncProperty(offsets, gateways, async (taken, gateway) => {
      const free = Array.from({ length: 30 }, (_, index) => index + 1).find(
        (offset) => offset !== gateway && !taken.includes(offset),
      );
      const held = taken.filter((offset) => offset !== gateway).map(at);
      let queries = 0;
      const count = (first: string, last: string) => countIn(held)(first, last).finally(() => (queries += 1));
      const found = await plan.findFreeAddress(one, gateway === null ? null : at(gateway), count);
      assert.equal(found, free === undefined ? null : at(free));
      const part = plan.serverRangeOf(one);
      assert.equal(plan.findFreeIn(part, gateway === null ? null : at(gateway), new Set(held)), found);
      assert.ok(queries <= 6, `${queries} questions`);
    }),
  );
});

test("the lowest block with a free address is found from the numbers of its addresses", async () => {
  const one = block("10.0.0.0/22");
  const gateway = plan.pack(4, parseAddresses("10.0.0.1").first);
  const find = (counts: Readonly<Record<string, number>>) => {
    const all = Object.entries(counts).map(([name, taken]) => ({ block: name, taken }));
    const found = plan.findFreeBlock(one, gateway, all);
    return found && [found.first, found.last].map((each) => plan.addressOf(4, each)).join("-");
  };
  assert.equal(find({}), "10.0.0.1-10.0.0.255");
  assert.equal(find({ "0a0000": 253 }), "10.0.0.1-10.0.0.255");
  // 255 addresses without the first of the network, and one of them is the gateway.
  assert.equal(find({ "0a0000": 254 }), "10.0.1.0-10.0.1.255");
  assert.equal(find({ "0a0000": 254, "0a0001": 256, "0a0003": 1 }), "10.0.2.0-10.0.2.255");
  assert.equal(find({ "0a0000": 254, "0a0001": 256, "0a0002": 256, "0a0003": 254 }), "10.0.3.0-10.0.3.254");
  assert.equal(find({ "0a0000": 254, "0a0001": 256, "0a0002": 256, "0a0003": 255 }), null);
});

test("a stored address is shown as it was read", () => {
  const one = block("172.16.4.0/22");
  assert.deepEqual(one, { first: "ac100400", last: "ac1007ff" });
  assert.equal(plan.cidrOf(one), "172.16.4.0/22");
  assert.equal(plan.maskOf(22), "255.255.252.0");
  const first6 = plan.pack(6, parseAddresses("fd24:0:0:7::/64").first);
  assert.equal(plan.cidr6Of(first6), "fd24:0:0:7::/64");
  assert.equal(plan.gateway6Of(first6), "fd24:0:0:7::1");
  assert.equal(plan.address6Of(first6, one, plan.pack(4, parseAddresses("172.16.4.10").first)), "fd24:0:0:7::a");
});

test("capacities are prefix lengths or numbers of addresses", () => {
  for (const [given, expected] of [
    ["29", 29],
    ["/24", 24],
    ["30", 30],
    ["8", 29],
    ["256", 24],
    [" 64 ", 26],
    ["/8", null],
    ["31", null],
    ["23", null],
    ["12", null],
    ["512", null],
    ["", null],
    ["x", null],
  ] as const)
    assert.equal(plan.readCapacity(given), expected, given);
});

test("private blocks: as requested, around the gateway, or the lowest free /24", () => {
  const planned = (input: Parameters<typeof plan.planPrivate>[0], taken: string[] = []) => {
    const found = plan.planPrivate(input, taken.map(block));
    if (found === null) return null;
    if ("reason" in found) return found.field;
    return [plan.cidrOf(found.block), found.gateway === null ? "" : plan.showAddress(found.gateway)];
  };
  assert.deepEqual(planned({}), ["172.16.0.0/24", ""]);
  assert.deepEqual(planned({}, ["172.16.0.0/24", "172.16.1.0/25"]), ["172.16.2.0/24", ""]);
  assert.deepEqual(planned({ Gateway: "192.168.7.1" }), ["192.168.7.0/24", "192.168.7.1"]);
  assert.deepEqual(planned({ CIDR: "10.0.0.0/16", Gateway: "10.0.3.4" }), ["10.0.0.0/16", "10.0.3.4"]);
  for (const input of [
    { CIDR: "10.0.0.0/15" },
    { CIDR: "10.0.0.0/30" },
    { CIDR: "11.0.0.0/24" },
    { CIDR: "10.0.0.1/24" },
    { CIDR: "10.0.0.0/024" },
    { CIDR: "10.0.0.0-10.0.0.255" },
    { CIDR: "10.0.0.0" },
    { CIDR: "fd00::/24" },
  ])
    assert.equal(planned(input), "CIDR", input.CIDR);
  const refused = plan.planPrivate({ CIDR: "10.0.0.5/24" }, []);
  assert.match(refused !== null && "reason" in refused ? refused.reason : "", /without host bits/);
  for (const input of [
    { Gateway: "8.8.8.8" },
    { Gateway: "nonsense" },
    { Gateway: "10.0.0.0/24" },
    { CIDR: "10.0.0.0/24", Gateway: "10.0.1.1" },
    { CIDR: "10.0.0.0/24", Gateway: "10.0.0.255" },
    { CIDR: "10.0.0.0/24", Gateway: "10.0.0.0" },
  ])
    assert.equal(planned(input), "Gateway", JSON.stringify(input));
});

test("blocks that the internet does not route are private", () => {
  for (const cidr of ["10.64.0.0/16", "192.168.1.0/29", "100.64.0.0/24", "172.31.255.0/24"])
    assert.equal(plan.isPrivate(block(cidr)), true, cidr);
  for (const cidr of ["198.51.100.0/24", "8.8.8.0/29", "172.32.0.0/24"])
    assert.equal(plan.isPrivate(block(cidr)), false, cidr);
});

test("merged blocks contain the same addresses, and adjacent ones are one range", () => {
  const stored = (first: number, last: number) => plan.storedBlock(4, { first: BigInt(first), last: BigInt(last) });
  assert.deepEqual(plan.mergeBlocks([stored(16, 23), stored(8, 15), stored(32, 33), stored(20, 21)]), [
    { first: 8n, last: 23n },
    { first: 32n, last: 33n },
  ]);
  const highest = 2 ** 32 - 1;
  assert.deepEqual(plan.mergeBlocks([stored(highest, highest)]), [{ first: BigInt(highest), last: BigInt(highest) }]);
  const block = fc.tuple(fc.nat(200), fc.nat(12)).map(([first, more]) => stored(1000 + first, 1000 + first + more));
  fc.assert(
    fc.property(fc.array(block, { maxLength: 30 }), fc.constantFrom(1n, 2n, 4n, 8n), (blocks, size) => {
      const pools = [{ first: 1000n, last: 1220n }];
      const taken = blocks.map(plan.rangeOf);
      const merged = plan.mergeBlocks(blocks);
      assert.deepEqual(plan.findBlock(pools, size, merged), plan.findBlock(pools, size, taken));
    }),
  );
});
