/**
 * Reads the query of a request target: the parameters of the operation, parsed like the fields of a form (docs/spec.md#lists,
 * #headers-and-queries-for-changes). Existing clients repeat complete bodies in it, so unknown parameters are ignored.
 */
import type { FieldError } from "@brume/api/errors.ts";
import { type Static, type TObject, Type } from "typebox";
import { type ApiError, invalidQuery } from "../../base/error.ts";
import { readFields } from "./fields.ts";
import { createNode, decodePart, reach, splitPairs } from "./form.ts";
import { asciiLower, encodeHighBytes, pointerStep, quote } from "./text.ts";

/** The parsed query and its errors. */
export interface QueryReading<S extends TObject> {
  readonly value: Static<S>;
  readonly dryRun: boolean;
  readonly errors: FieldError[];
}

const dryRunOnly = Type.Object({ dryRun: Type.Optional(Type.Boolean()) });

interface Plan {
  readonly schema: TObject;
  /** Names of the schema, by name in lower case. */
  readonly names: ReadonlyMap<string, string>;
}

function planFor(schema: TObject): Plan {
  return { schema, names: new Map(Object.keys(schema.properties).map((name) => [asciiLower(name), name])) };
}

const readPlans = new WeakMap<TObject, Plan>();
const changePlans = new WeakMap<TObject, Plan>();
const nothing = Type.Object({});

function planOf(schema: TObject, change: boolean): Plan {
  const plans = change ? changePlans : readPlans;
  let plan = plans.get(schema);
  if (plan === undefined) {
    plan = planFor(change ? Type.Object({ ...schema.properties, ...dryRunOnly.properties }) : schema);
    plans.set(schema, plan);
  }
  return plan;
}

/**
 * Parses a raw query (without `?`). Pointers of errors have the form `?limit`, in the spelling of the schema. The last of repeated
 * parameters counts, except that all of `label` do. An empty value is absent, but an empty `dryRun` is an error, so that a change is never
 * executed by mistake.
 */
export function readQuery<S extends TObject>(
  schema: S | undefined,
  query: string,
  options: { readonly strict: boolean; readonly change: boolean },
): QueryReading<S> {
  if (query === "" && schema === undefined) return { value: {} as Static<S>, dryRun: false, errors: [] };
  const plan = planOf(schema ?? nothing, options.change);
  const root = createNode();
  const errors: FieldError[] = [];
  const unknown: FieldError[] = [];
  for (const [rawName, rawValue] of splitPairs(encodeHighBytes(query))) {
    const shown = decodePart(rawName) ?? rawName;
    const name = plan.names.get(asciiLower(shown));
    if (name === undefined) {
      if (options.strict)
        unknown.push(error(shown, "unknown_field", `The parameter ${quote(shown)} does not exist for this operation.`));
      continue;
    }
    const value = decodePart(rawValue ?? "");
    if (value === null) errors.push(error(name, "format_invalid", `${name} is not percent-encoded UTF-8.`));
    else if (value.trim() !== "") take(reach(root, name).values, name, value);
    else if (name === "dryRun") errors.push(error(name, "type_mismatch", "dryRun must be true or false, not empty."));
  }
  const read = readFields(plan.schema, { kind: "form", fields: root }, options);
  for (const found of read.errors) errors.push({ ...found, pointer: `?${found.pointer.slice(1)}` });
  const { dryRun = false, ...value } = read.value as Record<string, unknown>;
  return { value: value as Static<S>, dryRun: dryRun === true, errors: [...errors, ...unknown] };
}

function take(values: string[], name: string, value: string): void {
  if (name === "label" && values.length > 0) values[0] += `,${value}`;
  else values.push(value);
}

function error(name: string, code: FieldError["code"], detail: string): FieldError {
  return { pointer: `?${pointerStep(name)}`, code, detail };
}

const strictModeCodes: ReadonlySet<string> = new Set(["unknown_field", "duplicate_field"]);

/** Returns the errors of the parameters of a read as one error; null: there are none, or only errors of strict mode. */
export function queryError(errors: readonly FieldError[]): ApiError | null {
  const found = errors.filter(({ code }) => !strictModeCodes.has(code));
  return found.length === 0 ? null : invalidQuery(found);
}
