/** Converts the texts of a command line to values of a request, guided by the schema of the field. */
import type { Schema } from "./schema.ts";

/** A command line or file that cannot be understood. `remedy`: what to type instead. `lines`: details. */
export class UsageError extends Error {
  override readonly name = "UsageError";
  readonly remedy: string;
  readonly lines: readonly string[];

  constructor(message: string, remedy = "", lines: readonly string[] = []) {
    super(message);
    this.remedy = remedy;
    this.lines = lines;
  }
}

/** Reads a file; `-` is standard input. */
export type ReadText = (path: string) => Promise<string>;

/** The schema without `null`. */
const plain = (schema: Schema): Schema => schema.anyOf?.find(({ type }) => type !== "null") ?? schema;

/** Returns true for a flag without a value. */
export const isSwitch = (schema: Schema): boolean => plain(schema).type === "boolean";
/** Returns true for a list of plain values, which can be given by commas and by repeating the flag. */
export const isList = (schema: Schema): boolean => {
  const { type, items } = plain(schema);
  return type === "array" && items?.properties === undefined;
};
/** Returns true for a value that has fields: it is given as JSON or YAML. */
const isStructure = (schema: Schema): boolean => {
  const { type, properties, items } = plain(schema);
  return (
    (type === "object" || properties !== undefined || items?.properties !== undefined) && schema["x-labels"] !== true
  );
};
/** Returns true for a field whose value `@FILE` is the content of a file. */
export const takesFile = (schema: Schema, field: string): boolean =>
  isStructure(schema) || schema["x-verbatim"] === true || field === "PublicKey";

/** Word for a value in help. */
export function valueWord(schema: Schema): string {
  const { type, items, enum: choices } = plain(schema);
  if (schema["x-labels"] === true) return "KEY=VALUE";
  if (isStructure(schema)) return "YAML|@FILE";
  if (type === "array") return `${valueWord(items ?? {})},…`;
  if (choices !== undefined) return choices.length <= 4 ? choices.join("|") : "WORD";
  if (type === "integer" || type === "number") return "N";
  return "TEXT";
}

function parseScalar(name: string, schema: Schema, text: string): unknown {
  const { type, enum: choices, minimum, maximum } = plain(schema);
  if (type === "boolean") {
    if (text === "true" || text === "false") return text === "true";
    throw new UsageError(`${name} takes true or false, not "${text}".`);
  }
  if (type === "integer" || type === "number") {
    const number = Number(text);
    const isValid = text.trim() !== "" && (type === "integer" ? Number.isInteger(number) : Number.isFinite(number));
    if (!isValid)
      throw new UsageError(`${name} takes ${type === "integer" ? "an integer" : "a number"}, not "${text}".`);
    if ((minimum !== undefined && number < minimum) || (maximum !== undefined && number > maximum))
      throw new UsageError(`${name} must be from ${minimum ?? "any"} to ${maximum ?? "any"}, not ${text}.`);
    return number;
  }
  if (choices === undefined) return text;
  const found = choices.find((choice) => String(choice).toLowerCase() === text.toLowerCase());
  if (found === undefined) throw new UsageError(`${name} takes one of ${choices.join(", ")}, not "${text}".`);
  return found;
}

function parseLabels(name: string, texts: readonly string[]): Record<string, string> {
  const labels: Record<string, string> = {};
  for (const text of texts) {
    const [key = "", ...value] = text.split("=");
    if (key === "" || value.length === 0) throw new UsageError(`${name} takes KEY=VALUE, not "${text}".`);
    labels[key] = value.join("=");
  }
  return labels;
}

async function parseStructure(name: string, text: string): Promise<unknown> {
  const { parse } = await import("yaml");
  try {
    return parse(text) as unknown;
  } catch (error) {
    const reason = error instanceof Error ? (error.message.split("\n")[0] ?? "") : String(error);
    throw new UsageError(`${name} is neither JSON nor YAML: ${reason}`);
  }
}

/**
 * Returns the value of a field from the texts of its flag, one for each time that it was given. Throws `UsageError` with the name of the
 * flag. Names of objects stay texts; `resolve.ts` converts them to ids.
 */
export async function parseValue(
  name: string,
  field: string,
  schema: Schema,
  texts: readonly string[],
  readText: ReadText,
): Promise<unknown> {
  if (schema["x-labels"] === true) return parseLabels(name, texts);
  const last = texts.at(-1) ?? "";
  // No valid value of these begins like a path; that of a record or a secret may.
  if ((isStructure(schema) || field === "PublicKey") && /^(~|\.\.?)?\//.test(last))
    throw new UsageError(`${name} takes the text itself, not a path.`, `To read the file: ${name} @${last}`);
  const text =
    takesFile(schema, field) && /^@./.test(last) ? (await readText(last.slice(1))).replace(/^\uFEFF/, "") : last;
  if (isStructure(schema)) return parseStructure(name, text);
  if (!isList(schema)) return parseScalar(name, schema, text);
  const items = plain(schema).items ?? {};
  return texts
    .flatMap((one) => one.split(","))
    .filter((one) => one !== "")
    .map((one) => parseScalar(name, items, one.trim()));
}
