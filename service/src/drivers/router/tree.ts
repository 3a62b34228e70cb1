/**
 * Puts a list of rules in order of search instead of order of writing, so that the first packet of a connection meets a handful of
 * rules, however many there are: rules are told apart by one field after the other, each by one look-up in a map of intervals
 * (the idea of HiCuts, Gupta and McKeown 1999). Order, and so the meaning of "the first that fits", is kept in every branch. Where
 * a look-up would copy rules too often the list is cut into runs that are searched one after the other.
 */
import type { Range } from "../../base/address.ts";
import { type Field, type FlatRule, fields, wholeOf } from "./verdict.ts";

/** A rule and the fields that are still to be tested when it is met. */
export interface Test {
  readonly rule: FlatRule;
  readonly fields: readonly Field[];
}

/** Tried from top to bottom; when nothing in it fits, the search goes on behind the chain that came here. */
export type Chain =
  | { readonly kind: "tests"; readonly tests: readonly Test[] }
  | { readonly kind: "split"; readonly field: Field; readonly branches: readonly Branch[] }
  | { readonly kind: "runs"; readonly chains: readonly Chain[] };

export interface Branch {
  readonly ranges: readonly Range[];
  readonly chain: Chain;
}

/** So few rules are tried faster than looked up. */
const FEW = 6;
/** How often a rule may be copied by one look-up, on average. */
const COPIES = 4;

interface Split {
  readonly field: Field;
  readonly groups: readonly { readonly ranges: Range[]; readonly rules: readonly FlatRule[] }[];
  readonly longest: number;
}

const covers = ([range, another]: readonly Range[], whole: Range): boolean =>
  another === undefined && (range === whole || (range?.first === whole.first && range.last === whole.last));

/** Where in the sorted list the value is, or would be. */
function place(sorted: ArrayLike<number | bigint>, value: number | bigint): number {
  let [low, high] = [0, sorted.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((sorted[middle] ?? 0) < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Cuts the field at every border of every rule; null when that would copy the rules too often. */
function splitBy(field: Field, rules: readonly FlatRule[], whole: Range): Split | null {
  // All but addresses of IPv6 fit into numbers, which are sorted and compared many times faster.
  const fits = whole.last < BigInt(Number.MAX_SAFE_INTEGER);
  const plain: (value: bigint) => number | bigint = fits ? Number : (value) => value;
  const behind: (value: bigint) => number | bigint = fits ? (value) => Number(value) + 1 : (value) => value + 1n;
  /** Of each range of each rule, where it begins and what comes behind it. */
  const edges: (number | bigint)[] = [];
  for (const rule of rules) for (const { first, last } of rule[field]) edges.push(plain(first), behind(last));
  const borders = [plain(whole.first), ...edges];
  const sorted = fits
    ? Array.from(Float64Array.from(borders as number[]).sort())
    : borders.sort((a, b) => (a < b ? -1 : a > b ? 1 : 0));
  const starts = sorted.filter((border, index) => border !== sorted[index - 1] && border <= whole.last);
  let room = COPIES * rules.length;
  const lists = starts.map((): FlatRule[] => []);
  let edge = 0;
  for (const rule of rules)
    for (let left = rule[field].length; left > 0; left--) {
      const from = place(starts, edges[edge++] as number | bigint);
      const end = place(starts, edges[edge++] as number | bigint);
      room -= end - from;
      if (room < 0) return null;
      for (let index = from; index < end; index++) lists[index]?.push(rule);
    }
  const groups = new Map<string | number, { ranges: Range[]; rules: readonly FlatRule[] }>();
  for (const [index, list] of lists.entries()) {
    const [only] = list;
    if (only === undefined) continue;
    const key = list.length === 1 ? only.index : list.map((rule) => rule.index).join();
    const next = starts[index + 1];
    const range = {
      first: BigInt(starts[index] ?? 0),
      last: next === undefined ? whole.last : BigInt(next) - 1n,
    };
    const group = groups.get(key);
    const before = group?.ranges.at(-1);
    if (group === undefined) groups.set(key, { ranges: [range], rules: list });
    else if (before !== undefined && before.last + 1n === range.first)
      group.ranges[group.ranges.length - 1] = { first: before.first, last: range.last };
    else group.ranges.push(range);
  }
  const found = [...groups.values()];
  return { field, groups: found, longest: Math.max(...found.map((group) => group.rules.length)) };
}

/** Cut where rules that leave the field open follow on rules that do not, and the other way round. */
function runsBy(field: Field, rules: readonly FlatRule[], whole: Range): FlatRule[][] {
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

/** `family` says how wide addresses are. */
export function plant(rules: readonly FlatRule[], family: 4 | 6): Chain {
  const whole = Object.fromEntries(fields.map((field) => [field, wholeOf(field, family)])) as Record<Field, Range>;

  function grow(list: readonly FlatRule[], left: readonly Field[]): Chain {
    // Nothing behind a rule that fits everything is ever met.
    const end = list.findIndex((rule) => left.every((field) => covers(rule[field], whole[field])));
    const met = end < 0 ? list : list.slice(0, end + 1);
    const tests = (): Chain => ({
      kind: "tests",
      tests: met.map((rule) => ({ rule, fields: left.filter((field) => !covers(rule[field], whole[field])) })),
    });
    if (met.length <= FEW) return tests();
    // Ports mean something only once the protocol is known, so it comes first.
    const candidates = left.includes("protocol") ? (["protocol"] as const) : left;
    let best: Split | null = null;
    for (const field of candidates) {
      const split = splitBy(field, met, whole[field]);
      if (split !== null && split.longest < (best?.longest ?? Number.POSITIVE_INFINITY)) best = split;
      if (best !== null && best.longest <= FEW) break;
    }
    if (best !== null && (best.field === "protocol" || best.longest <= met.length / 2)) {
      const { field: done } = best;
      const rest = left.filter((field) => field !== done);
      return {
        kind: "split",
        field: best.field,
        branches: best.groups.map(({ ranges, rules }) => ({ ranges, chain: grow(rules, rest) })),
      };
    }
    const runs = candidates.map((field) => runsBy(field, met, whole[field])).filter((runs) => runs.length > 1);
    const fewest = runs.sort((a, b) => a.length - b.length)[0];
    if (fewest === undefined || fewest.length > met.length / 4) return tests();
    return { kind: "runs", chains: fewest.map((run) => grow(run, left)) };
  }

  return grow(rules, fields);
}
