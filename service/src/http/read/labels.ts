/** Parses a map of labels (docs/spec.md#dates-ids-names-labels). The client chooses the keys, so they keep their letter case. */
import { fieldProblem } from "../../base/error.ts";
import { repeatedKeys } from "./json.ts";
import { type FieldLabel, type Reading, report, reportProblem } from "./report.ts";
import { count, type Schema } from "./scalar.ts";
import { entriesOf, isBlank, toSource } from "./shape.ts";
import { pointerStep, quote } from "./text.ts";

type Read = (given: unknown, reading: Reading, parent: string, step: string) => unknown;

const mismatch = fieldProblem("type_mismatch", "must be an object of texts");

/** Returns the parser of a map of labels. `readText` parses a single value as text. */
export function compileLabels(schema: Schema, label: FieldLabel, readText: Read): Read {
  const { maxProperties = Number.POSITIVE_INFINITY } = schema;
  const keyPattern = new RegExp(schema.propertyNames?.pattern ?? "", "u");
  const valuePattern = new RegExp(schema.additionalProperties?.pattern ?? "", "u");
  const formOf = (part: Schema | undefined) => part?.["x-pattern-description"] ?? "";
  const oddKey = fieldProblem("format_invalid", `must have keys of ${formOf(schema.propertyNames)}`);
  const oddValue = fieldProblem("format_invalid", `must have values of ${formOf(schema.additionalProperties)}`);
  const many = fieldProblem("too_long", `must have at most ${count(maxProperties, "label")}`);
  return (given, reading, parent, step) => {
    if (!reading.strict && isBlank(given)) return undefined;
    const source = toSource(given);
    if (source === null) return reportProblem(reading, parent, step, label, mismatch, given);
    const entries = entriesOf(source);
    if (entries.length > maxProperties)
      return reportProblem(reading, parent, step, label, { ...many, came: String(entries.length) }, given);
    const pointer = `${parent}/${step}`;
    const labels: Record<string, unknown> = {};
    const fits = (sent: unknown): boolean => typeof sent !== "string" || valuePattern.test(sent);
    for (const [key, entry] of entries) {
      const at = pointerStep(key);
      if (repeatedKeys(source).has(key) && reading.strict)
        report(reading, pointer, at, "duplicate_field", `${label.name} has ${quote(key)} more than once.`);
      const value = readText(entry, reading, pointer, at);
      if (!keyPattern.test(key)) reportProblem(reading, pointer, at, label, oddKey, key);
      else if (typeof value === "string" && !(valuePattern.test(value) && (!reading.strict || fits(entry))))
        reportProblem(reading, pointer, at, label, oddValue, value);
      else if (value !== undefined) labels[key] = value;
    }
    return labels;
  };
}
