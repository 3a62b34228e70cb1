/**
 * A JSON reader that forgets nothing: which keys came twice, in which order they came last, how a number was written. It is for
 * bodies where that matters (strict mode, odd numbers, escapes that could be half a character) and for relaxed JSON; plain bodies
 * go through `JSON.parse`, which is faster.
 */
import { ApiError } from "../../base/error.ts";

const written = Symbol("written");

/** A number that a double would not give back as it was written: `10.0`, `1e3`, `12345678901234567890`. */
export interface WrittenNumber {
  readonly [written]: string;
}

export type Json = null | boolean | number | string | WrittenNumber | readonly Json[] | JsonObject;
export interface JsonObject {
  readonly [key: string]: Json;
}

export const maxDepth = 32;

export function isWrittenNumber(value: unknown): value is WrittenNumber {
  return typeof value === "object" && value !== null && written in value;
}

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !isWrittenNumber(value);
}

export function isList(value: unknown): value is readonly unknown[] {
  return Array.isArray(value);
}

export function textOf(number: WrittenNumber): string {
  return number[written];
}

const repeated = new WeakMap<object, Set<string>>();

/** Keys that came more than once in an object that `parseJson` made. */
export function repeatedKeys(object: object): ReadonlySet<string> {
  return repeated.get(object) ?? none;
}
const none: ReadonlySet<string> = new Set();

const number = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const escapes: Readonly<Record<string, string>> = {
  '"': '"',
  "\\": "\\",
  "/": "/",
  b: "\b",
  f: "\f",
  n: "\n",
  r: "\r",
  t: "\t",
};
const plainWords = new Map<string, Json>([
  ["true", true],
  ["false", false],
  ["null", null],
]);
const relaxedWords = new Map<string, Json>([...plainWords, ["True", true], ["False", false], ["None", null]]);

/**
 * RFC 8259, nested at most 32 deep, strings made of whole characters. Relaxed, it also takes strings in single quotes and the
 * words `True`, `False`, `None` (what Python prints). Objects have no prototype; of equal keys the last counts, in its place.
 * Throws `body_not_readable`.
 */
export function parseJson(text: string, relaxed: boolean): Json {
  const words = relaxed ? relaxedWords : plainWords;
  let at = 0;

  function fail(what: string): never {
    throw new ApiError("body_not_readable", `The body is not JSON: ${what} at character ${at + 1}.`);
  }

  function skipBlanks(): void {
    for (;;) {
      const code = text.charCodeAt(at);
      if (code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09) return;
      at++;
    }
  }

  /** Goes on behind `mark` if it stands here. */
  function take(mark: string): boolean {
    skipBlanks();
    if (text[at] !== mark) return false;
    at++;
    return true;
  }

  function readString(): string {
    const end = text[at++];
    let parts = "";
    let start = at;
    let escaped = false;
    for (; ; at++) {
      const code = text.charCodeAt(at);
      if (Number.isNaN(code)) fail("a string without end");
      if (code < 0x20) fail("a control character in a string");
      if (text[at] === end) break;
      if (code !== 0x5c) continue;
      parts += text.slice(start, at) + readEscape(end === "'");
      start = at + 1;
      escaped = true;
    }
    const value = parts + text.slice(start, at);
    if (escaped && !value.isWellFormed()) fail("half a surrogate pair in the string that ends");
    at++;
    return value;
  }

  /** From the backslash to the last character of the escape. */
  function readEscape(single: boolean): string {
    const kind = text[++at] ?? "";
    if (single && kind === "'") return "'";
    if (kind === "u") {
      const digits = text.slice(at + 1, at + 5);
      if (!/^[0-9A-Fa-f]{4}$/.test(digits)) fail("an escape without four hexadecimal digits");
      at += 4;
      return String.fromCharCode(Number.parseInt(digits, 16));
    }
    return escapes[kind] ?? fail("an unknown escape");
  }

  function isString(): boolean {
    return text[at] === '"' || (relaxed && text[at] === "'");
  }

  function readObject(depth: number): JsonObject {
    const object = Object.create(null) as Record<string, Json>;
    if (take("}")) return object;
    do {
      skipBlanks();
      if (!isString()) fail("no name of a field");
      const key = readString();
      if (!take(":")) fail("no colon");
      if (key in object) {
        let twice = repeated.get(object);
        if (twice === undefined) repeated.set(object, (twice = new Set()));
        twice.add(key);
        delete object[key];
      }
      object[key] = readValue(depth);
    } while (take(","));
    if (!take("}")) fail("no comma or closing brace");
    return object;
  }

  function readList(depth: number): Json[] {
    const items: Json[] = [];
    if (take("]")) return items;
    do items.push(readValue(depth));
    while (take(","));
    if (!take("]")) fail("no comma or closing bracket");
    return items;
  }

  function readValue(depth: number): Json {
    skipBlanks();
    const first = text[at];
    if (first === "{" || first === "[") {
      if (depth === maxDepth) fail(`more than ${maxDepth} levels`);
      at++;
      return first === "{" ? readObject(depth + 1) : readList(depth + 1);
    }
    if (isString()) return readString();
    number.lastIndex = at;
    const digits = number.exec(text)?.[0];
    if (digits !== undefined) {
      at += digits.length;
      const value = Number(digits);
      return String(value) === digits ? value : { [written]: digits };
    }
    for (const [word, value] of words) {
      if (!text.startsWith(word, at)) continue;
      at += word.length;
      return value;
    }
    return fail("no value");
  }

  const value = readValue(0);
  skipBlanks();
  if (at < text.length) fail("something after the end");
  return value;
}
