/** Errors of clients. Any module throws them; `http` sends them as responses. Every other error becomes a 500 response. */
import { type ErrorCode, errorCodes, type FieldCode, type FieldError } from "@brume/api/errors.ts";

/** Error with a code of `errors.ts`. `detail` is a sentence for the client; `errors` names the fields that caused it. */
export class ApiError extends Error {
  readonly code: ErrorCode;
  readonly errors: readonly FieldError[];
  /** Seconds for `Retry-After`. */
  readonly retryAfter: number | undefined;

  constructor(code: ErrorCode, detail: string, errors: readonly FieldError[] = [], retryAfter?: number) {
    super(detail);
    this.name = "ApiError";
    this.code = code;
    this.errors = errors;
    this.retryAfter = retryAfter;
  }

  /** HTTP status of the code. */
  get status(): number {
    return errorCodes[this.code].status;
  }
}

/** Returns the error of one field. `pointer` is a JSON pointer. */
export const fieldError = (pointer: string, code: FieldCode | ErrorCode, detail: string): FieldError => ({
  pointer,
  code,
  detail,
});

/** Returns a 400 `validation_failed` with one entry per invalid field. */
export function invalidFields(errors: readonly FieldError[]): ApiError {
  const count = errors.length;
  return new ApiError(
    "validation_failed",
    count === 1 ? "1 field is not valid." : `${count} fields are not valid.`,
    errors,
  );
}

/** Returns a 400 `query_invalid` with one entry per invalid query parameter. */
export function invalidQuery(errors: readonly FieldError[]): ApiError {
  const detail = errors.length === 1 ? (errors[0]?.detail ?? "") : `${errors.length} parameters are not valid.`;
  return new ApiError(
    "query_invalid",
    detail,
    errors.map((error) => ({ ...error, code: "query_invalid" })),
  );
}

/** Returns an error with this code that one field caused. */
export function errorAt(code: ErrorCode, pointer: string, detail: string): ApiError {
  return new ApiError(code, detail, [fieldError(pointer, code, detail)]);
}

/** Why the value of a field is invalid. The caller adds the name of the field. */
export interface FieldProblem {
  readonly code: FieldCode;
  /** End of a sentence that starts with the name of the field: `must be …`. */
  readonly must: string;
  /** Description of the invalid value, if it is clearer than the value. */
  readonly came?: string;
}

/** Returns the problem; `must` as in `FieldProblem`. */
export const fieldProblem = (code: FieldCode, must: string): FieldProblem => ({ code, must });
