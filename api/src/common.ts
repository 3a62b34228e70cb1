/**
 * Words that every resource uses: ids, names, labels, dates, lists. Schemas are JSON Schema 2020-12; what reading needs
 * to know beyond it stands in `x-` keywords: `x-also` (other names of the field), `x-verbatim` (text that is kept as it came),
 * `x-word` (letter case is free, answers show this spelling), `x-labels` (a map of labels), `x-either` and `x-shown` (what may come
 * back as answers show it), `x-ignored` (nobody looks at the value), `x-words` (a filter's words).
 */
import { type Static, type TObject, type TSchema, type TSchemaOptions, Type } from "typebox";

export const maxId = 2_147_483_647;

interface FieldOptions extends TSchemaOptions {
  /** Other names under which the field is taken, after its own. */
  readonly "x-also"?: readonly string[];
  /** A number may come as text and a text as a number, in strict mode too, because answers show it so. */
  readonly "x-either"?: boolean;
  /** An id: 0 counts as absent (docs/spec.md#coercion). */
  readonly "x-id"?: boolean;
  /** Never said back in an error. */
  readonly "x-secret"?: boolean;
  /** A list drops elements that are not of its kind. */
  readonly "x-skip"?: boolean;
  /** The words that a filter knows, and whether a beginning with `*` will do. */
  readonly "x-words"?: readonly string[];
  readonly "x-prefix"?: boolean;
  /** Blanks at the ends and Unicode form are kept (docs/spec.md#reading-the-request-body, rule 12). */
  readonly "x-verbatim"?: boolean;
}

export const id = (options: FieldOptions = {}) => Type.Integer({ minimum: 1, maximum: maxId, ...options });
/** An id that may be left out, also by 0. */
export const optionalId = (options: FieldOptions = {}) => Type.Optional(id({ "x-id": true, ...options }));
export const integer = (minimum: number, maximum: number, options: FieldOptions = {}) =>
  Type.Integer({ minimum, maximum, ...options });
export const boolean = (options: FieldOptions = {}) => Type.Boolean({ ...options });
export const text = (options: FieldOptions & { minLength?: number; maxLength?: number; pattern?: string } = {}) =>
  Type.String(options);
/** RFC 3339 in UTC with milliseconds, `2026-11-20T09:15:00.120Z`. */
export const date = (options: FieldOptions = {}) => Type.String({ format: "date-time", ...options });
export const list = <T extends TSchema>(
  items: T,
  options: FieldOptions & { minItems?: number; maxItems?: number } = {},
) => Type.Array(items, options);
export const nullable = <T extends TSchema>(schema: T) => Type.Union([schema, Type.Null()]);
export const optional = Type.Optional;
/** Of a body, for clients that send it: known, and never looked at. */
export const ignored = (options: FieldOptions = {}) => Type.Unknown({ "x-ignored": true, ...options });

/** Option of an object in a body: keys that only `answer` has may stand in it, in strict mode too, so that what was read can be sent back. */
export const shownAs = (answer: TObject) => ({ "x-shown": Object.keys(answer.properties) });

/** One of a few words; requests may use any letter case. */
export const word = <const W extends string>(words: readonly W[], options: FieldOptions = {}) =>
  Type.Unsafe<W>({ type: "string", enum: [...words], "x-word": true, ...options });

/** `Name` and `Title`: 1-64 characters, no control characters, no angle brackets. */
export const name = (options: FieldOptions = {}) =>
  Type.String({
    minLength: 1,
    maxLength: 64,
    pattern: "^[^\\u0000-\\u001f\\u007f-\\u009f<>]*$",
    "x-says": "no control characters, no < and no >",
    ...options,
  });

export const maxLabels = 32;
/** Optional prefix and slash, then 1-63 characters with alphanumeric ends. */
export const labelKey = /^(?:[A-Za-z0-9.-]{1,253}\/)?[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$/;
export const labelValue = /^(?:[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?$/;

export const Labels = Type.Unsafe<Record<string, string>>({
  type: "object",
  maxProperties: maxLabels,
  propertyNames: { pattern: labelKey.source },
  additionalProperties: { type: "string", pattern: labelValue.source },
  "x-labels": true,
});
export type Labels = Static<typeof Labels>;

/** Query of a list: filters as text, paging beside them. */
export const listQuery = <T extends Record<string, TSchema>>(filters: T) =>
  Type.Object({ ...filters, limit: optional(integer(1, 1000)), cursor: optional(text()) });

export const nameFilter = optional(
  text({ description: "Whole name in any letter case; `*` is any run of characters." }),
);
/** One word or several with commas; with `x-prefix` also beginnings of words, `*` at the end. Any other word is refused. */
export const wordsFilter = (words: readonly string[], options: FieldOptions = {}) =>
  optional(
    text({ "x-words": words, description: `One word or several with commas: ${words.join(", ")}.`, ...options }),
  );
export const labelFilter = optional(
  text({
    description:
      "Label selector: `key`, `!key`, `key=value`, `key!=value`, `key in (a,b)`, `key notin (a,b)`, joined by commas.",
  }),
);

let lastMs = 0;
let lastText = new Date(0).toISOString();

/** Milliseconds since 1970 as answers show them. What happens together is shown together, so the last text is kept. */
export function formatDate(ms: number): string {
  if (ms !== lastMs) {
    lastText = new Date(ms).toISOString();
    lastMs = ms;
  }
  return lastText;
}
