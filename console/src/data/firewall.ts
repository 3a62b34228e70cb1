/** The firewall rules that a page edits: order, difference to the stored ones, and rules that never decide. Pure. */
import type { Firewall, FirewallRule, FirewallRuleInput, RuleAction } from "@brume/api/firewall.ts";

/** A rule of the editor. `key`: number of the stored rule; negative: it is new. */
export interface Rule extends Required<FirewallRuleInput> {
  readonly key: number;
}

/** A set of rules with its settings. */
export interface RuleSet {
  readonly Enabled: boolean;
  readonly DefaultRuleAction: RuleAction;
  readonly Rules: readonly Rule[];
}

const fields = ["Name", "Action", "Protocol", "Source", "SourcePort", "Destination", "DestinationPort"] as const;

function ruleOf(rule: FirewallRule): Rule {
  const { Number: key, Name, Action, Protocol, Source, SourcePort, Destination, DestinationPort } = rule;
  return { key, Name, Action, Protocol, Source, SourcePort, Destination, DestinationPort };
}

export const ruleSetOf = ({ Enabled, DefaultRuleAction, Rules }: Firewall): RuleSet => ({
  Enabled,
  DefaultRuleAction,
  Rules: Rules.map(ruleOf),
});

/** Returns the rule as text; two rules are the same if their texts are. */
const textOf = (rule: Rule): string => JSON.stringify(fields.map((name) => rule[name]));

/** Counters of a rule of the present set, and how they have changed lately. */
export interface RuleCounter {
  readonly rule: FirewallRule;
  /** Packets per second, from the oldest read to the newest. */
  readonly rates: readonly number[];
}

/** Returns what a counter belongs to: a rule at its place, because a set that is applied counts from 0. */
export const counterKey = (rule: FirewallRule): string => `${rule.Number} ${textOf(ruleOf(rule))}`;

/** Returns the set as text, without keys. */
export const setText = ({ Enabled, DefaultRuleAction, Rules }: RuleSet): string =>
  JSON.stringify([Enabled, DefaultRuleAction, ...Rules.map(textOf)]);

/** Returns the request that stores the set. Fields with their default are left out. */
export function requestOf({ Enabled, DefaultRuleAction, Rules }: RuleSet) {
  return {
    Enabled,
    DefaultRuleAction,
    Rules: Rules.map((rule): FirewallRuleInput => {
      const { key: _, Action, ...rest } = rule;
      const given = Object.entries(rest).filter(
        ([name, value]) => value !== (defaults as Record<string, string>)[name],
      );
      return { Action, ...Object.fromEntries(given) };
    }),
  };
}

const defaults = {
  Name: "",
  Protocol: "Any",
  Source: "any",
  SourcePort: "any",
  Destination: "any",
  DestinationPort: "any",
} as const;

/** Rules that most networks need, without their names. Replies need no rule. */
export const presets = {
  ssh: { Protocol: "Tcp", Source: "any", Destination: "internal", DestinationPort: "22" },
  web: { Protocol: "Tcp", Source: "any", Destination: "internal", DestinationPort: "80,443" },
  outgoing: { Protocol: "Any", Source: "internal", Destination: "external", DestinationPort: "any" },
} as const;

/** Returns the rule that allows the packets of the preset, with any name. */
export const findPreset = ({ Rules }: RuleSet, name: keyof typeof presets): Rule | undefined =>
  Rules.find((rule) =>
    Object.entries({ ...presets[name], Action: "Allow", SourcePort: "any" }).every(
      ([field, value]) => rule[field as keyof Rule] === value,
    ),
  );

/** Key of the next new rule. */
export const newKey = ({ Rules }: RuleSet): number => Math.min(0, ...Rules.map(({ key }) => key)) - 1;

/** Returns the set with a new rule at a position, by default in front. The common case is to allow a service. */
export function addRule(set: RuleSet, part: Partial<Rule> = {}, at = 0): RuleSet {
  const rule: Rule = {
    ...defaults,
    key: newKey(set),
    Action: "Allow",
    Protocol: "Tcp",
    Destination: "internal",
    DestinationPort: "443",
    ...part,
  };
  return { ...set, Rules: set.Rules.toSpliced(at, 0, rule) };
}

