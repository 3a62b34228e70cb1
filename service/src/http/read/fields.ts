/**
 * Converts the fields of a body to the types of the contract's schema (docs/spec.md#reading-the-request-body, #coercion, #strict-mode). All
 * operations use this module, so the rules are the same everywhere. A schema is compiled to functions on its first use.
 */

import type { FieldError } from "@brume/api/errors.ts";
import { checkForms, checkRequires, type Form } from "@brume/api/form.ts";
import type { Static, TObject } from "typebox";
import { fieldProblem } from "../../base/error.ts";
import { runAtOnce } from "../../base/turn.ts";
import type { RawFields } from "./body.ts";
import { isFormNode, partsOf } from "./form.ts";
import { type JsonObject, parseInTurns, repeatedKeys } from "./json.ts";
import { compileLabels } from "./labels.ts";
import { type FieldLabel, maxErrors, type Reading, report, reportProblem } from "./report.ts";
import { type Convert, compileScalar, count, type Schema } from "./scalar.ts";
import { isBlank, type Source, toItems, toObjects, toSource } from "./shape.ts";
import { asciiLower, pointerStep, quote } from "./text.ts";

/** Parses the value at `parent/step`. Returns undefined if it is absent or not valid; the latter is reported. */
interface Read {
  (given: unknown, reading: Reading, parent: string, step: string): unknown;
  /** The same, with yields, if the value may be long. */
  inTurns?(given: unknown, reading: Reading, parent: string, step: string): Generator<void, unknown>;
}

interface Field {
  readonly name: string;
  readonly step: string;
  readonly required: boolean;
  readonly fallback: unknown;
  /** The names of the field have the slots from `from` to `to` (exclusive), in order of precedence. */
  readonly from: number;
  readonly to: number;
  readonly read: Read;
}

/** A compiled schema of an object. Each possible name of a field has a slot. */
interface Plan {
  readonly fields: readonly Field[];
  readonly exact: ReadonlyMap<string, number>;
  /** Slots by name in lower case. */
  readonly loose: ReadonlyMap<string, number>;
  readonly size: number;
  /** Keys of responses: accepted and ignored. */
  readonly shown: readonly string[];
  readonly forms: readonly Form[];
  readonly requires: Readonly<Record<string, string>>;
  /** No field contains other fields or items. */
  readonly isFlat: boolean;
}

/** Names of an object that is read without a yield. */
const mostNames = 64;

const plans = new WeakMap<object, Plan>();

/**
 * Parses the fields of a body. Errors have the order of the schema, and pointers its spelling; unknown fields follow in strict mode. Absent
 * fields are absent in the value. If there are errors, the value contains only the valid fields.
 */
export const readFields = <S extends TObject>(
  schema: S,
  raw: RawFields,
  options: { readonly strict: boolean },
): Fields<S> => runAtOnce(readInTurns(schema, raw, options));

/** The parsed fields. */
interface Fields<S extends TObject> {
  readonly value: Static<S>;
  readonly errors: FieldError[];
}

/** Returns the same as `readFields`, with yields. */
export function* readInTurns<S extends TObject>(
  schema: S,
  raw: RawFields,
  options: { readonly strict: boolean },
): Generator<void, Fields<S>> {
  let plan = plans.get(schema);
  if (plan === undefined) {
    plan = compileObject(schema, false);
    plans.set(schema, plan);
  }
  const { strict } = options;
  const form = raw.kind === "form";
  const reading: Reading = { strict, form, errors: [], ambiguous: false };
  const value = yield* readObject(plan, raw.fields, reading, "");
  if (reading.ambiguous && raw.kind === "json" && raw.text !== null) {
    const fields = (yield* parseInTurns(raw.text, false)) as JsonObject;
    return yield* readInTurns(schema, { kind: "json", fields, text: null }, options);
  }
  return { value: value as Static<S>, errors: reading.errors };
}

function compileObject(schema: Schema, secret: boolean): Plan {
  const exact = new Map<string, number>();
  const loose = new Map<string, number>();
  const others: [string, number][] = [];
  let size = 0;
  const fields: Field[] = [];
  for (const [name, property] of Object.entries(schema.properties ?? {})) {
    const required = schema.required?.includes(name) ?? false;
    const from = size++;
    exact.set(name, from);
    loose.set(asciiLower(name), from);
    for (const other of property["x-also"] ?? []) others.push([other, size++]);
    fields.push({
      name,
      step: pointerStep(name),
      required,
      fallback: property.default,
      from,
      to: size,
      read: compile(required ? { ...property, "x-required": true } : property, { name, secret }),
    });
  }
  // The first name of a field takes precedence over alternative names of other fields.
  for (const [name, slot] of others) {
    if (!exact.has(name)) exact.set(name, slot);
    if (!loose.has(asciiLower(name))) loose.set(asciiLower(name), slot);
  }
  return {
    fields,
    exact,
    loose,
    size,
    shown: schema["x-shown"] ?? [],
    forms: schema["x-forms"] ?? [],
    requires: schema["x-requires"] ?? {},
    isFlat: fields.every(({ read }) => read.inTurns === undefined),
  };
}

