/**
 * Converts single values: the coercions (docs/spec.md#coercion) and the checks of a schema beyond its type. Each schema is compiled to one
 * function, because every field of every request is converted here.
 */
import type { Form } from "@brume/api/form.ts";
import { type FieldProblem, fieldProblem } from "../../base/error.ts";
import { normaliseDate } from "./date.ts";
import { toInteger, toPlain } from "./decimal.ts";
import { isWrittenNumber, textOf } from "./json.ts";
import { asciiLower, quote } from "./text.ts";

/** The used keywords of JSON Schema (2020-12), and those of Brume (`x-…`). */
export interface Schema {
  readonly type?: string;
  readonly anyOf?: readonly Schema[];
  readonly enum?: readonly unknown[];
  readonly format?: string;
  readonly pattern?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly multipleOf?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly maxProperties?: number;
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly propertyNames?: Schema;
  readonly additionalProperties?: Schema;
  readonly default?: unknown;
  readonly "x-also"?: readonly string[];
  readonly "x-either"?: boolean;
  readonly "x-id"?: boolean;
  readonly "x-ignored"?: boolean;
  /** Set by `compileObject` for required fields: an empty text is reported as missing, not as too short. */
  readonly "x-required"?: boolean;
  readonly "x-verbatim"?: boolean;
  /** Allowed words of a list with commas; with `x-prefix` also prefixes of them that end in `*`. */
  readonly "x-words"?: readonly string[];
  readonly "x-prefix"?: boolean;
  readonly "x-word"?: boolean;
  readonly "x-labels"?: boolean;
  readonly "x-secret"?: boolean;
  readonly "x-pattern-description"?: string;
  /** Keys of the object in responses: accepted in strict mode, and ignored. */
  readonly "x-shown"?: readonly string[];
  /** Forms of the object, and fields that need another field: checked in strict mode. */
  readonly "x-forms"?: readonly Form[];
  readonly "x-requires"?: Readonly<Record<string, string>>;
  /** Items of a list with a wrong type are dropped instead of reported. */
  readonly "x-skip"?: boolean;
}

/** How values are converted. */
export interface Mode {
  /** Values must have the exact type and form: no coercion. */
  readonly strict: boolean;
  /** The body is a form: all values are text, which is converted in strict mode too. */
  readonly form: boolean;
}

/** Converts a value, which is never null or undefined. Returns undefined if it counts as absent. */
export type Convert = (given: unknown, mode: Mode) => string | number | boolean | FieldProblem | undefined;

/** Returns the converter of a schema. Throws for a schema that is not supported. */
export function compileScalar(schema: Schema): Convert {
  if (schema.type === "integer") return compileInteger(schema);
  if (schema.type === "boolean") return readBoolean;
  if (schema.type === "string") {
    if (schema.enum) return compileWord(schema.enum.map(String), schema["x-word"] === true);
    if (schema.format === "date-time") return readDate;
    if (schema.format === undefined) return compileText(schema);
  }
  throw new Error(`The schema ${JSON.stringify(schema)} is not supported in requests.`);
}

