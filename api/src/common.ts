/**
 * Schemas that all resources share: ids, names, labels, dates, lists. They are JSON Schema 2020-12 with `x-` keywords for the request
 * reader: `x-also` (other names of the field), `x-verbatim` (text is stored unchanged), `x-word` (letter case is ignored, responses use
 * this spelling), `x-labels` (a map of labels), `x-either` and `x-shown` (a field may be sent as responses show it), `x-ignored` (the
 * value is ignored), `x-words` (values of a filter), `x-forms` and `x-requires` (rules across fields, `form.ts`). Every field of the
 * contract has a description: `object` and `fields` require it.
 */
import {
  type Static,
  type TArray,
  type TBoolean,
  type TInteger,
  type TNull,
  type TObject,
  type TOptional,
  type TSchema,
  type TSchemaOptions,
  type TString,
  type TUnion,
  type TUnknown,
  type TUnsafe,
  Type,
} from "typebox";

/** Largest id of an object. */
export const maxId = 2_147_483_647;

interface FieldOptions extends TSchemaOptions {
  /** Other accepted names of the field. */
  readonly "x-also"?: readonly string[];
  /** Accepts a number as text and a text as a number, in strict mode too, because responses contain both forms. */
  readonly "x-either"?: boolean;
  /** The field is an id: 0 counts as absent (docs/spec.md#coercion). */
  readonly "x-id"?: boolean;
  /** The value never appears in an error message. */
  readonly "x-secret"?: boolean;
  /** Invalid elements of the list are dropped. */
  readonly "x-skip"?: boolean;
  /** Values of a filter; `x-prefix`: a prefix followed by `*` is accepted too. */
  readonly "x-words"?: readonly string[];
  readonly "x-prefix"?: boolean;
  /** Leading and trailing blanks and the Unicode form are kept (docs/spec.md#reading-the-request-body, rule 12). */
  readonly "x-verbatim"?: boolean;
}

/** A schema with a description. */
export interface Described {
  readonly description: string;
}
/** A schema that is described if its options are. */
type Field<T extends TSchema, Options> = Options extends Described ? T & Described : T;
/** Returns a schema with an exact type, which the compiler cannot derive. */
// oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- the caller names the type
const typed = <T>(schema: unknown): T => schema as T;

/** Schema of an object id: 1 to `maxId`. */
export const id = <const O extends FieldOptions = FieldOptions>(options?: O) =>
  typed<Field<TInteger, O>>(Type.Integer({ minimum: 1, maximum: maxId, ...options }));
/** Schema of an optional id; 0 counts as absent. */
export const optionalId = <const O extends FieldOptions = FieldOptions>(options?: O) =>
  typed<TOptional<Field<TInteger, O>>>(Type.Optional(id({ "x-id": true, ...options })));
/** Schema of an integer from `minimum` to `maximum`. */
export const integer = <const O extends FieldOptions = FieldOptions>(minimum: number, maximum: number, options?: O) =>
  typed<Field<TInteger, O>>(Type.Integer({ minimum, maximum, ...options }));
/** Schema of a boolean. */
export const boolean = <const O extends FieldOptions = FieldOptions>(options?: O) =>
  typed<Field<TBoolean, O>>(Type.Boolean({ ...options }));
interface TextOptions extends FieldOptions {
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly pattern?: string;
}
/** Schema of a text. Lengths in characters. */
export const text = <const O extends TextOptions = TextOptions>(options?: O) =>
  typed<Field<TString, O>>(Type.String({ ...options }));
/** Schema of a date: RFC 3339 in UTC with milliseconds, `2026-11-20T09:15:00.120Z`. */
export const date = <const O extends FieldOptions = FieldOptions>(options?: O) =>
  typed<Field<TString, O>>(Type.String({ format: "date-time", ...options }));
interface ListOptions extends FieldOptions {
  readonly minItems?: number;
  readonly maxItems?: number;
}
/** Schema of an array. */
export const list = <T extends TSchema, const O extends ListOptions = ListOptions>(items: T, options?: O) =>
  typed<Field<TArray<T>, O>>(Type.Array(items, { ...options }));
/** Schema of a value or `null`, with the description of the value. */
export const nullable = <T extends TSchema>(schema: T) => {
  const { title, description } = schema as T & Partial<Described> & { readonly title?: string };
  const described = description !== undefined && title === undefined ? { description } : {};
  return typed<T extends Described ? TUnion<[T, TNull]> & Described : TUnion<[T, TNull]>>(
    Type.Union([schema, Type.Null()], described),
  );
};
/** Marks a field of an object as optional. */
export const optional = <T extends TSchema>(schema: T) => typed<TOptional<T>>(Type.Optional(schema));
/** Schema of any value. */
export const anything = <const O extends FieldOptions = FieldOptions>(options?: O) =>
  typed<Field<TUnknown, O>>(Type.Unknown({ ...options }));
/** Schema of a field that is accepted and ignored. */
export const ignored = <const O extends FieldOptions = FieldOptions>(options?: O) =>
  typed<Field<TUnknown, O>>(Type.Unknown({ "x-ignored": true, ...options }));

/** A field with a description: its own, or that of the object. */
type DescribedField =
  | (TSchema & Described)
  | { readonly type: "object"; readonly properties: object }
  | TUnion<[TObject, TNull]>;
type Fields = Record<string, DescribedField>;
/** Schema of an object with a name, which is its name in the OpenAPI document. Each field needs a description. */
export const object = <P extends Fields>(title: string, description: string, properties: P, options: object = {}) =>
  typed<TObject<P>>(Type.Object(properties, { title, description, ...options }));
/** Schema of the parameters of a query, or of the fields of a request without a name. Each needs a description. */
export const fields = <P extends Fields>(properties: P, options: TSchemaOptions = {}) =>
  typed<TObject<P>>(Type.Object(properties, options));

