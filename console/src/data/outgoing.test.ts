/** Which rules of a firewall allow connections from its network to the outside. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { addRule, presets, type Rule, type RuleSet } from "./firewall.ts";
import { blocksOutgoing, placeOfOutgoing } from "./outgoing.ts";

const block = "10.64.0.0/28";
const empty: RuleSet = { Enabled: true, DefaultRuleAction: "Deny", Rules: [] };
const withRules = (...parts: Partial<Rule>[]): RuleSet =>
  parts
    .toReversed()
    .reduce<RuleSet>((set, part) => addRule(set, { Protocol: "Any", DestinationPort: "any", ...part }), empty);
const blocks = (...parts: Partial<Rule>[]): boolean => blocksOutgoing(withRules(...parts), block);
const denyAll = { Action: "Deny", Destination: "any" } as const;

test("a firewall that is off, or allows by default, blocks no connection", () => {
  assert.equal(blocksOutgoing(empty, block), true);
  assert.equal(blocksOutgoing({ ...empty, Enabled: false }, block), false);
  assert.equal(blocksOutgoing({ ...empty, DefaultRuleAction: "Allow" }, block), false);
  assert.equal(blocksOutgoing({ ...withRules(denyAll), DefaultRuleAction: "Allow" }, block), true);
  assert.equal(
    blocksOutgoing({ ...withRules({ ...denyAll, Protocol: "Tcp" }), DefaultRuleAction: "Allow" }, block),
    false,
  );
});

test("rules about incoming packets and echo allow no outgoing connection", () => {
  assert.equal(blocks(presets.ssh, presets.web), true);
  assert.equal(blocks(presets.ssh, presets.web, presets.outgoing), false);
  for (const Destination of ["internal", "10.64.0.2", "10.64.0.2-10.64.0.4", "10.64.0.8/29, 10.64.0.1"])
    assert.equal(blocks({ Destination }), true, Destination);
  for (const Destination of ["any", "", "external", "8.8.8.8", "10.64.0.2,10.64.0.16", "10.0.0.0/8", "fd00::/8"])
    assert.equal(blocks({ Destination }), false, Destination);
  for (const Source of ["external", "203.0.113.7", "10.64.0.16-10.64.0.20"])
    assert.equal(blocks({ Source, Destination: "any" }), true, Source);
  assert.equal(blocks({ Source: "10.64.0.3", Destination: "any" }), false);
  assert.equal(blocks({ Protocol: "Icmp", Destination: "any" }), true);
});

test("a rule after one that denies all decides nothing, and a new one is placed before it", () => {
  assert.equal(blocks(denyAll, presets.outgoing), true);
  assert.equal(blocks(presets.outgoing, denyAll), false);
  const set = withRules(
    presets.ssh,
    { Action: "Deny", Protocol: "Tcp", Destination: "any", DestinationPort: "25" },
    denyAll,
  );
  assert.equal(placeOfOutgoing(set), 2);
  const open = addRule(set, presets.outgoing, placeOfOutgoing(set));
  assert.deepEqual(
    open.Rules.map(({ Action }) => Action),
    ["Allow", "Deny", "Allow", "Deny"],
  );
  assert.equal(blocksOutgoing(open, block), false);
  assert.equal(placeOfOutgoing(withRules(presets.ssh)), 1);
});