function compileInteger(schema: Schema): Convert {
  const {
    minimum = -Number.MAX_SAFE_INTEGER,
    maximum = Number.MAX_SAFE_INTEGER,
    multipleOf: step,
    enum: allowed,
  } = schema;
  const range = `between ${minimum} and ${maximum}`;
  const outside = fieldProblem("out_of_range", `must be ${range}`);
  const uneven = fieldProblem("out_of_range", `must be a multiple of ${step}`);
  const unknown = fieldProblem("value_not_allowed", `must be one of ${allowed?.join(", ")}`);
  const mismatch = fieldProblem("type_mismatch", allowed === undefined ? `must be an integer ${range}` : unknown.must);
  const zeroIsAbsent = schema["x-id"] === true && minimum > 0;
  const either = schema["x-either"] === true;
  return (given, mode) => {
    let value: number | null;
    if (typeof given === "number") value = Number.isInteger(given) || !Number.isFinite(given) ? given : null;
    else if (isWrittenNumber(given))
      value = strictly(mode) && !/^-?\d+$/.test(textOf(given)) ? null : toInteger(textOf(given));
    else if (typeof given !== "string" || (strictly(mode) && !either)) return mismatch;
    else {
      const text = mode.strict ? given : given.trim();
      if (text === "" && !mode.strict) return undefined;
      const digits = mode.strict ? /^-?(?:0|[1-9]\d*)$/ : /^[+-]?\d+$/;
      value = digits.test(text) ? Number(text) : null;
    }
    if (value === null) return mismatch;
    if (value === 0 && zeroIsAbsent && !mode.strict) return undefined;
    if (allowed !== undefined && !allowed.includes(value)) return unknown;
    if (value < minimum || value > maximum) return outside;
    if (step !== undefined && value % step !== 0) return uneven;
    return value === 0 ? 0 : value; // never -0
  };
}

/** Returns true if a text is not converted to another type: in strict mode, unless the body is a form, which has only text. */
function strictly(mode: Mode): boolean {
  return mode.strict && !mode.form;
}

const switches = new Map(
  Object.entries({ true: true, false: false, yes: true, no: false, on: true, off: false, "1": true, "0": false }),
);
const notBoolean = fieldProblem("type_mismatch", "must be true or false");

function readBoolean(given: unknown, mode: Mode): ReturnType<Convert> {
  if (typeof given === "boolean") return given;
  if (mode.strict) return mode.form && (given === "true" || given === "false") ? given === "true" : notBoolean;
  if (typeof given === "string") {
    const text = given.trim();
    return text === "" ? undefined : (switches.get(asciiLower(text)) ?? notBoolean);
  }
  const value = isWrittenNumber(given) ? toInteger(textOf(given)) : given;
  return value === 1 ? true : value === 0 ? false : notBoolean;
}

/** Returns numbers and booleans in their JSON form; null for a value that is not single. */
function toText(given: unknown): string | null {
  if (typeof given === "string") return given;
  if (typeof given === "boolean") return String(given);
  if (typeof given === "number")
    return Number.isSafeInteger(given) ? String(given) : Number.isFinite(given) ? toPlain(String(given)) : null;
  return isWrittenNumber(given) ? toPlain(textOf(given)) : null;
}

function compileWord(words: readonly string[], anyCase: boolean): Convert {
  const spellings = new Map(words.map((word) => [anyCase ? asciiLower(word) : word, word]));
  const exact = new Set(words);
  const unknown = fieldProblem(
    "value_not_allowed",
    `must be ${words.length === 1 ? words[0] : `one of ${words.join(", ")}`}`,
  );
  const mismatch = fieldProblem("type_mismatch", unknown.must);
  return (given, mode) => {
    // Responses show an absent value as empty text.
    if (mode.strict && given === "") return undefined;
    if (mode.strict) return typeof given !== "string" ? mismatch : exact.has(given) ? given : unknown;
    if (typeof given === "string" && exact.has(given)) return given;
    const text = toText(given)?.trim();
    if (text === undefined) return mismatch;
    return text === "" ? undefined : (spellings.get(anyCase ? asciiLower(text) : text) ?? unknown);
  };
}

const notDate = fieldProblem("type_mismatch", "must be a date such as 2026-11-20T09:15:00Z");

function readDate(given: unknown, mode: Mode): ReturnType<Convert> {
  if (typeof given !== "string") return notDate;
  const text = mode.strict ? given : given.trim();
  if (text === "" && !mode.strict) return undefined;
  if (mode.strict && !/(?:[Zz]|[+-]\d\d:\d\d)$/.test(text)) return notDate;
  return normaliseDate(text) ?? notDate;
}