/** Option of a request object: fields that only `answer` has are accepted, in strict mode too, so that a client can send back a response. */
export const shownAs = (answer: TObject) => ({ "x-shown": Object.keys(answer.properties) });

/** Schema of an enumeration. Requests may use any letter case. */
export const word = <const W extends string, const O extends FieldOptions = FieldOptions>(
  words: readonly W[],
  options?: O,
) => typed<Field<TUnsafe<W>, O>>(Type.Unsafe<W>({ type: "string", enum: [...words], "x-word": true, ...options }));

/** Characters of names: no control characters, no angle brackets; no blanks at the ends. */
const namePattern = (() => {
  const inner = "[^\\x00-\\x1f\\x7f-\\x9f<>]";
  const outer = "[^\\x00-\\x1f\\x7f-\\x9f<>\\s]";
  return `^(?:${outer}(?:${inner}*${outer})?)?$`;
})();

/** Schema of `Name` and `Title`: 1-64 characters, no control characters, no angle brackets. */
export const name = <const O extends TextOptions = TextOptions>(options?: O) =>
  typed<Field<TString, O>>(
    Type.String({
      minLength: 1,
      maxLength: 64,
      pattern: namePattern,
      "x-pattern-description": "no control characters, no < and no >",
      ...options,
    }),
  );

/** Maximum number of labels of an object. */
export const maxLabels = 32;
/** Characters of keys and values of labels, for descriptions and errors. */
export const labelCharacters = "letters, digits, dots, underscores and hyphens, with a letter or digit at both ends";
/** Key of a label: optional prefix and slash, then 1-63 characters that begin and end alphanumerically. */
export const labelKey = /^(?:[A-Za-z0-9.-]{1,253}\/)?[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$/;
/** At most 63 letters, digits, dots, underscores and hyphens; also empty. */
export const labelValue = /^(?:[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?$/;

/** Labels of an object: keys and values that the client selects. */
export const Labels = typed<TUnsafe<Record<string, string>> & Described>(
  Type.Unsafe<Record<string, string>>({
    title: "Labels",
    type: "object",
    description:
      "Keys and values that the client selects. A key has 1-63 letters, digits, dots, underscores and hyphens, after an optional prefix and slash. An update replaces all labels.",
    maxProperties: maxLabels,
    propertyNames: {
      pattern: labelKey.source,
      "x-pattern-description": `1-63 ${labelCharacters}, after an optional prefix and slash`,
    },
    additionalProperties: {
      type: "string",
      pattern: labelValue.source,
      "x-pattern-description": `at most 63 ${labelCharacters}`,
    },
    "x-labels": true,
  }),
);
/** TypeScript type of this schema. */
export type Labels = Static<typeof Labels>;

/** Query schema of a list: its filters, `limit` and `cursor`. */
export const listQuery = <T extends Fields>(filters: T) =>
  fields({
    ...filters,
    limit: optional(integer(1, 1000, { description: "Page size." })),
    cursor: optional(text({ description: "Start of the page, from the `Link` header of the previous page." })),
  });

/** The query parameter `name` of lists. */
export const nameFilter = optional(
  text({ description: "Complete name in any letter case; `*` matches any characters." }),
);
/** Filter by one or several of `words`, separated by commas; with `x-prefix` also prefixes that end in `*`. Other words are rejected. */
export const wordsFilter = (words: readonly string[], options: FieldOptions = {}) => {
  const { description = `One or several of these, separated by commas: ${words.join(", ")}.` } = options;
  return optional(text({ "x-words": words, ...options, description }));
};
/** The query parameter `label` of lists. */
export const labelFilter = optional(
  text({
    description:
      "Label selector: `key`, `!key`, `key=value`, `key!=value`, `key in (a,b)`, `key notin (a,b)`, separated by commas.",
  }),
);

const day = 86_400_000;
/** Year 10000: from then on the form has more digits. */
const endOfYears = Date.UTC(10_000, 0, 1);
const digits = (value: number, count: number): string => String(value).padStart(count, "0");
const pairs: readonly string[] = Array.from({ length: 100 }, (_, value) => digits(value, 2));
const pair = (value: number): string => pairs[value] as string;

/**
 * Returns milliseconds since 1970 as a date of a response, equal to `Date.toISOString` but four times as fast, because lists contain
 * thousands of dates. It counts days in years that begin in March, so the leap day is the last day of a year.
 */
export function formatDate(ms: number): string {
  if (!(ms >= 0 && ms < endOfYears)) return new Date(ms).toISOString();
  const days = Math.floor(ms / day);
  const time = Math.floor(ms - days * day);
  // Days since March 1 of year 0; 400 years have 146,097 days, of which each century but the first has one less.
  const since = days + 719_468;
  const era = Math.floor(since / 146_097);
  const inEra = since - era * 146_097;
  const yearOfEra = Math.floor(
    (inEra - Math.floor(inEra / 1460) + Math.floor(inEra / 36_524) - Math.floor(inEra / 146_096)) / 365,
  );
  const inYear = inEra - (365 * yearOfEra + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100));
  const fromMarch = Math.floor((5 * inYear + 2) / 153);
  const date = inYear - Math.floor((153 * fromMarch + 2) / 5) + 1;
  const month = fromMarch < 10 ? fromMarch + 3 : fromMarch - 9;
  const year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0);
  const hours = Math.floor(time / 3_600_000);
  const minutes = Math.floor(time / 60_000) % 60;
  const seconds = Math.floor(time / 1000) % 60;
  return `${year}-${pair(month)}-${pair(date)}T${pair(hours)}:${pair(minutes)}:${pair(seconds)}.${digits(time % 1000, 3)}Z`;
}
