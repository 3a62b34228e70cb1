/** The firewall editor: order, difference, and rules that never decide. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import {
  addRule,
  countChanges,
  diffRules,
  editRule,
  moveRule,
  movesOf,
  type Rule,
  type RuleSet,
  removedRules,
  removeRule,
  requestOf,
  restoreRule,
  shadowedRules,
} from "./firewall.ts";

const rule = (key: number, more: Partial<Rule> = {}): Rule => ({
  key,
  Name: `r${key}`,
  Action: "Allow",
  Protocol: "Tcp",
  Source: "any",
  SourcePort: "any",
  Destination: "internal",
  DestinationPort: String(key),
  ...more,
});
const set = (...Rules: Rule[]) => ({ Enabled: true, DefaultRuleAction: "Deny" as const, Rules });
const shown = (before: readonly Rule[], after: readonly Rule[]): string[] =>
  diffRules(before, after).map(({ kind, rule: { key } }) => `${{ keep: " ", add: "+", remove: "-" }[kind]}${key}`);

test("a moved rule goes from one place to another", () => {
  const before = set(rule(1), rule(2), rule(3), rule(4));
  const after = moveRule(before, 0, 2);
  assert.deepEqual(shown(before.Rules, after.Rules), ["-1", " 2", " 3", "+1", " 4"]);
  assert.equal(countChanges(before, after), 1);
  assert.equal(moveRule(before, 0, 4), before);
  assert.equal(moveRule(before, -1, 2), before);
});

test("a deleted rule is restored behind the rules before it, unless an equal one was added", () => {
  const base = set(rule(1), rule(2), rule(3), rule(4));
  assert.deepEqual(removedRules(base, moveRule(base, 0, 3)), []);
  const moved = moveRule(removeRule(removeRule(base, 2), 1), 1, 0);
  assert.deepEqual(
    removedRules(base, moved).map(({ key }) => key),
    [1, 2],
  );
  const keys = ({ Rules }: RuleSet) => Rules.map(({ key }) => key);
  const [first, second] = removedRules(base, moved) as [Rule, Rule];
  assert.deepEqual(keys(restoreRule(base, moved, second)), [2, 4, 3]);
  assert.deepEqual(keys(restoreRule(base, restoreRule(base, moved, first), second)), [1, 2, 4, 3]);
  assert.deepEqual(removedRules(base, addRule(moved, { ...rule(2), key: -1 })), [first]);
});

test("the difference of any two sets contains both in order", () => {
  const rules = fc.array(
    fc.integer({ min: 1, max: 6 }).map((key) => rule(key)),
    { maxLength: 12 },
  );
  fc.assert(
    fc.property(rules, rules, (before, after) => {
      const lines = diffRules(before, after);
      const of = (without: string) => lines.filter(({ kind }) => kind !== without).map((line) => line.rule.key);
      assert.deepEqual(
        of("add"),
        before.map(({ key }) => key),
      );
      assert.deepEqual(
        of("remove"),
        after.map(({ key }) => key),
      );
    }),
  );
});

test("a rule that only moved is marked in both lines, and a changed one is not", () => {
  const lines = diffRules([rule(1), rule(2), rule(3)], [rule(2), rule(3), rule(1), rule(4)]);
  assert.deepEqual(
    [...movesOf(lines)].toSorted(([a], [b]) => a - b),
    [
      [0, 3],
      [3, 1],
    ],
  );
  assert.deepEqual([...movesOf(diffRules([rule(1)], [rule(2)]))], []);
});

test("a new rule gets a key of its own, and only TCP and UDP keep ports", () => {
  const twice = addRule(addRule(set(rule(1))));
  assert.deepEqual(
    twice.Rules.map(({ key }) => key),
    [-2, -1, 1],
  );
  const icmp = editRule(twice, -1, { Protocol: "Icmp" });
  assert.deepEqual(requestOf(icmp).Rules[1], { Action: "Allow", Protocol: "Icmp", Destination: "internal" });
});

test("a rule behind one that matches all of its packets never decides", () => {
  const rules = [
    rule(1, { Protocol: "TcpAndUdp", DestinationPort: "any" }),
    rule(2),
    rule(3, { Protocol: "Icmp", DestinationPort: "any" }),
    rule(4, { Destination: "any" }),
  ];
  assert.deepEqual([...shadowedRules(rules)], [[2, 1]]);
});