const notText = fieldProblem("type_mismatch", "must be text");
const withNul = fieldProblem("format_invalid", "must be text with no character U+0000");
const untrimmed = fieldProblem("format_invalid", "must be text without blanks at its ends");
const overloaded = fieldProblem("format_invalid", "must be text with at most 30 combining marks in a row");

function compileText(schema: Schema): Convert {
  const { minLength = 0, maxLength = Number.POSITIVE_INFINITY } = schema;
  const verbatim = schema["x-verbatim"] === true;
  const either = schema["x-either"] === true;
  const pattern = schema.pattern === undefined ? null : new RegExp(schema.pattern, "u");
  const words = schema["x-words"] && compileWords(schema["x-words"], schema["x-prefix"] === true);
  const short = fieldProblem("too_short", `must be at least ${count(minLength, "character")} long`);
  const long = fieldProblem("too_long", `must be at most ${count(maxLength, "character")} long`);
  const odd = fieldProblem(
    "format_invalid",
    schema["x-pattern-description"]
      ? `must be text with ${schema["x-pattern-description"]}`
      : `must match ${pattern?.source}`,
  );
  return (given, mode) => {
    const fits = !mode.strict || typeof given === "string" || (either && Number.isSafeInteger(given));
    let text = fits ? toText(given) : null;
    if (text === null) return notText;
    // PostgreSQL cannot store it.
    if (text.includes("\0")) return withNul;
    // In strict mode the limits apply to the text as sent, so that a schema can describe them.
    const sent = mode.strict ? text : null;
    if (!verbatim) {
      if (sent !== null && sent !== sent.trim()) return untrimmed;
      const normal = normalise(text);
      if (normal === null) return overloaded;
      text = normal;
    }
    if (text === "" && schema["x-required"] === true) return text;
    for (const one of sent === null || sent === text ? [text] : [sent, text])
      if (one.length > maxLength && countCharacters(one) > maxLength) return withLength(long, one);
    if (text.length < 2 * minLength && countCharacters(text) < minLength) return withLength(short, text);
    if (pattern !== null && !(pattern.test(text) && (sent === null || pattern.test(sent)))) return odd;
    return words?.(text, mode.strict) ?? text;
  };
}

/** Returns the check of a text with commas. It returns the problem of the first unknown word; undefined: all words are allowed. */
function compileWords(
  words: readonly string[],
  prefixes: boolean,
): (text: string, strict: boolean) => FieldProblem | undefined {
  const must = `must be one or several of ${words.join(", ")}${prefixes ? ", or beginnings of them with * at the end" : ""}`;
  return (text, strict) => {
    const fold = (word: string): string => (strict ? word : asciiLower(word));
    for (const part of text.split(",")) {
      const word = fold(part.trim());
      const isMatch = (known: string): boolean =>
        fold(known) === word || (prefixes && word.endsWith("*") && fold(known).startsWith(word.slice(0, -1)));
      if (word !== "" && !words.some(isMatch))
        return { ...fieldProblem("value_not_allowed", must), came: quote(part.trim()) };
    }
    return undefined;
  };
}

function withLength(problem: FieldProblem, text: string): FieldProblem {
  return { ...problem, came: String(countCharacters(text)) };
}

/** Returns a number with its noun: `1 character`, `64 characters`. */
export function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? "" : "s"}`;
}

/**
 * Returns the text in NFC, without blanks at its ends. Returns null for a run of more than 30 combining marks, which no language needs
 * (UAX #15 section 13, "stream-safe"): the time of NFC grows with the square of its length.
 */
function normalise(text: string): string | null {
  const trimmed = text.trim();
  if (!/[\x80-\uffff]/.test(trimmed)) return trimmed;
  return /\p{M}{31}/u.test(trimmed) ? null : trimmed.normalize("NFC");
}

/** Returns the number of Unicode characters, not of UTF-16 units. */
function countCharacters(text: string): number {
  let characters = 0;
  for (const _ of text) characters++;
  return characters;
}
