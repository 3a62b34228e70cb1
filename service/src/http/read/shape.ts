/** Converts the different forms of lists and objects in requests to one form (docs/spec.md#reading-the-request-body, rule 6, #coercion). */
import { type FormNode, isFormNode, partsOf } from "./form.ts";
import { isJsonObject, isList, type JsonObject } from "./json.ts";

/** A JSON object or a form node. */
export type Source = JsonObject | FormNode;

/** Returns the value as an object; null if it is none. */
export function toSource(given: unknown): Source | null {
  if (isFormNode(given)) return given.values.length === 0 ? given : null;
  return isJsonObject(given) ? given : null;
}

/** Returns names and values of an object. */
export function entriesOf(source: Source): readonly (readonly [string, unknown])[] {
  return isFormNode(source) ? [...partsOf(source)] : Object.entries(source);
}

/** Returns true for an empty text, which counts as absent except in text fields (docs/spec.md#reading-the-request-body, rule 10). */
export function isBlank(given: unknown): boolean {
  if (isFormNode(given)) return partsOf(given).size === 0 && isBlank(given.values.at(-1) ?? "");
  return typeof given === "string" && given.trim() === "";
}

/**
 * Returns, with yields, a list of single values: a list, one value, or a text with commas; in a form also repeated or indexed names. With `strict` only
 * a list or names of a form. Returns null for any other value.
 */
export function* toItems(given: unknown, strict: boolean): Generator<void, readonly unknown[] | null> {
  if (isList(given)) return given;
  if (isFormNode(given)) {
    const indexed = byIndex(given);
    if (indexed === null) return null;
    if (strict) return [...given.values, ...indexed];
    const items: unknown[] = [];
    for (const value of given.values) yield* splitCommas(value, items);
    for (const part of indexed) items.push(part);
    return items;
  }
  if (strict) return null;
  if (typeof given === "string") return yield* splitCommas(given, []);
  return isJsonObject(given) ? null : [given];
}

/** Returns a list of objects: a list, or indexed names of a form. Returns null for any other value. */
export function toObjects(given: unknown): readonly unknown[] | null {
  if (isFormNode(given)) return given.values.length === 0 ? byIndex(given) : null;
  return isList(given) ? given : null;
}

/** Returns the parts in the order of their index; gaps are ignored. Returns null if a part has a name instead. */
function byIndex(node: FormNode): readonly FormNode[] | null {
  const entries = [...partsOf(node)];
  if (!entries.every(([index]) => /^\d{1,9}$/.test(index))) return null;
  return entries.sort(([a], [b]) => Number(a) - Number(b)).map(([, part]) => part);
}

/** Adds the parts of the text that are not blank, with a yield after each part. */
function* splitCommas(text: string, parts: unknown[]): Generator<void, readonly unknown[]> {
  for (let start = 0, end = 0; end < text.length; start = end + 1) {
    end = text.indexOf(",", start);
    if (end < 0) end = text.length;
    const part = text.slice(start, end);
    if (part.trim() !== "") parts.push(part);
    yield;
  }
  return parts;
}