export const editRule = (set: RuleSet, key: number, part: Partial<Rule>): RuleSet => ({
  ...set,
  Rules: set.Rules.map((rule) => (rule.key === key ? withPorts({ ...rule, ...part }) : rule)),
});

/** Only TCP and UDP have ports. */
function withPorts(rule: Rule): Rule {
  if (rule.Protocol !== "Any" && rule.Protocol !== "Icmp") return rule;
  return { ...rule, SourcePort: "any", DestinationPort: "any" };
}

export const removeRule = (set: RuleSet, key: number): RuleSet => ({
  ...set,
  Rules: set.Rules.filter((rule) => rule.key !== key),
});

/** Returns the rules of `base` that the set no longer has, also not as an equal new rule. */
export function removedRules(base: RuleSet, { Rules }: RuleSet): Rule[] {
  const left = new Set(Rules.map(({ key }) => key));
  const gone = base.Rules.filter(({ key }) => !left.has(key));
  if (gone.length === 0) return [];
  const texts = new Set(Rules.map(textOf));
  return gone.filter((rule) => !texts.has(textOf(rule)));
}

/** Returns the set with this rule of `base` again, behind the rules that are before it there. */
export function restoreRule(base: RuleSet, set: RuleSet, rule: Rule): RuleSet {
  const earlier = new Set(base.Rules.slice(0, base.Rules.indexOf(rule)).map(({ key }) => key));
  const at = set.Rules.findLastIndex(({ key }) => earlier.has(key)) + 1;
  return { ...set, Rules: set.Rules.toSpliced(at, 0, rule) };
}

/** Returns an earlier set as edits of `base`: its rules that `base` contains are those, others at the place of a rule that is gone are changed, and the rest is new. */
export function editsOf(base: RuleSet, { Rules, ...settings }: RuleSet): RuleSet {
  const left = [...base.Rules];
  const edited = Rules.map((rule) => {
    const at = left.findIndex((one) => textOf(one) === textOf(rule));
    return at < 0 ? undefined : left.splice(at, 1)[0];
  });
  const gone = new Set(left.map(({ key }) => key));
  const keyOf = ({ key }: Rule, index: number): number => (gone.has(key) ? key : -1 - index);
  return { ...settings, Rules: Rules.map((rule, index) => edited[index] ?? { ...rule, key: keyOf(rule, index) }) };
}

/** Returns the set with the rule at position `from` moved to `to`, both from 0. */
export function moveRule(set: RuleSet, from: number, to: number): RuleSet {
  const rule = set.Rules[from];
  if (rule === undefined || to < 0 || to >= set.Rules.length || from === to) return set;
  const Rules = set.Rules.toSpliced(from, 1).toSpliced(to, 0, rule);
  return { ...set, Rules };
}

/** A line of the difference of two sets. */
export interface DiffLine {
  readonly kind: "keep" | "add" | "remove";
  readonly rule: Rule;
  /** Position in its set, from 1. */
  readonly number: number;
}

/** Rules up to which the longest common order is searched: it takes time and memory with the square. */
const mostCompared = 1000;

/** Returns the lines of both sets in order: what stays, what goes and what is new. A moved rule goes and is new. */
export function diffRules(before: readonly Rule[], after: readonly Rule[]): DiffLine[] {
  const old = before.map(textOf);
  const now = after.map(textOf);
  let head = 0;
  while (head < old.length && head < now.length && old[head] === now[head]) head++;
  let tail = 0;
  while (tail < old.length - head && tail < now.length - head && old.at(-1 - tail) === now.at(-1 - tail)) tail++;
  const line = (kind: DiffLine["kind"], rules: readonly Rule[], index: number): DiffLine[] => {
    const rule = rules[index];
    return rule === undefined ? [] : [{ kind, rule, number: index + 1 }];
  };
  const common = commonOrder(old.slice(head, old.length - tail), now.slice(head, now.length - tail));
  const lines = after.slice(0, head).flatMap((_, index) => line("keep", after, index));
  let [i, j] = [head, head];
  for (const [x, y] of [...common, [old.length - tail - head, now.length - tail - head] as const]) {
    while (i < head + x) lines.push(...line("remove", before, i++));
    while (j < head + y) lines.push(...line("add", after, j++));
    if (j < now.length - tail) lines.push(...line("keep", after, j));
    i++;
    j++;
  }
  return [...lines, ...after.flatMap((_, index) => (index >= now.length - tail ? line("keep", after, index) : []))];
}

