/**
 * Filters of lists that SQL cannot express (docs/spec.md#lists): label selectors, names with `*`, words separated by commas. The input is
 * hostile, so each takes time linear in the length of the text.
 */
import { labelKey, labelValue } from "@brume/api/common.ts";
import { errorAt } from "../../base/error.ts";
import { fold, labelTerm, nameTerm, type TermCondition } from "../../base/term.ts";
import { quote } from "./text.ts";

/** One condition on one label. `=` is `in` with one value, `!=` is `notin` with one. */
export type Requirement =
  | { readonly key: string; readonly op: "present" | "absent" }
  | { readonly key: string; readonly op: "in" | "notin"; readonly values: readonly string[] };

/**
 * Parses a label selector. Blanks around words and operators are ignored. Throws `query_invalid`.
 * selector = req *("," req); req = key / "!" key / key ("=" / "==" / "!=") value / key ("in" / "notin") "(" value *("," value) ")".
 */
export function parseSelector(text: string): Requirement[] {
  let at = 0;

  function fail(wanted: string): never {
    const found = at < text.length ? quote(text.slice(at)) : "nothing";
    throw errorAt("query_invalid", "?label", `label must have ${wanted} at character ${at + 1}, not ${found}.`);
  }

  function match(pattern: RegExp): string {
    pattern.lastIndex = at;
    const found = pattern.exec(text)?.[0] ?? "";
    at += found.length;
    return found;
  }

  function take(mark: string): boolean {
    match(blanks);
    if (!text.startsWith(mark, at)) return false;
    at += mark.length;
    return true;
  }

  function readWord(pattern: RegExp, wanted: string): string {
    match(blanks);
    const start = at;
    const word = match(word63);
    if (pattern.test(word)) return word;
    at = start;
    return fail(wanted);
  }

  const readKey = (): string => readWord(labelKey, "a key");
  const readValue = (): string => readWord(labelValue, "a value");

  function readRequirement(): Requirement {
    if (take("!")) return { key: readKey(), op: "absent" };
    const key = readKey();
    if (take("!=")) return { key, op: "notin", values: [readValue()] };
    if (take("==") || take("=")) return { key, op: "in", values: [readValue()] };
    const op = match(operator);
    if (op !== "in" && op !== "notin") return { key, op: "present" };
    if (!take("(")) return fail('"("');
    const values: string[] = [];
    do values.push(readValue());
    while (take(","));
    return take(")") ? { key, op, values } : fail('"," or ")"');
  }

  const requirements: Requirement[] = [];
  do requirements.push(readRequirement());
  while (take(","));
  return at === text.length ? requirements : fail('","');
}

const blanks = /[ \t]*/y;
const word63 = /[A-Za-z0-9._/-]*/y;
const operator = /(?:in|notin)(?![A-Za-z0-9._/-])/y;

/** Returns true if the labels meet all requirements. `!=` and `notin` are also met if the key is absent. */
export function matches(requirements: readonly Requirement[], labels: Readonly<Record<string, string>>): boolean {
  return requirements.every((requirement) => {
    const value = Object.hasOwn(labels, requirement.key) ? labels[requirement.key] : undefined;
    if (!("values" in requirement)) return (value !== undefined) === (requirement.op === "present");
    return (value !== undefined && requirement.values.includes(value)) === (requirement.op === "in");
  });
}

/** Returns a test for complete names in any letter case; `*` matches any characters. */
export function nameMatcher(pattern: string): (name: string) => boolean {
  const [head = "", ...rest] = fold(pattern).split("*");
  const tail = rest.pop();
  if (tail === undefined) return (name) => fold(name) === head;
  return (name) => {
    const text = fold(name);
    if (text.length < head.length + tail.length || !text.startsWith(head) || !text.endsWith(tail)) return false;
    // The leftmost match of each part is always best, so no backtracking is needed.
    let at = head.length;
    for (const part of rest) {
      const found = text.indexOf(part, at);
      if (found < 0) return false;
      at = found + part.length;
    }
    return at <= text.length - tail.length;
  };
}

/** Returns a test for one of several words, which are separated by commas, in any letter case. */
export function stateMatcher(words: string): (state: string) => boolean {
  const wanted = new Set(words.split(",").map((word) => fold(word.trim())));
  return (state) => wanted.has(fold(state));
}

/** Filters whose matches an index finds. */
interface TermFilters {
  readonly name?: string | undefined;
  readonly label?: string | undefined;
}

/**
 * Returns conditions of which every object that the filters select meets one; others may meet them too. Null: the filters have no part
 * that an index can use, such as `*` at the beginning. Throws `query_invalid` for a malformed selector.
 */
export function conditionsOf({ name, label }: TermFilters): readonly TermCondition[] | null {
  const requirements = label === undefined ? [] : parseSelector(label);
  const [head = "", ...rest] = name === undefined ? ["", ""] : name.split("*");
  if (rest.length === 0) return [{ term: nameTerm(head) }];
  for (const requirement of requirements)
    if (requirement.op === "in")
      return requirement.values.map((value) => ({ term: labelTerm(requirement.key, value) }));
  if (fold(head) !== "") return [{ prefix: nameTerm(head) }];
  const present = requirements.find(({ op }) => op === "present");
  return present === undefined ? null : [{ prefix: labelTerm(present.key, "") }];
}