/** Returns the parser of a schema. Throws for an unsupported schema, which is a bug in the contract. */
function compile(schema: Schema, { name, secret: within }: FieldLabel): Read {
  const kinds = schema.anyOf?.filter((kind) => kind.type !== "null") ?? [];
  const secret = within || schema["x-secret"] === true;
  const label = { name, secret };
  if (schema["x-ignored"]) return () => undefined;
  if (kinds.length === 1 && kinds[0]) return compile(kinds[0], label);
  if (schema["x-labels"]) return compileLabels(schema, label, compileSingle(compileScalar({ type: "string" }), label));
  if (schema.type === "array" && schema.items) return compileList(schema, schema.items, label);
  if (schema.type === "object") return compileNested(compileObject(schema, secret), label);
  return compileSingle(compileScalar(schema), label);
}

function* readObject(
  plan: Plan,
  source: Source,
  reading: Reading,
  pointer: string,
): Generator<void, Record<string, unknown>> {
  const short = plan.isFlat && !isFormNode(source) ? readShort(plan, source, reading, pointer) : null;
  if (short !== null) return short;
  const found = new Array<unknown>(plan.size).fill(undefined);
  const unknown: string[] = [];
  if (isFormNode(source))
    for (const [name, part] of partsOf(source)) {
      place(plan, name, part, found, unknown, reading);
      yield;
    }
  else
    for (const name in source) {
      place(plan, name, source[name], found, unknown, reading);
      yield;
    }

  const value: Record<string, unknown> = {};
  for (const field of plan.fields) {
    const before = reading.errors.length;
    const given = givenOf(field, found, source, reading, pointer);
    const { read, step } = field;
    let result: unknown;
    if (given !== undefined && read.inTurns !== undefined) result = yield* read.inTurns(given, reading, pointer, step);
    else if (given !== undefined) result = read(given, reading, pointer, step);
    setField(value, field, result, before, reading, pointer);
  }
  finish(plan, found, unknown, reading, pointer);
  return value;
}

/** Returns the same without yields, which take as long as the rest for thousands of short objects. Null: the object has many names. */
function readShort(plan: Plan, source: JsonObject, reading: Reading, pointer: string): Record<string, unknown> | null {
  const found = new Array<unknown>(plan.size).fill(undefined);
  const unknown: string[] = [];
  let names = 0;
  for (const name in source) {
    if (++names > mostNames) return null;
    place(plan, name, source[name], found, unknown, reading);
  }
  const value: Record<string, unknown> = {};
  for (const field of plan.fields) {
    const before = reading.errors.length;
    const given = givenOf(field, found, source, reading, pointer);
    const result = given === undefined ? undefined : field.read(given, reading, pointer, field.step);
    setField(value, field, result, before, reading, pointer);
  }
  finish(plan, found, unknown, reading, pointer);
  return value;
}

/** Returns what the source contains for the field, and reports a field that it contains twice. */
function givenOf(field: Field, found: readonly unknown[], source: Source, reading: Reading, pointer: string): unknown {
  if (reading.strict && isTwice(field, found, source))
    report(reading, pointer, field.step, "duplicate_field", `${field.name} is given more than once.`);
  return choose(found, field);
}

/** Sets the field of the value, or reports that it is absent. `before`: number of errors before it was read. */
function setField(
  value: Record<string, unknown>,
  { name, step, required, fallback }: Field,
  result: unknown,
  before: number,
  reading: Reading,
  pointer: string,
): void {
  if (result !== undefined && (result !== "" || !required)) value[name] = result;
  else if (reading.errors.length > before) return;
  else if (required) report(reading, pointer, step, "field_required", `${name} is required.`);
  else if (fallback !== undefined) value[name] = fallback;
}

/** Reports what concerns several fields, and names of none. */
function finish(
  plan: Plan,
  found: readonly unknown[],
  unknown: readonly string[],
  reading: Reading,
  pointer: string,
): void {
  if (reading.strict) checkRules(plan, found, reading, pointer);
  for (const name of unknown) {
    report(
      reading,
      pointer,
      pointerStep(name),
      "unknown_field",
      `The field ${quote(name)} does not exist in this request.`,
    );
  }
}

/** Reports the errors of forms that the fields themselves do not have. */
function checkRules(plan: Plan, found: readonly unknown[], reading: Reading, pointer: string): void {
  const valueOf = (name: string): unknown => {
    const field = plan.fields.find((one) => one.name === name);
    const given = field === undefined ? undefined : choose(found, field);
    return isFormNode(given) ? given.values.at(-1) : given;
  };
  for (const { field, code, detail } of [...checkForms(plan.forms, valueOf), ...checkRequires(plan.requires, valueOf)])
    if (!reading.errors.some((error) => error.pointer === `${pointer}/${pointerStep(field)}`))
      report(reading, pointer, pointerStep(field), code, detail);
}

