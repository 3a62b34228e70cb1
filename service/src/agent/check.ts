/** Checks values with the schemas of the contract. A schema is compiled at its first use, so that a start does not wait for all of them. */
import type { TSchema } from "typebox";
import { Compile } from "typebox/compile";
import { AgentError } from "./error.ts";

/** Checks values of one schema. */
export interface Checker {
  /** Returns the value if it fits the schema. Throws `input_invalid` with the field and what was expected, never the value. */
  check(value: unknown): unknown;
}

/** Creates a checker. `what` begins the message: `machines.ensureDisk: `. */
export function createChecker(schema: TSchema, what: string): Checker {
  let compiled: ReturnType<typeof Compile> | undefined;
  return {
    check(value) {
      compiled ??= Compile(schema);
      if (compiled.Check(value)) return value;
      throw new AgentError("input_invalid", `${what}: ${describe(compiled.Errors(value))}`);
    },
  };
}

/** Describes the deepest error: of a union, each alternative reports errors, and the deepest is of the one that fits best. */
function describe(errors: Iterable<{ readonly instancePath: string; readonly message: string }>): string {
  let best = { instancePath: "", message: "it does not fit the schema" };
  for (const error of errors)
    if (error.instancePath.split("/").length > best.instancePath.split("/").length) best = error;
    else if (best.message === "it does not fit the schema") best = error;
  return `${best.instancePath.slice(0, 200) || "the value"} ${best.message.slice(0, 300)}`;
}
