/**
 * Single values: the table of coercions (docs/spec.md#coercion) and what a schema says beyond the type. Each schema becomes one function
 * when the program starts, because every field of every request passes through here.
 */
import { type FieldProblem, fieldProblem } from "../../base/fieldproblem.ts";
import { normaliseDate } from "./date.ts";
import { toInteger, toPlain } from "./decimal.ts";
import { isWrittenNumber, textOf } from "./json.ts";
import { asciiLower, quote } from "./text.ts";

/** What reading needs to know of a JSON Schema (2020-12) with the house's own keywords. */
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
  readonly propertyNames?: { readonly pattern?: string };
  readonly additionalProperties?: Schema;
  readonly default?: unknown;
  readonly "x-also"?: readonly string[];
  readonly "x-either"?: boolean;
  readonly "x-id"?: boolean;
  readonly "x-ignored"?: boolean;
  /** Set while reading: the empty text is no text, and missing rather than too short. */
  readonly "x-required"?: boolean;
  readonly "x-verbatim"?: boolean;
  /** Words that a list with commas may have; `x-prefix`: also their beginnings, with `*`. */
  readonly "x-words"?: readonly string[];
  readonly "x-prefix"?: boolean;
  readonly "x-word"?: boolean;
  readonly "x-labels"?: boolean;
  readonly "x-secret"?: boolean;
  readonly "x-says"?: string;
  /** Keys that the object has in answers: known in strict mode, and ignored. */
  readonly "x-shown"?: readonly string[];
  /** Items of a list that are not of the wanted type are left out instead of refused. */
  readonly "x-skip"?: boolean;
}

export interface Mode {
  /** As written: nothing is made to fit. */
  readonly strict: boolean;
  /** In a form everything is text, so text that spells a value is that value, in strict mode too. */
  readonly form: boolean;
}

/** Undefined: the value counts as absent. What is given is never null and never undefined. */
export type Convert = (given: unknown, mode: Mode) => string | number | boolean | FieldProblem | undefined;

export function compileScalar(schema: Schema): Convert {
  if (schema.type === "integer") return compileInteger(schema);
  if (schema.type === "boolean") return readBoolean;
  if (schema.type === "string") {
    if (schema.enum) return compileWord(schema.enum.map(String), schema["x-word"] === true);
    if (schema.format === "date-time") return readDate;
    if (schema.format === undefined) return compileText(schema);
  }
  throw new Error(`Reading knows no schema such as ${JSON.stringify(schema)}`);
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
    return value === 0 ? 0 : value; // -0 is no number a client could mean
  };
}

/** JSON has types of its own, so strict mode lets no text stand for anything else. */
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

/** Numbers and booleans as JSON would write them; null for what is no single value. */
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
    // The empty text is how answers show that there is none.
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
    schema["x-says"] ? `must be text with ${schema["x-says"]}` : `must match ${pattern?.source}`,
  );
  return (given, mode) => {
    const fits = !mode.strict || typeof given === "string" || (either && Number.isSafeInteger(given));
    let text = fits ? toText(given) : null;
    if (text === null) return notText;
    // PostgreSQL cannot store it, and nobody needs it.
    if (text.includes("\0")) return withNul;
    if (!verbatim) {
      const normal = normalise(text);
      if (normal === null) return overloaded;
      text = normal;
    }
    if (text === "" && schema["x-required"] === true) return text;
    if (text.length > maxLength && countCharacters(text) > maxLength) return counted(long, text);
    if (text.length < 2 * minLength && countCharacters(text) < minLength) return counted(short, text);
    if (pattern !== null && !pattern.test(text)) return odd;
    return words?.(text, mode.strict) ?? text;
  };
}

/** The refusal of a text with commas that has a word which is none of these; undefined: it has none. */
function compileWords(
  words: readonly string[],
  prefixes: boolean,
): (text: string, strict: boolean) => FieldProblem | undefined {
  const must = `must be one or several of ${words.join(", ")}${prefixes ? ", or beginnings of them with * at the end" : ""}`;
  return (text, strict) => {
    const fold = (word: string): string => (strict ? word : asciiLower(word));
    for (const part of text.split(",")) {
      const word = fold(part.trim());
      const isMeant = (known: string): boolean =>
        fold(known) === word || (prefixes && word.endsWith("*") && fold(known).startsWith(word.slice(0, -1)));
      if (word !== "" && !words.some(isMeant))
        return { ...fieldProblem("value_not_allowed", must), came: quote(part.trim()) };
    }
    return undefined;
  };
}

function counted(refusal: FieldProblem, text: string): FieldProblem {
  return { ...refusal, came: String(countCharacters(text)) };
}

/** `1 character`, `64 characters`. */
export function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? "" : "s"}`;
}

/**
 * Without blanks at the ends, in form NFC. Null for long runs of combining marks (UAX #15 section 13, "stream-safe": no language
 * needs more than 30), for whose sorting the run time of NFC grows with the square of their number.
 */
function normalise(text: string): string | null {
  const trimmed = text.trim();
  if (!/[\x80-\uffff]/.test(trimmed)) return trimmed;
  return /\p{M}{31}/u.test(trimmed) ? null : trimmed.normalize("NFC");
}

/** Unicode characters, not UTF-16 units. */
function countCharacters(text: string): number {
  let units = 0;
  for (const _ of text) units++;
  return units;
}