function place(plan: Plan, name: string, given: unknown, found: unknown[], unknown: string[], reading: Reading): void {
  const slot = plan.exact.get(name) ?? (reading.strict ? undefined : plan.loose.get(asciiLower(name)));
  if (slot === undefined) {
    // More errors than these are not reported.
    if (reading.strict && unknown.length < maxErrors && !plan.shown.includes(name)) unknown.push(name);
    return;
  }
  if (found[slot] !== undefined) reading.ambiguous = true;
  found[slot] = given;
}

/** Returns the value of the first name that is not empty, else an empty value, because that can clear a field. */
function choose(found: readonly unknown[], field: Field): unknown {
  let empty: unknown;
  for (let slot = field.from; slot < field.to; slot++) {
    const given = found[slot];
    if (given === undefined || given === null) continue;
    if (field.to - field.from === 1 || !isBlank(given)) return given;
    empty ??= given;
  }
  return empty;
}

function isTwice(field: Field, found: readonly unknown[], source: Source): boolean {
  let times = repeatedKeys(source).has(field.name) ? 2 : 0;
  for (let slot = field.from; slot < field.to; slot++) if (found[slot] !== undefined) times++;
  return times > 1;
}

function compileSingle(convert: Convert, label: FieldLabel): Read {
  return (given, reading, parent, step) => {
    let single = given;
    if (isFormNode(given)) {
      if (reading.strict && given.values.length > 1)
        return report(reading, parent, step, "duplicate_field", `${label.name} is given more than once.`);
      // A node with parts is not a single value; the converter reports the expected type.
      single = partsOf(given).size > 0 ? {} : given.values.at(-1);
    }
    if (single === undefined || single === null) return undefined;
    const result = convert(single, reading);
    return typeof result === "object" ? reportProblem(reading, parent, step, label, result, single) : result;
  };
}

function compileNested(plan: Plan, label: FieldLabel): Read {
  const mismatch = fieldProblem("type_mismatch", "must be an object");
  function* inTurns(given: unknown, reading: Reading, parent: string, step: string): Generator<void, unknown> {
    if (given === null || (!reading.strict && isBlank(given))) return undefined;
    const source = toSource(given);
    if (source === null) return reportProblem(reading, parent, step, label, mismatch, given);
    return yield* readObject(plan, source, reading, `${parent}/${step}`);
  }
  return withTurns(inTurns);
}

/** Returns a parser of a value that may be long. */
function withTurns(inTurns: NonNullable<Read["inTurns"]>): Read {
  const read: Read = (given, reading, parent, step) => runAtOnce(inTurns(given, reading, parent, step));
  return Object.assign(read, { inTurns });
}

function compileList(schema: Schema, item: Schema, label: FieldLabel): Read {
  const { minItems = 0, maxItems = Number.POSITIVE_INFINITY } = schema;
  const readItem = compile(item, label);
  const ofObjects = item.type === "object";
  const skips = schema["x-skip"] === true;
  const mismatch = fieldProblem("type_mismatch", ofObjects ? "must be a list of objects" : "must be a list");
  const withNull = fieldProblem("type_mismatch", ofObjects ? "must have objects only" : "must have values only");
  const short = fieldProblem("too_short", `must have at least ${count(minItems, "item")}`);
  const long = fieldProblem("too_long", `must have at most ${count(maxItems, "item")}`);
  function* inTurns(given: unknown, reading: Reading, parent: string, step: string): Generator<void, unknown> {
    if (!reading.strict && isBlank(given)) return undefined;
    const names = isFormNode(given) ? partsOf(given).size : 0;
    if (names > maxItems) return reportProblem(reading, parent, step, label, { ...long, came: String(names) }, given);
    const items = ofObjects ? toObjects(given) : yield* toItems(given, reading.strict);
    if (items === null) return reportProblem(reading, parent, step, label, mismatch, given);
    if (items.length > maxItems)
      return reportProblem(reading, parent, step, label, { ...long, came: String(items.length) }, given);
    const pointer = `${parent}/${step}`;
    const atStart = reading.errors.length;
    const values: unknown[] = [];
    for (const [index, entry] of items.entries()) {
      const before = reading.errors.length;
      if (entry === null && (reading.strict || ofObjects))
        reportProblem(reading, pointer, String(index), label, withNull, entry);
      const value =
        readItem.inTurns === undefined
          ? readItem(entry, reading, pointer, String(index))
          : yield* readItem.inTurns(entry, reading, pointer, String(index));
      if (value !== undefined && (value !== "" || !reading.strict)) values.push(value);
      else if (reading.strict && reading.errors.length === before)
        reportProblem(reading, pointer, String(index), label, withNull, entry);
      else if (skips && !reading.strict && reading.errors[before]?.code === "type_mismatch")
        reading.errors.length = before;
      yield;
    }
    if (values.length < minItems && reading.errors.length === atStart)
      return reportProblem(reading, parent, step, label, { ...short, came: String(values.length) }, given);
    return values;
  }
  return withTurns(inTurns);
}
