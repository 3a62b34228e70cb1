/**
 * Turns a list of rules into a search tree, so that the first packet of a connection meets only a few rules. Each level splits the rules by
 * one field with one lookup in an interval map (the idea of HiCuts, Gupta and McKeown 1999). Every branch keeps the order of rules, and so
 * first-match semantics. Where a split would copy rules too often, the list is cut into runs that are searched one after the other.
 */
import { type Value, valueAfter, valueBefore } from "../../../base/address.ts";
import { type Field, type FlatRule, fields, fullRange, type Span } from "../model/verdict.ts";

/** A rule and the fields that must still be tested when it is reached. */
export interface Test {
  readonly rule: FlatRule;
  readonly fields: readonly Field[];
}

/** A node of the tree. Its tests run from top to bottom; if none matches, the search continues after the jump to this chain. */
export type Chain =
  | { readonly kind: "tests"; readonly tests: readonly Test[] }
  | { readonly kind: "split"; readonly field: Field; readonly branches: readonly Branch[] }
  | { readonly kind: "runs"; readonly chains: readonly Chain[] };

/** A branch of a split: values of the field and the chain for them. */
export interface Branch {
  readonly ranges: readonly Span[];
  readonly chain: Chain;
}

/** Up to this number, testing rules is faster than a lookup. */
const FEW = 6;
/** How often a split may copy a rule, on average. */
const COPIES = 4;

interface Split {
  readonly field: Field;
  readonly groups: readonly { readonly ranges: readonly Span[]; readonly rules: readonly FlatRule[] }[];
  readonly longest: number;
}

const covers = ([range, another]: readonly Span[], whole: Span): boolean =>
  another === undefined && (range === whole || (range?.first === whole.first && range.last === whole.last));

/** Sorts values and removes duplicates. */
const inOrder = (values: Iterable<Value>): Value[] =>
  [...new Set(values)].sort((one, other) => (one < other ? -1 : Number(one > other)));

/** Rules, or intervals, that are processed without a yield. */
const TOGETHER = 256;

/** Sorted values and their places. */
interface Places {
  readonly values: ArrayLike<Value>;
  place(value: Value): number;
}

/** Returns the values in order, each once. Numbers are sorted and found without objects, which is several times faster. */
function placesOf(values: readonly Value[]): Places {
  if (typeof values[0] === "bigint") {
    const ordered = inOrder(values);
    const places = new Map(ordered.map((value, place) => [value, place]));
    return { values: ordered, place: (value) => places.get(value) as number };
  }
  const sorted = new Float64Array(values as readonly number[]).sort();
  let count = 0;
  for (const value of sorted) if (count === 0 || value !== sorted[count - 1]) sorted[count++] = value;
  const ordered = sorted.subarray(0, count);
  return {
    values: ordered,
    place(value) {
      let from = 0;
      for (let end = count; end - from > 1; ) {
        const middle = (from + end) >> 1;
        if ((ordered[middle] as number) <= (value as number)) from = middle;
        else end = middle;
      }
      return from;
    },
  };
}

/** Splits the field, with yields, at every border of every rule; null when that would copy rules too often. */
function* splitBy(field: Field, rules: readonly FlatRule[], whole: Span): Generator<void, Split | null> {
  /** For each range of each rule, its first value and the value after its last. */
  const edges: Value[] = [];
  for (const rule of rules) for (const { first, last } of rule[field]) edges.push(first, valueAfter(last));
  const isLong = edges.length > TOGETHER;
  if (isLong) yield;
  const { values: borders, place: placeOf } = placesOf([whole.first, ...edges]);
  if (isLong) yield;
  let budget = COPIES * rules.length;
  /** For each interval between borders, the first rule that applies there. */
  const firsts = new Array<FlatRule | undefined>(borders.length).fill(undefined);
  /** All rules of intervals with more than one. */
  const longer = new Map<number, FlatRule[]>();
  let edge = 0;
  for (const [index, rule] of rules.entries()) {
    if (index % TOGETHER === TOGETHER - 1) yield;
    for (let left = rule[field].length; left > 0; left--) {
      const from = placeOf(edges[edge++] as Value);
      const end = placeOf(edges[edge++] as Value);
      budget -= end - from;
      if (budget < 0) return null;
      for (let place = from; place < end; place++) {
        const first = firsts[place];
        const list = longer.get(place);
        if (first === undefined) firsts[place] = rule;
        else if (list === undefined) longer.set(place, [first, rule]);
        else list.push(rule);
      }
    }
  }
  const groups = new Map<string | number, { ranges: Span[]; rules: readonly FlatRule[]; end: number }>();
  for (const [place, first] of firsts.entries()) {
    if (place % TOGETHER === TOGETHER - 1) yield;
    if (first === undefined) continue;
    const list = longer.get(place);
    const key = list === undefined ? first.index : list.map((rule) => rule.index).join();
    const next = borders[place + 1];
    const range = { first: borders[place] as Value, last: next === undefined ? whole.last : valueBefore(next) };
    const group = groups.get(key);
    if (group === undefined) groups.set(key, { ranges: [range], rules: list ?? [first], end: place });
    else {
      if (group.end === place - 1) range.first = group.ranges.pop()?.first as Value;
      group.ranges.push(range);
      group.end = place;
    }
  }
  const found = [...groups.values()];
  return { field, groups: found, longest: found.reduce((most, { rules }) => Math.max(most, rules.length), 0) };
}

