/** The forms that a text of the sources may have: literal text and gaps for values. */
import type ts from "typescript";

/** A form: its text in parts, `null` for a value, and the expression that has it. */
export interface Form {
  readonly parts: readonly (string | null)[];
  readonly at: ts.Node;
}

/** Most combinations of parts that are all returned. */
const mostCombinations = 4;

/** Returns the form of a literal. */
export const literal = (text: string, at: ts.Node): Form[] => [{ parts: [text], at }];

/** Returns the form of a value. */
export const value = (at: ts.Node): Form[] => [{ parts: [null], at }];

/** Returns the text with `{}` for each value. */
export const keyOf = ({ parts }: Form): string => parts.map((part) => part ?? "{}").join("");

/** Removes repeated forms. */
export const distinct = (forms: readonly Form[]): Form[] => [
  ...new Map(forms.map((form) => [keyOf(form), form])).values(),
];

/** Returns the characters of a form; Infinity: it has none. */
const lengthOf = ({ parts }: Form): number => parts.join("").length || Infinity;

/**
 * Joins parts that have several forms each. Of many combinations, it returns each form beside the shortest forms of the other parts. A part
 * without a form makes the text impossible.
 */
export function joinForms(all: readonly (readonly Form[])[], at: ts.Node): Form[] {
  if (all.some((forms) => forms.length === 0)) return [];
  const join = (forms: readonly (Form | undefined)[]): Form => ({
    parts: forms.flatMap((form) => form?.parts ?? []),
    at,
  });
  if (all.reduce((product, forms) => product * forms.length, 1) <= mostCombinations)
    return all.reduce<Form[]>(
      (heads, forms) => heads.flatMap((head) => forms.map((form) => join([head, form]))),
      [{ parts: [], at }],
    );
  const shortest = all.map((forms) => forms.toSorted((a, b) => lengthOf(a) - lengthOf(b))[0]);
  return all.flatMap((forms, index) => forms.map((form) => join(shortest.with(index, form))));
}

/** Returns whether a form is a value: a word that clients compare, such as the name of a field, or text without words. */
function isValue(form: Form): boolean {
  const text = form.parts.map((part) => part ?? "").join("");
  return form.parts.includes(null) ? !/[A-Za-z\s]/.test(text) : /^(?:[A-Z0-9_][\w.:/-]*|[a-z]+[A-Z]\w*)$/.test(text);
}

/** Returns what is inserted into another text: phrases, and one gap for all values. */
export function insertForms(forms: readonly Form[], at: ts.Node): Form[] {
  const phrases = forms.filter((form) => !isValue(form));
  if (phrases.length === forms.length) return phrases;
  // An absent value is no phrase.
  return [...phrases.filter((form) => keyOf(form) !== ""), ...value(at)];
}

/** Removes blanks at the ends. */
export function trimForm(form: Form): Form {
  const { parts, at } = compactForm(form);
  const last = parts.length - 1;
  const trimmed = parts.map((part, index) => {
    const start = index === 0 ? part?.trimStart() : part;
    return (index === last ? start?.trimEnd() : start) ?? null;
  });
  return { parts: trimmed, at };
}

/** Joins adjacent texts, and removes empty ones. */
export function compactForm({ parts, at }: Form): Form {
  const joined: (string | null)[] = [];
  for (const part of parts) {
    const last = joined.at(-1);
    if (typeof part === "string" && typeof last === "string") joined[joined.length - 1] = last + part;
    else if (part !== "") joined.push(part);
  }
  return { parts: joined, at };
}
