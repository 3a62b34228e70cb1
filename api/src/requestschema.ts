/**
 * The published schema of a request: exactly what the service accepts in strict mode (docs/spec.md#strict-mode), derived from the schema
 * of the request reader. It adds what the reader does beyond JSON Schema: `null` counts as absent, an empty word is an absent one, text has
 * no blanks at its ends, some numbers may be text, and fields of responses are accepted and ignored.
 */
import type { Json } from "./components.ts";
import type { Form } from "./form.ts";

type Properties = Readonly<Record<string, Json>>;

/** A text without the character U+0000, which no database stores. */
const anyText = "^[^\\x00]*$";
/** The same, with no blanks at the ends. */
const trimmedText = "^(?:[^\\x00\\s](?:[^\\x00]*[^\\x00\\s])?)?$";
/** The same, not empty. */
const someText = "^[^\\x00\\s](?:[^\\x00]*[^\\x00\\s])?$";
/** A date with time and zone (RFC 3339). */
const zonedDate =
  "^\\d{4}-\\d\\d-\\d\\d[Tt ](?:[01]\\d|2[0-3]):[0-5]\\d:(?:[0-5]\\d|60)(?:\\.\\d+)?(?:[Zz]|[+-](?:[01]\\d|2[0-3]):[0-5]\\d)$";

const safe = Number.MAX_SAFE_INTEGER;

/** Returns the schema of a request body or of an object inside it. */
export function requestSchema(schema: Json): Json {
  const all = schema["x-forms"] as readonly Form[] | undefined;
  if (all === undefined || all.length === 1) return closedObject(schema, all?.[0]);
  const { title, description } = schema;
  return {
    ...(title !== undefined && { title }),
    ...(description !== undefined && { description }),
    oneOf: all.map((form) => closedObject(schema, form)),
  };
}

/** Returns an object schema that allows no other fields. With `form`, the schema of this form. */
function closedObject(schema: Json, form?: Form): Json {
  const { title, description } = form ?? schema;
  const own = schema["properties"] as Properties;
  const required = ((schema["required"] ?? []) as readonly string[]).concat(form?.needs ?? []);
  const properties: Record<string, Json> = {};
  const present: string[] = [];
  const oneName: Json[] = [];
  for (const [name, field] of Object.entries(own)) {
    const words = Object.entries(form?.where ?? {}).find(([one]) => one === name)?.[1];
    const isRequired = required.includes(name) || (words !== undefined && !words.includes(null));
    properties[name] = form?.without?.includes(name)
      ? { type: "null", description: "Not in this form." }
      : words === undefined
        ? fieldSchema(field, isRequired)
        : wordSchema(field, words, isRequired);
    const others = (field["x-also"] ?? []) as readonly string[];
    for (const other of others)
      properties[other] = {
        ...fieldSchema(field, isRequired),
        description: `Other name of \`${name}\`, for existing clients.`,
      };
    if (others.length > 0) oneName.push({ oneOf: [name, ...others].map((one) => ({ required: [one] })) });
    else if (isRequired) present.push(name);
  }
  for (const name of (schema["x-shown"] ?? []) as readonly string[])
    if (!(name in own)) properties[name] = { readOnly: true, description: "Field of responses; ignored in requests." };
  return {
    ...(title !== undefined && { title }),
    type: "object",
    ...(description !== undefined && { description }),
    properties,
    ...(present.length > 0 && { required: present }),
    ...(oneName.length > 0 && { allOf: oneName }),
    ...dependencies(schema["x-requires"] as Readonly<Record<string, string>> | undefined, own),
    additionalProperties: false,
  };
}

/** Fields that need another field. `null` is absent on both sides. */
function dependencies(table: Readonly<Record<string, string>> = {}, own: Properties): Json {
  const entries = Object.entries(table).map(([field, needed]) => [
    field,
    {
      anyOf: [
        { properties: { [field]: { type: "null" } } },
        { required: [needed], properties: { [needed]: fieldSchema(own[needed] ?? {}, true) } },
      ],
    },
  ]);
  return entries.length === 0 ? {} : { dependentSchemas: Object.fromEntries(entries) };
}

/** A field that selects a form: only the values of the form. */
function wordSchema(field: Json, words: readonly (string | boolean | null)[], isRequired: boolean): Json {
  const { description } = field;
  const values = words.filter((word) => word !== null);
  const type = field["type"];
  if (isRequired) return { type, description, ...(values.length === 1 ? { const: values[0] } : { enum: values }) };
  return { type: [type, "null"], description, enum: [...values, ...(type === "string" ? [""] : []), null] };
}

