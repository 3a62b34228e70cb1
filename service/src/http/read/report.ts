/** Reports errors of fields: a pointer, a code, and a sentence with the expected and the actual value. */

import type { FieldCode, FieldError } from "@brume/api/errors.ts";
import type { FieldProblem } from "../../base/error.ts";
import { isFormNode, partsOf } from "./form.ts";
import { isList, isWrittenNumber, textOf } from "./json.ts";
import type { Mode } from "./scalar.ts";
import { quote } from "./text.ts";

/** Maximum number of errors of one request. */
export const maxErrors = 1000;

/** State of the parsing of one body. */
export interface Reading extends Mode {
  readonly errors: FieldError[];
  /** The body contains two spellings of one name. */
  ambiguous: boolean;
}

/** A field as errors name it. */
export interface FieldLabel {
  readonly name: string;
  /** The value is secret: errors do not contain it. */
  readonly secret: boolean;
}

/** Reports that the value at `parent/step` is not valid. Returns undefined. */
export function reportProblem(
  reading: Reading,
  parent: string,
  step: string,
  label: FieldLabel,
  problem: FieldProblem,
  given: unknown,
): undefined {
  const actual = problem.came ?? (label.secret ? undefined : describe(given));
  const instead = actual === undefined ? "" : `, not ${actual}`;
  return report(reading, parent, step, problem.code, `${label.name} ${problem.must}${instead}.`);
}

/** Reports an error at `parent/step`. Returns undefined. */
export function report(reading: Reading, parent: string, step: string, code: FieldCode, detail: string): undefined {
  if (reading.errors.length < maxErrors) reading.errors.push({ pointer: `${parent}/${step}`, code, detail });
  return undefined;
}

function describe(given: unknown): string {
  if (typeof given === "string") return quote(given);
  if (isWrittenNumber(given)) return textOf(given).slice(0, 40);
  if (isList(given)) return "a list";
  if (isFormNode(given) && partsOf(given).size === 0) return quote(given.values.slice(0, 100).join(","));
  return typeof given === "object" && given !== null ? "an object" : String(given);
}