/** Cuts the list between rules that restrict the field and rules that do not. */
function runsBy(field: Field, rules: readonly FlatRule[], whole: Span): FlatRule[][] {
  const runs: FlatRule[][] = [];
  let open: boolean | null = null;
  for (const rule of rules) {
    const now = covers(rule[field], whole);
    if (now !== open) runs.push([]);
    runs.at(-1)?.push(rule);
    open = now;
  }
  return runs;
}

/** Builds the tree, with a yield for each node. `family` determines the size of addresses. */
export function* buildTree(rules: readonly FlatRule[], family: 4 | 6): Generator<void, Chain> {
  const fullRanges = Object.fromEntries(fields.map((field) => [field, fullRange(field, family)])) as Record<
    Field,
    Span
  >;

  const testOf = (rule: FlatRule, left: readonly Field[]): Test => {
    return { rule, fields: left.filter((field) => !covers(rule[field], fullRanges[field])) };
  };

  /** Returns the rules up to the first that matches everything: those after it are never reached. */
  function reachable(list: readonly FlatRule[], left: readonly Field[]): readonly FlatRule[] {
    const last = list.findIndex((rule) => left.every((field) => covers(rule[field], fullRanges[field])));
    return last < 0 ? list : list.slice(0, last + 1);
  }

  function* testsOf(list: readonly FlatRule[], left: readonly Field[]): Generator<void, Chain> {
    const tests: Test[] = [];
    for (const rule of list) {
      if (tests.length % TOGETHER === TOGETHER - 1) yield;
      tests.push(testOf(rule, left));
    }
    return { kind: "tests", tests };
  }

  function* build(list: readonly FlatRule[], left: readonly Field[]): Generator<void, Chain> {
    yield;
    const met = reachable(list, left);
    if (met.length <= FEW) return yield* testsOf(met, left);
    // Ports have a meaning only when the protocol is known, so it comes first.
    const candidates = left.includes("protocol") ? (["protocol"] as const) : left;
    let best: Split | null = null;
    for (const field of candidates) {
      const split = yield* splitBy(field, met, fullRanges[field]);
      if (split !== null && split.longest < (best?.longest ?? Number.POSITIVE_INFINITY)) best = split;
      if (best !== null && best.longest <= FEW) break;
    }
    if (best !== null && (best.field === "protocol" || best.longest <= met.length / 2)) {
      const { field: done } = best;
      const rest = left.filter((field) => field !== done);
      const branches: Branch[] = [];
      for (const { ranges, rules } of best.groups) {
        // Most branches are short: generators for each would take as long as the rest of the tree.
        const only = rules.length === 1 ? rules[0] : undefined;
        if (only === undefined) branches.push({ ranges, chain: yield* build(rules, rest) });
        else branches.push({ ranges, chain: { kind: "tests", tests: [testOf(only, rest)] } });
        yield;
      }
      return { kind: "split", field: best.field, branches };
    }
    const runs = candidates.map((field) => runsBy(field, met, fullRanges[field])).filter((runs) => runs.length > 1);
    const fewest = runs.sort((a, b) => a.length - b.length)[0];
    if (fewest === undefined || fewest.length > met.length / 4) return yield* testsOf(met, left);
    const chains: Chain[] = [];
    for (const run of fewest) chains.push(yield* build(run, left));
    return { kind: "runs", chains };
  }

  return yield* build(rules, fields);
}