/** Returns the schema of a field. An optional field may be `null`, which counts as absent. */
function fieldSchema(field: Json, isRequired: boolean): Json {
  const { description } = field;
  const note = description === undefined ? {} : { description };
  if (field["x-ignored"] === true) return { ...note };
  const plain = valueSchema(field, isRequired);
  if (isRequired) return { ...plain, ...("title" in plain ? {} : note) };
  if ("title" in plain || "anyOf" in plain || "oneOf" in plain)
    return { ...note, anyOf: [...((plain["anyOf"] as Json[] | undefined) ?? [plain]), { type: "null" }] };
  const type = plain["type"];
  return {
    ...plain,
    ...note,
    type: [...(Array.isArray(type) ? (type as string[]) : [type]), "null"],
    ...(Array.isArray(plain["enum"]) && {
      enum: [...(plain["enum"] as unknown[]), ...(type === "string" ? [""] : []), null],
    }),
  };
}

/** Returns the schema of a value that is present. */
function valueSchema(field: Json, isRequired: boolean): Json {
  const type = field["type"];
  const keep = pick(field, "default", "examples");
  if (field["x-labels"] === true) {
    const { maxProperties, propertyNames, additionalProperties } = field as {
      maxProperties?: number;
      propertyNames?: Json;
      additionalProperties?: Json;
    };
    return {
      title: "LabelsRequest",
      type: "object",
      description: field["description"],
      maxProperties,
      propertyNames,
      additionalProperties: { ...additionalProperties, type: ["string", "null"] },
    };
  }
  if (type === "array")
    return { ...keep, type, items: itemSchema(field["items"] as Json), ...pick(field, "minItems", "maxItems") };
  if (type === "object") return requestSchema(field);
  if (type === "integer") return { ...keep, ...integerSchema(field) };
  if (type === "boolean") return { ...keep, type };
  if (field["enum"] !== undefined) return { ...keep, type, enum: field["enum"] };
  if (field["format"] === "date-time") return { ...keep, type, format: "date-time", pattern: zonedDate };
  return { ...keep, ...textSchema(field, isRequired) };
}

const itemSchema = (item: Json): Json => fieldSchema(item, true);

function integerSchema(field: Json): Json {
  const plain = { type: "integer", ...pick(field, "minimum", "maximum", "multipleOf", "enum") };
  if (field["x-either"] !== true) return plain;
  const { minimum, maximum } = field as { minimum: number; maximum: number };
  return { anyOf: [plain, { type: "string", pattern: `^(?:${decimalRange(minimum, maximum)})$` }] };
}

function textSchema(field: Json, isRequired: boolean): Json {
  const verbatim = field["x-verbatim"] === true;
  const { minLength = 0, maxLength, pattern } = field as { minLength?: number; maxLength?: number; pattern?: string };
  const least = isRequired ? Math.max(1, minLength) : minLength;
  const usual = verbatim ? anyText : least > 0 ? someText : trimmedText;
  const bounds = {
    ...(least > 0 && { minLength: least }),
    ...(maxLength !== undefined && { maxLength }),
    pattern: pattern ?? usual,
  };
  // Number and text have one schema: the keywords of texts do not apply to numbers.
  if (field["x-either"] === true) return { type: ["string", "integer"], ...bounds, minimum: -safe, maximum: safe };
  return { type: "string", ...bounds };
}

function pick(field: Json, ...keys: readonly string[]): Json {
  return Object.fromEntries(keys.flatMap((key) => (field[key] === undefined ? [] : [[key, field[key]]])));
}

/** Returns a regular expression for the decimal numbers from `minimum` (0 or more) to `maximum`, without leading zeros. */
export function decimalRange(minimum: number, maximum: number): string {
  const parts: string[] = [];
  for (let low = minimum; low <= maximum; ) {
    const digits = String(low).length;
    const high = Math.min(maximum, 10 ** digits - 1);
    parts.push(...sameLength(String(low), String(high)));
    low = high + 1;
  }
  return parts.join("|");
}

/** Patterns for the numbers between two of the same number of digits. */
function sameLength(low: string, high: string): string[] {
  if (low === high) return [low];
  const [first = "0", last = "9"] = [low[0], high[0]];
  if (low.length === 1) return [`[${first}-${last}]`];
  const rest = low.length - 1;
  const any = rest === 1 ? "\\d" : `\\d{${rest}}`;
  if (/^0*$/.test(low.slice(1)) && /^9*$/.test(high.slice(1)))
    return [`${first === last ? first : `[${first}-${last}]`}${any}`];
  if (first === last) return sameLength(low.slice(1), high.slice(1)).map((part) => first + part);
  const parts = /^0*$/.test(low.slice(1)) ? [] : sameLength(low.slice(1), "9".repeat(rest)).map((part) => first + part);
  const from = parts.length === 0 ? Number(first) : Number(first) + 1;
  const upper = /^9*$/.test(high.slice(1))
    ? []
    : sameLength("0".repeat(rest), high.slice(1)).map((part) => last + part);
  const to = upper.length === 0 ? Number(last) : Number(last) - 1;
  if (from <= to) parts.push(`${from === to ? from : `[${from}-${to}]`}${any}`);
  return [...parts, ...upper];
}
