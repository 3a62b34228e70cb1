import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { contains } from "../../../base/address.ts";
import { runAtOnce } from "../../../base/turn.ts";
import type { AddressMatch, Ports, Rule } from "../interface.ts";
import { type Field, type FlatRule, fields, flatten } from "../model/verdict.ts";
import { buildTree, type Chain } from "./tree.ts";

type Values = Readonly<Record<Field, bigint>>;

/** What nftables does with a chain: the rule that decides, or null, and how many steps that took. */
function walk(chain: Chain, values: Values, steps: { count: number }): FlatRule | null {
  if (chain.kind === "tests") {
    for (const { rule, fields } of chain.tests) {
      steps.count++;
      if (fields.every((field) => contains(rule[field], values[field]))) return rule;
    }
    return null;
  }
  if (chain.kind === "runs") {
    for (const run of chain.chains) {
      const found = walk(run, values, steps);
      if (found !== null) return found;
    }
    return null;
  }
  steps.count++;
  const hits = chain.branches.filter(({ ranges }) => contains(ranges, values[chain.field]));
  assert.ok(hits.length <= 1, "branches overlap");
  return hits[0] === undefined ? null : walk(hits[0].chain, values, steps);
}

const direct = (rules: readonly FlatRule[], values: Values): FlatRule | null =>
  rules.find((rule) => fields.every((field) => contains(rule[field], values[field]))) ?? null;

const octet = fc.integer({ min: 0, max: 15 });
const place: fc.Arbitrary<AddressMatch> = fc.oneof(
  fc.constantFrom<AddressMatch>("any", "internal", "external"),
  fc.array(
    fc.oneof(
      octet.map((end) => `10.64.0.${end}`),
      fc.constantFrom("10.64.0.0/30", "10.64.0.8/29", "10.64.0.3-10.64.0.9"),
    ),
    { minLength: 1, maxLength: 3 },
  ),
);
const ports: fc.Arbitrary<Ports> = fc.oneof(
  fc.constant<Ports>("any"),
  fc.array(
    fc
      .tuple(fc.integer({ min: 1, max: 20 }), fc.integer({ min: 0, max: 4 }))
      .map(([first, more]) => ({ first, last: first + more })),
    { minLength: 1, maxLength: 3 },
  ),
);
const rule: fc.Arbitrary<Rule> = fc
  .record({
    allow: fc.boolean(),
    protocol: fc.constantFrom("any", "tcp", "udp", "tcp-udp", "icmp"),
    source: place,
    destination: place,
    sourcePort: ports,
    destinationPort: ports,
  })
  .map((spec) =>
    spec.protocol === "any" || spec.protocol === "icmp" ? { ...spec, sourcePort: "any", destinationPort: "any" } : spec,
  );
const values = fc.record({
  protocol: fc.constantFrom(1n, 6n, 17n, 47n),
  source: octet.map((end) => 0x0a400000n + BigInt(end)),
  destination: octet.map((end) => 0x0a400000n + BigInt(end)),
  sourcePort: fc.bigInt({ min: 0n, max: 30n }),
  destinationPort: fc.bigInt({ min: 0n, max: 30n }),
});

test("the tree finds the first matching rule, as the list does", () => {
  fc.assert(
    fc.property(
      fc.array(rule, { maxLength: 80, size: "max" }),
      fc.array(values, { minLength: 20, maxLength: 40 }),
      (rules, packets) => {
        const flat = flatten(rules, 4, ["10.64.0.8/29"]);
        const tree = runAtOnce(buildTree(flat, 4));
        for (const packet of packets) assert.equal(walk(tree, packet, { count: 0 }), direct(flat, packet));
      },
    ),
    { numRuns: 300 },
  );
});

const wide = { protocol: "tcp", source: "any", sourcePort: "any", destination: "any", destinationPort: "any" } as const;
const address = (index: number) => `10.64.${index >> 8}.${index & 255}`;

/** Rules of one kind each, in such numbers that a list would be slow. */
const large: Record<string, (index: number) => Rule> = {
  "by destination": (index) => ({
    ...wide,
    allow: true,
    destination: [address(index)],
    destinationPort: [{ first: 22, last: 22 }],
  }),
  "by source, allowed and denied": (index) => ({ ...wide, allow: index % 2 === 0, source: [address(index)] }),
  "by port": (index) => ({ ...wide, allow: true, destinationPort: [{ first: index + 1, last: index + 1 }] }),
  "by source and port": (index) => ({
    ...wide,
    allow: true,
    source: [address(index % 100)],
    destinationPort: [{ first: index + 1, last: index + 3 }],
  }),
  "by destination, at times by port": (index) =>
    index % 500 === 499
      ? { ...wide, allow: false, destinationPort: [{ first: index, last: index }] }
      : { ...wide, allow: true, destination: [address(index)] },
};
for (const [name, make] of Object.entries(large))
  test(`steps stay few among 5,000 rules ${name}`, () => {
    const flat = flatten(
      [...Array.from({ length: 5000 }, (_, index) => make(index)), { ...wide, protocol: "any", allow: false }],
      4,
      [],
    );
    const tree = runAtOnce(buildTree(flat, 4));
    // A search by the test is slow, so it takes every eleventh rule, which is of each kind.
    for (const rule of flat.filter(({ index }) => index % 11 === 0 || index >= 4990)) {
      const packet = Object.fromEntries(fields.map((field) => [field, rule[field][0]?.first])) as unknown as Values;
      const steps = { count: 0 };
      assert.equal(walk(tree, packet, steps), direct(flat, packet));
      assert.ok(steps.count <= 40, `${steps.count} steps to rule ${rule.index}`);
    }
  });

test("a tree of thousands of rules is built with many interruptions", () => {
  const rules = Array.from({ length: 2000 }, (_, index) => ({
    allow: index % 3 === 0,
    protocol: "tcp" as const,
    source: [`198.51.${index >> 8}.${index & 255}`],
    sourcePort: "any" as const,
    destination: "internal" as const,
    destinationPort: [{ first: 1000 + index, last: 2000 + index }],
  }));
  const steps = buildTree(flatten(rules, 4, ["10.64.0.8/29"]), 4);
  let count = 0;
  for (let step = steps.next(); step.done !== true; step = steps.next()) count += 1;
  assert.ok(count > 100, `${count} interruptions`);
});

test("a long list is split with yields", () => {
  const rules = Array.from({ length: 2000 }, (_, index) => ({
    allow: true,
    protocol: "tcp" as const,
    source: [`198.51.${index % 200}.0-198.51.${index % 200}.${index % 100}`],
    sourcePort: "any" as const,
    destination: [`10.64.${index >> 8}.${index & 255}-10.64.255.255`],
    destinationPort: [{ first: 60_500 + (index % 1000), last: 65_000 }],
  }));
  const flat = flatten(rules, 4, ["10.64.0.0/16"]);
  let nodes = 0;
  const count = (chain: Chain): void => {
    nodes += 1;
    if (chain.kind === "runs") for (const each of chain.chains) count(each);
    if (chain.kind === "split") for (const each of chain.branches) count(each.chain);
  };
  const work = buildTree(flat, 4);
  let yields = 0;
  let step = work.next();
  for (; step.done !== true; step = work.next()) yields += 1;
  count(step.value);
  // One before each node, and several for each of the five fields.
  assert.ok(yields >= nodes + 20, `${yields} yields for ${nodes} nodes`);
});
