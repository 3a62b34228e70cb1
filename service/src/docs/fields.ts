/** Renders schemas of the OpenAPI document: types in words, tables of fields, and tables of the words of a state. */
import type { Json } from "@brume/api/components.ts";
import { code, escape, prose, table } from "./html.ts";

/** Returns the address of the place that describes a type. */
export type TypeUrl = (name: string) => string;

/** Returns the name of the component that a reference names. */
export const nameOf = (reference: string): string => reference.slice(reference.lastIndexOf("/") + 1);
/** Returns the value as an object; empty: it is none. */
export const asJson = (value: unknown): Json => (typeof value === "object" && value !== null ? (value as Json) : {});
const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);

/** Returns the type of a value in words: `list of Record`, `integer 0 to 65535`, `date or null`. */
export function nameType(schema: Json, urlOf: TypeUrl): string {
  const { $ref, anyOf, format, minimum, maximum, minLength, maxLength } = schema;
  // `null` counts as absent in every optional field of a request.
  const all: readonly unknown[] = Array.isArray(schema["type"]) ? schema["type"] : [schema["type"]];
  const types = all.filter((one) => one !== "null");
  const [type] = types.length === 0 ? ["null"] : types;
  if (typeof $ref === "string") {
    const name = nameOf($ref);
    return `<a href="${escape(urlOf(name))}">${escape(name)}</a>`;
  }
  if (Array.isArray(anyOf)) return anyOf.map((option) => nameType(asJson(option), urlOf)).join(" or ");
  if (types.length > 1) return types.map((one) => nameType({ ...schema, type: one }, urlOf)).join(" or ");
  if ("const" in schema) return code(schema["const"]);
  if (Array.isArray(schema["enum"]))
    return schema["enum"]
      .filter((word) => word !== null && word !== "")
      .map(code)
      .join(" ");
  if (schema["x-labels"] === true) return "labels";
  if (type === "array") return `list of ${nameType(asJson(schema["items"]), urlOf)}`;
  if (format === "date-time") return "date";
  if (type === "integer" && minimum === maximum && minimum !== undefined) return `integer ${escape(minimum)}`;
  if (type === "integer" && minimum !== undefined) return `integer ${escape(minimum)} to ${escape(maximum)}`;
  if (type === "string")
    return maxLength === undefined ? "text" : `text of ${escape(minLength ?? 0)} to ${escape(maxLength)}`;
  return type === undefined ? "anything" : escape(type);
}

/** Returns one row for each field. Fields of nested objects without a title follow with their path, such as `Changes[].Op`. */
export function listFields(schema: Json, urlOf: TypeUrl, path = ""): string[][] {
  const required = listOf(schema["required"]);
  return Object.entries(asJson(schema["properties"])).flatMap(([name, value]) => {
    const field = asJson(value);
    // Fields that the form does not have, and fields of responses, which are ignored.
    if (field["type"] === "null" || field["readOnly"] === true) return [];
    const inner = [field, asJson(field["items"]), ...listOf(field["anyOf"]).map(asJson)];
    const suffix = field["type"] === "array" ? "[]" : "";
    return [
      [
        code(path + name) + (required.includes(name) ? "" : ' <small title="may be absent">optional</small>'),
        nameType(field, urlOf),
        prose(field["description"] ?? ""),
      ],
      ...inner.flatMap((one) => listFields(one, urlOf, `${path}${name}${suffix}.`)),
    ];
  });
}

/** Returns the words of a state with their meaning, from a description such as "`New`: being created. `Active`: exists."; empty: it is no state. */
function statesIn(schema: Json): (readonly [word: string, meaning: string])[] {
  const words = listOf(schema["enum"]).filter((word) => typeof word === "string");
  const { description } = schema;
  const text = typeof description === "string" ? description : "";
  const found = [
    ...text.matchAll(/((?:`\w+`(?:, | and )?)+): ([^]*?)(?=(?: `\w+`(?:(?:, | and )`\w+`)*: )|$)/g),
  ].flatMap(([, names = "", meaning = ""]) =>
    [...names.matchAll(/`(\w+)`/g)].map(([, name = ""]) => [name, meaning] as const),
  );
  return found.length > 1 && found.every(([word]) => words.includes(word)) ? found : [];
}

/** Renders the states of a type as tables, one for each field that has states. */
export function renderStates(name: string, schema: Json): string {
  return Object.entries(asJson(schema["properties"]))
    .flatMap(([field, value]) => {
      const states = statesIn(asJson(value));
      const rows = states.map(([word, meaning]) => [code(word), prose(meaning)]);
      return rows.length === 0 ? [] : [`<p>${code(`${name}.${field}`)}</p>${table(["value", "meaning"], rows)}`];
    })
    .join("\n");
}
