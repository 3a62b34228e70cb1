/** Why the value of a field is not taken, before it is known under which name the caller sent it. */
import type { FieldCode } from "@brume/api/errors.ts";

export interface FieldProblem {
  readonly code: FieldCode;
  /** Half a sentence that follows the name of the field: `must be …`. */
  readonly must: string;
  /** What there was instead, if that says more than the value. */
  readonly came?: string;
}

export const fieldProblem = (code: FieldCode, must: string): FieldProblem => ({ code, must });
