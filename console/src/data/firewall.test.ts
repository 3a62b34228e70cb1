/** The firewall editor: order, difference, and rules that never decide. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import {
  addRule,
  countChanges,
  diffRules,
  editRule,
  editsOf,
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

test("an earlier set is edits of the present one: equal rules are the same, others at the place of one are changed or new", () => {
  const base = set(rule(1), rule(2, { Name: "same" }), rule(3, { Name: "same", DestinationPort: "2" }), rule(4));
  const [first, second, third, last] = base.Rules as [Rule, Rule, Rule, Rule];
  // The numbers of the earlier set are those of other rules of the present one.
  const { Rules } = editsOf(base, set({ ...first }, { ...third, key: 2 }, { ...last, key: 3 }, rule(9, { key: 4 })));
  assert.deepEqual(
    Rules.map(({ key }) => key),
    [1, 2, 4, -4],
  );
  assert.deepEqual([Rules[0] === first, Rules[1] === second, Rules[2] === last], [true, true, true]);
  const changed = editsOf(base, editRule(base, 4, { Name: "changed" }));
  assert.deepEqual([changed.Rules.map(({ key }) => key), countChanges(base, changed)], [[1, 2, 3, 4], 1]);
  assert.deepEqual(removedRules(base, editsOf(base, set({ ...first }, { ...last, key: 2 }))), [second, third]);
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
