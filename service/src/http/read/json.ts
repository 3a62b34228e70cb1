/**
 * A JSON parser that keeps repeated keys, the order of the last occurrences, and the text of numbers. It is used for strict mode, relaxed
 * JSON, and bodies of which `JSON.parse` would lose something (see `decodeBody`); all others use `JSON.parse`, which is faster.
 */
import { ApiError } from "../../base/error.ts";
import { runAtOnce } from "../../base/turn.ts";

const written = Symbol("written");

/** A number whose text differs from that of its double: `10.0`, `1e3`, `12345678901234567890`. */
export interface WrittenNumber {
  readonly [written]: string;
}

/** A JSON value. */
export type Json = null | boolean | number | string | WrittenNumber | readonly Json[] | JsonObject;
export interface JsonObject {
  readonly [key: string]: Json;
}

/** Maximum number of nested lists and objects. */
export const maxDepth = 32;
/** Maximum number of fields of one object: an engine lists the keys of an object at once. */
export const maxFields = 100_000;

/** Returns true for a number that is kept as text. */
export function isWrittenNumber(value: unknown): value is WrittenNumber {
  return typeof value === "object" && value !== null && written in value;
}

/** Returns true for a JSON object. */
export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !isWrittenNumber(value);
}

/** Returns true for a list. */
export function isList(value: unknown): value is readonly unknown[] {
  return Array.isArray(value);
}

/** Returns the text of a number. */
export function textOf(number: WrittenNumber): string {
  return number[written];
}

const repeated = new WeakMap<object, Set<string>>();

/** Returns the keys that occurred more than once in an object of `parseJson`. */
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
 * Parses JSON (RFC 8259), nested at most 32 deep, whose strings contain no half surrogate pairs. With `relaxed` it also accepts strings in
 * single quotes and the words `True`, `False`, `None` (the output of Python). Objects have no prototype; the last of equal keys counts, at
 * its position. Throws `body_not_readable`.
 */
export const parseJson = (text: string, relaxed: boolean): Json => runAtOnce(parseInTurns(text, relaxed));

/** The same, with a yield after each element of a list and each field of an object. */
export function* parseInTurns(text: string, relaxed: boolean): Generator<void, Json> {
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

  /** Skips `mark` if it is next. Returns false if it is not. */
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

  function* readObject(depth: number): Generator<void, JsonObject> {
    const object = Object.create(null) as Record<string, Json>;
    if (take("}")) return object;
    let fields = 0;
    do {
      if (++fields > maxFields) fail(`an object with more than ${maxFields} fields`);
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
      const opened = open(depth);
      object[key] = opened === null ? readSingle() : yield* opened;
      yield;
    } while (take(","));
    if (!take("}")) fail("no comma or closing brace");
    return object;
  }

  function* readList(depth: number): Generator<void, Json[]> {
    const items: Json[] = [];
    if (take("]")) return items;
    do {
      const opened = open(depth);
      items.push(opened === null ? readSingle() : yield* opened);
      yield;
    } while (take(","));
    if (!take("]")) fail("no comma or closing bracket");
    return items;
  }

  /** Starts to read an object or a list; null: neither of them is next. */
  function open(depth: number): Generator<void, Json> | null {
    skipBlanks();
    const first = text[at];
    if (first !== "{" && first !== "[") return null;
    if (depth === maxDepth) fail(`more than ${maxDepth} levels`);
    at++;
    return first === "{" ? readObject(depth + 1) : readList(depth + 1);
  }

  function readSingle(): Json {
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

  const opened = open(0);
  const value = opened === null ? readSingle() : yield* opened;
  skipBlanks();
  if (at < text.length) fail("something after the end");
  return value;
}
