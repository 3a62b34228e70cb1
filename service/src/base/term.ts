/**
 * Terms, by which an index finds the objects that the filters `name` and `label` of a list select (docs/spec.md#lists). An object has one
 * term for its name and one for each label.
 */

/** A text in the form in which names are compared: to upper case, because lower case has a second sigma at the end of a word. */
export const fold = (text: string): string => text.normalize("NFC").toUpperCase();

/** What objects must have: a term, or one that begins with `prefix`. */
export type TermCondition = { readonly term: string } | { readonly prefix: string };

/** Returns the term of a name, or the prefix of the terms of all names that begin so. */
export const nameTerm = (name: string): string => `n${fold(name)}`;

/** Returns the term of a label. A key contains no `=`. */
export const labelTerm = (key: string, value: string): string => `l${key}=${value}`;

/** Returns the terms of an object. `labels` is the JSON of its row. */
export const termsOf = ({ name, labels }: { readonly name: string; readonly labels: string }): string[] => [
  nameTerm(name),
  ...Object.entries(JSON.parse(labels) as Record<string, string>).map(([key, value]) => labelTerm(key, value)),
];

const lastPoint = 0x10ffff;
const surrogates = { first: 0xd800, after: 0xe000 };

/** Returns the first text, in the order of code points, after all that begin with `prefix`, which is not empty. */
export function endOfPrefix(prefix: string): string {
  const points = Array.from(prefix, (character) => character.codePointAt(0) ?? 0);
  while (points.at(-1) === lastPoint) points.pop();
  const next = (points.pop() ?? 0) + 1;
  return String.fromCodePoint(...points, next === surrogates.first ? surrogates.after : next);
}
