/** Validates the value of a cloud file with its schema. Every problem has the path of its value, so that it can be shown with line and column. */
import { suggest } from "../closest.ts";
import type { Shape } from "./shape.ts";

/** Keys and indexes that lead to a value. */
export type Path = readonly (string | number)[];

/** A problem of a file. `isKey`: the key itself is the problem, not its value. */
export interface Problem {
  readonly path: Path;
  readonly message: string;
  readonly isKey?: boolean;
}

const typeOf = (value: unknown): string => {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  return typeof value === "number" && Number.isInteger(value) ? "integer" : typeof value;
};
const words: Readonly<Record<string, string>> = {
  array: "a list",
  object: "a map of fields",
  string: "a text",
  integer: "an integer",
  number: "a number",
  boolean: "true or false",
};
/** Returns what the file has instead. A text can be secret, so callers leave it out where a text is expected. */
function describe(value: unknown): string {
  if (typeof value === "object" && value !== null) return `, not ${words[typeOf(value)]}`;
  return `, not ${typeof value === "string" && value.length > 40 ? "a longer text" : JSON.stringify(value)}`;
}

const isMap = (value: unknown): value is Record<string, unknown> => typeOf(value) === "object";

/** Returns a path as people read it: `Servers[0].RAM`. */
const pathText = (path: Path): string =>
  path.map((part, index) => (typeof part === "number" ? `[${part}]` : index === 0 ? part : `.${part}`)).join("");

const field = (path: Path) => pathText(path) || "The file";

/** Returns the form of several that the value means: the one with its `Type`, or with its type. */
function choose(forms: readonly Shape[], value: unknown, path: Path): Shape | Problem {
  if (!isMap(value) || forms.every(({ properties }) => properties?.["Type"]?.const === undefined)) {
    const found = forms.find(({ type }) => type === typeOf(value));
    const expected = forms.map(({ type }) => words[String(type)]).join(" or ");
    return found ?? { path, message: `${field(path)} must be ${expected}.` };
  }
  const types = forms.map(({ properties }) => properties?.["Type"]?.const ?? "");
  const index = types.findIndex((one) => one === value["Type"]);
  if (forms[index] !== undefined) return forms[index];
  const message = `${field([...path, "Type"])} must be one of ${types.join(", ")}.`;
  if (value["Type"] === undefined) return { path, message: `${message} It is missing.` };
  const hint = typeof value["Type"] === "string" ? suggest(value["Type"], types) : "";
  return { path: [...path, "Type"], message: `${message} ${hint}`.trim() };
}

function checkText(shape: Shape, value: string, path: Path): Problem[] {
  const { minLength = 0, maxLength = Number.POSITIVE_INFINITY, pattern, patternErrorMessage } = shape;
  const length = Array.from(value).length;
  if (length < minLength || length > maxLength)
    return [{ path, message: `${field(path)} must have ${minLength} to ${maxLength} characters.` }];
  if (pattern !== undefined && !new RegExp(pattern, "u").test(value))
    return [{ path, message: `${field(path)} ${patternErrorMessage ?? `must match ${pattern}`}.` }];
  return [];
}

function checkNumber({ minimum, maximum, multipleOf }: Shape, value: number, path: Path): Problem[] {
  if ((minimum !== undefined && value < minimum) || (maximum !== undefined && value > maximum))
    return [{ path, message: `${field(path)} must be from ${minimum ?? "any"} to ${maximum ?? "any"}, not ${value}.` }];
  if (multipleOf !== undefined && value % multipleOf !== 0)
    return [{ path, message: `${field(path)} must be a multiple of ${multipleOf}, not ${value}.` }];
  return [];
}

function checkMap(shape: Shape, value: Record<string, unknown>, path: Path): Problem[] {
  const { properties = {}, required = [], additionalProperties, propertyNames, maxProperties } = shape;
  const known = Object.keys(properties);
  const problems: Problem[] = required
    .filter((name) => value[name] === undefined)
    .map((name) => ({ path, message: `${field([...path, name])} is missing.` }));
  if (maxProperties !== undefined && Object.keys(value).length > maxProperties)
    problems.push({ path, message: `${field(path)} must have at most ${maxProperties} fields.` });
  for (const [name, one] of Object.entries(value)) {
    const at = [...path, name];
    const own = Object.hasOwn(properties, name) ? properties[name] : undefined;
    if (own !== undefined) problems.push(...check(own, one, at));
    else if (additionalProperties === false)
      problems.push({
        path: at,
        isKey: true,
        message: `There is no field "${pathText(at)}". ${suggest(name, known)}`.trim(),
      });
    else if (propertyNames !== undefined && checkText(propertyNames, name, at).length > 0)
      problems.push(...checkText(propertyNames, name, at).map(({ message }) => ({ path: at, isKey: true, message })));
    else if (typeof additionalProperties === "object") problems.push(...check(additionalProperties, one, at));
  }
  return problems;
}

/** Returns all problems of a value; none: it is valid. */
export function check(shape: Shape, value: unknown, path: Path = []): Problem[] {
  if (shape.oneOf !== undefined) {
    const chosen = choose(shape.oneOf, value, path);
    return "message" in chosen ? [chosen] : check(chosen, value, path);
  }
  if (shape.const !== undefined && value !== shape.const)
    return [{ path, message: `${field(path)} must be ${shape.const}.` }];
  const types = shape.type === undefined ? [] : [shape.type].flat();
  const type = typeOf(value);
  if (types.length > 0 && !types.includes(type) && !(type === "integer" && types.includes("number"))) {
    const quotes =
      types.includes("string") && ["integer", "number", "boolean"].includes(type) ? " Put it in quotes." : "";
    const expected = types.map((one) => words[one] ?? one).join(" or ");
    return [
      {
        path,
        message: `${field(path)} must be ${expected}${types.includes("string") ? "" : describe(value)}.${quotes}`,
      },
    ];
  }
  if (shape.enum !== undefined && !shape.enum.includes(value)) {
    const hint = suggest(String(value), shape.enum.map(String));
    return [
      {
        path,
        message: `${field(path)} must be one of ${shape.enum.join(", ")}, not "${String(value)}". ${hint}`.trim(),
      },
    ];
  }
  if (typeof value === "string") return checkText(shape, value, path);
  if (typeof value === "number") return checkNumber(shape, value, path);
  if (isMap(value)) return checkMap(shape, value, path);
  if (!Array.isArray(value)) return [];
  const { minItems = 0, maxItems = Number.POSITIVE_INFINITY, items } = shape;
  if (value.length < minItems || value.length > maxItems)
    return [{ path, message: `${field(path)} must have ${minItems} to ${maxItems} items.` }];
  return items === undefined ? [] : value.flatMap((one, index) => check(items, one, [...path, index]));
}
