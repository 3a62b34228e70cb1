/** How reading tells what is wrong: a pointer, a code, and a sentence that says what was wanted and what came instead. */
import type { FieldCode, FieldError } from "@brume/api/errors.ts";
import type { FieldProblem } from "../../base/fieldproblem.ts";
import { isFormNode, partsOf } from "./form.ts";
import { isList, isWrittenNumber, textOf } from "./json.ts";
import type { Mode } from "./scalar.ts";
import { quote } from "./text.ts";

/** A client that does everything wrong a million times is told so a thousand times. */
const maxFaults = 1000;

/** One body being read. */
export interface Reading extends Mode {
  readonly faults: FieldError[];
  /** Two spellings of one name were met. */
  ambiguous: boolean;
  /** Names that strict mode does not know and lets pass, of the whole object only. */
  readonly ignored?: ReadonlySet<string>;
}

/** How a field speaks of itself in faults. */
export interface Speaker {
  readonly name: string;
  /** What came is not repeated. */
  readonly secret: boolean;
}

/** The value at `parent/step` was refused. */
export function reportRefusal(
  reading: Reading,
  parent: string,
  step: string,
  speaker: Speaker,
  refusal: FieldProblem,
  given: unknown,
): undefined {
  const came = refusal.came ?? (speaker.secret ? undefined : describe(given));
  const instead = came === undefined ? "" : `, not ${came}`;
  return report(reading, parent, step, refusal.code, `${speaker.name} ${refusal.must}${instead}.`);
}

export function report(reading: Reading, parent: string, step: string, code: FieldCode, detail: string): undefined {
  if (reading.faults.length < maxFaults) reading.faults.push({ pointer: `${parent}/${step}`, code, detail });
  return undefined;
}

function describe(given: unknown): string {
  if (typeof given === "string") return quote(given);
  if (isWrittenNumber(given)) return textOf(given).slice(0, 40);
  if (isList(given)) return "a list";
  if (isFormNode(given) && partsOf(given).size === 0) return quote(given.values.join(","));
  return typeof given === "object" && given !== null ? "an object" : String(given);
}
