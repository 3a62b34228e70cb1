/** Prints long JSON with yields, so that the event loop can serve others in between. */

/** Elements of a list from which on printing it can take a turn of the event loop. */
const longList = 256;
/** Elements that are printed together: each alone would take twice the time. */
const printedAtOnce = 16;

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Returns whether a value contains a list whose text takes milliseconds. */
export const isLong = (value: unknown): boolean =>
  Array.isArray(value) ? value.length > longList : isRecord(value) && Object.values(value).some(isLong);

/** Returns the JSON of a value, as `JSON.stringify` does, with a yield after some elements of a long list. `known`: texts of objects inside. */
export function* printInTurns(
  value: unknown,
  known: ReadonlyMap<unknown, string> = new Map(),
): Generator<void, string | undefined> {
  const text = known.get(value);
  if (text !== undefined) return text;
  if (!isLong(value)) return JSON.stringify(value);
  const parts: string[] = [];
  if (isRecord(value)) {
    for (const [key, each] of Object.entries(value)) {
      const text = yield* printInTurns(each, known);
      if (text !== undefined) parts.push(`${JSON.stringify(key)}:${text}`);
    }
    return `{${parts.join(",")}}`;
  }
  const list = value as readonly unknown[];
  for (let from = 0; from < list.length; from += printedAtOnce) {
    parts.push(JSON.stringify(list.slice(from, from + printedAtOnce)).slice(1, -1));
    yield;
  }
  return `[${parts.join(",")}]`;
}
