/**
 * Decodes the bytes of a body to fields, before any schema is used (docs/spec.md#reading-the-request-body, rules 1-7). The content decides
 * between JSON and form, not the media type: existing clients send forms as JSON and JSON as forms.
 */
import { ApiError } from "../../base/error.ts";
import { runAtOnce } from "../../base/turn.ts";
import { type FormNode, parseFormInTurns } from "./form.ts";
import { isJsonObject, isList, type Json, type JsonObject, maxDepth, parseInTurns } from "./json.ts";
import { parseParts } from "./longjson.ts";
import { asciiLower, quote } from "./text.ts";

/** A decoded body. Names and values are unchanged; `readFields` interprets them. */
export type RawFields =
  | {
      readonly kind: "json";
      readonly fields: JsonObject;
      /** The text, if `JSON.parse` read it, which loses the order of two spellings of a name. */
      readonly text: string | null;
    }
  | { readonly kind: "form"; readonly fields: FormNode };

/** Headers that describe a body. */
export interface BodyHeaders {
  readonly contentType?: string | undefined;
  readonly contentEncoding?: string | undefined;
}

const utf8 = new TextDecoder("utf-8", { fatal: true });

/**
 * Matches input of which `JSON.parse` loses something: digits or exponents beyond a double, halves of surrogate pairs. A match too many,
 * such as a long number inside a text, costs only time.
 */
const needsCare = /\d{16}|\d[eE][+-]?\d{3}|\\u[dD]/;

/** Most characters of a match. */
const longestMatch = 16;

/** Characters from which on a text is parsed in parts. */
const longText = 65_536;

/** Decodes a body. Throws `media_type_not_supported`, `body_not_readable` or `body_not_object`. */
export const decodeBody = (bytes: Uint8Array, headers: BodyHeaders, strict: boolean): RawFields =>
  runAtOnce(decodeInTurns(bytes, headers, strict));

/** The same, with yields. */
export function* decodeInTurns(bytes: Uint8Array, headers: BodyHeaders, strict: boolean): Generator<void, RawFields> {
  if (headers.contentEncoding !== undefined) requireNoEncoding(headers.contentEncoding);
  const claimed = claimOf(headers.contentType ?? "");
  const text = decodeText(bytes);
  yield;
  const first = /\S/.exec(text)?.[0];
  if (first === undefined) return { kind: "json", fields: {}, text: null };
  const looksJson = first === "{" || first === "[";
  if (strict) {
    const isJson = claimed === "any" ? looksJson : claimed === "json";
    return isJson ? ofJson(yield* parseInTurns(text, false), null) : yield* ofForm(text, true);
  }
  if (!looksJson) return yield* ofForm(text, false);
  const isPlain = !(yield* needsCareInTurns(text));
  const isLong = text.length > longText;
  const plain = !isPlain
    ? undefined
    : isLong
      ? ((yield* parseParts(text)) as JsonObject | undefined)
      : parsePlain(text);
  yield;
  if (plain !== undefined && (yield* isShallowInTurns(plain, maxDepth))) return ofJson(plain, text);
  return ofJson(yield* parseInTurns(text, true), null);
}

/** Returns whether the text needs care, with a yield after each part. */
function* needsCareInTurns(text: string): Generator<void, boolean> {
  for (let start = 0; start < text.length; start += longText) {
    if (needsCare.test(text.slice(start, start + longText + longestMatch))) return true;
    yield;
  }
  return false;
}

/** The usual values of `Content-Type`, for a fast look-up. */
const usualClaims: ReadonlyMap<string, "json" | "form"> = new Map([
  ["application/json", "json"],
  ["application/json; charset=utf-8", "json"],
  ["application/x-www-form-urlencoded", "form"],
] as const);

/** Returns the kind of body that a media type (RFC 9110 section 8.3.1) claims. */
function claimOf(contentType: string): "json" | "form" | "any" {
  const usual = usualClaims.get(contentType);
  if (usual !== undefined) return usual;
  const type = asciiLower(contentType.split(";", 1)[0] ?? "").trim();
  if (type === "" || type === "text/plain") return "any";
  if (type === "application/json" || type === "text/json" || type.endsWith("+json")) return "json";
  if (type === "application/x-www-form-urlencoded") return "form";
  throw new ApiError(
    "media_type_not_supported",
    `The media type ${quote(type)} is not supported; send application/json.`,
  );
}

function requireNoEncoding(contentEncoding: string): void {
  const encoding = asciiLower(contentEncoding).trim();
  if (encoding !== "" && encoding !== "identity")
    throw new ApiError("media_type_not_supported", `The content encoding ${quote(encoding)} is not supported.`);
}

function decodeText(bytes: Uint8Array): string {
  try {
    return utf8.decode(bytes);
  } catch {
    throw new ApiError("body_not_readable", "The body is not UTF-8.");
  }
}

function* ofForm(text: string, strict: boolean): Generator<void, RawFields> {
  return { kind: "form", fields: yield* parseFormInTurns(text, strict) };
}

function ofJson(value: Json, text: string | null): RawFields {
  if (!isJsonObject(value))
    throw new ApiError("body_not_object", `The body is ${isList(value) ? "a list" : "a single value"}.`);
  return { kind: "json", fields: value, text };
}

/** Returns undefined if the text is relaxed or not JSON. */
function parsePlain(text: string): Json | undefined {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return undefined;
  }
}

/** Returns whether the value has at most so many levels, with a yield after each field of an object and each item of a list in it. */
function* isShallowInTurns(value: unknown, levels: number): Generator<void, boolean> {
  if (!isJsonObject(value)) return isShallow(value, levels);
  for (const key in value) {
    const field: unknown = value[key];
    if (!isList(field)) {
      if (!isShallow(field, levels - 1)) return false;
      yield;
      continue;
    }
    for (const item of field) {
      if (!isShallow(item, levels - 2)) return false;
      yield;
    }
  }
  return true;
}

function isShallow(value: unknown, levels: number): boolean {
  if (typeof value !== "object" || value === null) return true;
  if (levels === 0) return false;
  if (isList(value)) return value.every((item) => isShallow(item, levels - 1));
  for (const key in value) if (!isShallow((value as JsonObject)[key], levels - 1)) return false;
  return true;
}
