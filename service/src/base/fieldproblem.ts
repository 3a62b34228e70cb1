/** Why the value of a field is invalid. The caller adds the name of the field. */
import type { FieldCode } from "@brume/api/errors.ts";

export interface FieldProblem {
  readonly code: FieldCode;
  /** End of a sentence that starts with the name of the field: `must be …`. */
  readonly must: string;
  /** Description of the invalid value, if it is clearer than the value. */
  readonly came?: string;
}

export const fieldProblem = (code: FieldCode, must: string): FieldProblem => ({ code, must });