/** Returns for each line of a rule that only moved, by its index, the number of the rule in the other set. */
export function movesOf(lines: readonly DiffLine[]): ReadonlyMap<number, number> {
  const removed = new Map<string, { readonly index: number; readonly number: number }[]>();
  for (const [index, { kind, rule, number }] of lines.entries())
    if (kind === "remove") removed.set(textOf(rule), [...(removed.get(textOf(rule)) ?? []), { index, number }]);
  const moves = new Map<number, number>();
  for (const [index, { kind, rule, number }] of lines.entries()) {
    const from = kind === "add" ? removed.get(textOf(rule))?.shift() : undefined;
    if (from !== undefined) moves.set(index, from.number).set(from.index, number);
  }
  return moves;
}

/** Returns pairs of positions of the longest common subsequence. */
function commonOrder(old: readonly string[], now: readonly string[]): (readonly [number, number])[] {
  if (old.length > mostCompared || now.length > mostCompared) return [];
  const width = now.length + 1;
  const lengths = new Uint16Array((old.length + 1) * width);
  const at = (i: number, j: number): number => lengths[i * width + j] ?? 0;
  for (let i = old.length - 1; i >= 0; i--)
    for (let j = now.length - 1; j >= 0; j--)
      lengths[i * width + j] = old[i] === now[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1));
  const pairs: (readonly [number, number])[] = [];
  for (let i = 0, j = 0; i < old.length && j < now.length; )
    if (old[i] === now[j]) pairs.push([i++, j++]);
    else if (at(i + 1, j) >= at(i, j + 1)) i++;
    else j++;
  return pairs;
}

/** Returns how many rules are new, changed, moved or removed, and counts the settings as one. */
export function countChanges(before: RuleSet, after: RuleSet): number {
  const lines = diffRules(before.Rules, after.Rules);
  const changed = new Set(lines.flatMap(({ kind, rule }) => (kind === "keep" ? [] : [rule.key])));
  const settings = before.Enabled !== after.Enabled || before.DefaultRuleAction !== after.DefaultRuleAction;
  return changed.size + Number(settings);
}

const includes = (outer: string, inner: string): boolean => outer === "any" || outer === "" || outer === inner;

function includesProtocol(outer: Rule["Protocol"], inner: Rule["Protocol"]): boolean {
  return outer === "Any" || outer === inner || (outer === "TcpAndUdp" && (inner === "Tcp" || inner === "Udp"));
}

/**
 * Returns the rules that never decide, by key, with the number of the rule before them that matches the same packets. It compares texts, so
 * it finds only rules with the same address or `any`; what it finds is true.
 */
export function shadowedRules(rules: readonly Rule[]): ReadonlyMap<number, number> {
  const found = new Map<number, number>();
  // The first few hundred rules before a rule are compared: a table of thousands must stay quick.
  for (const [index, rule] of rules.entries()) {
    const by = rules
      .slice(Math.max(0, index - 300), index)
      .findIndex(
        (one) =>
          includesProtocol(one.Protocol, rule.Protocol) &&
          includes(one.Source, rule.Source) &&
          includes(one.SourcePort, rule.SourcePort) &&
          includes(one.Destination, rule.Destination) &&
          includes(one.DestinationPort, rule.DestinationPort),
      );
    if (by >= 0) found.set(rule.key, Math.max(0, index - 300) + by + 1);
  }
  return found;
}
