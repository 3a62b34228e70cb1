/**
 * The many ways in which requests write a list or an object, each seen as what it means (docs/spec.md#reading-the-request-body,
 * rule 6, and docs/spec.md#coercion).
 */
import { type FormNode, isFormNode, partsOf } from "./form.ts";
import { isJsonObject, isList, type JsonObject } from "./json.ts";

/** What has fields. */
export type Source = JsonObject | FormNode;

/** Null for what has no fields. */
export function toSource(given: unknown): Source | null {
  if (isFormNode(given)) return given.values.length === 0 ? given : null;
  return isJsonObject(given) ? given : null;
}

export function entriesOf(source: Source): readonly (readonly [string, unknown])[] {
  return isFormNode(source) ? [...partsOf(source)] : Object.entries(source);
}

/** Empty text, which is absent for everything but text (docs/spec.md#reading-the-request-body, rule 10). */
export function isBlank(given: unknown): boolean {
  if (isFormNode(given)) return partsOf(given).size === 0 && isBlank(given.values.at(-1) ?? "");
  return typeof given === "string" && given.trim() === "";
}

/**
 * A list of single values: as such, one alone, or text with commas; in a form also by repeated or indexed name. Only lists and
 * names of forms if `strict`. Null for what is no list.
 */
export function toItems(given: unknown, strict: boolean): readonly unknown[] | null {
  if (isList(given)) return given;
  if (isFormNode(given)) {
    const indexed = byIndex(given);
    if (indexed === null) return null;
    return [...(strict ? given.values : given.values.flatMap(splitCommas)), ...indexed];
  }
  if (strict) return null;
  if (typeof given === "string") return splitCommas(given);
  return isJsonObject(given) ? null : [given];
}

/** A list of objects: as such, or in a form by indexed name. Null for what is none. */
export function toObjects(given: unknown): readonly unknown[] | null {
  if (isFormNode(given)) return given.values.length === 0 ? byIndex(given) : null;
  return isList(given) ? given : null;
}

/** Parts in order of their index; gaps close up. Null if one of them has a name instead. */
function byIndex(node: FormNode): readonly FormNode[] | null {
  const entries = [...partsOf(node)];
  if (!entries.every(([index]) => /^\d{1,9}$/.test(index))) return null;
  return entries.sort(([a], [b]) => Number(a) - Number(b)).map(([, part]) => part);
}

function splitCommas(text: string): string[] {
  return text.split(",").filter((part) => part.trim() !== "");
}
