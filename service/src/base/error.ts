/** What the caller did wrong, thrown by any room and answered by `http`. Whatever else is thrown is our own trouble and answers 500. */
import { type ErrorCode, errorCodes, type FieldCode, type FieldError } from "@brume/api/errors.ts";

export class ApiError extends Error {
  readonly code: ErrorCode;
  readonly errors: readonly FieldError[];
  /** Seconds for `Retry-After`. */
  readonly retryAfter: number | undefined;

  constructor(code: ErrorCode, detail: string, errors: readonly FieldError[] = [], retryAfter?: number) {
    super(detail);
    this.name = "Fault";
    this.code = code;
    this.errors = errors;
    this.retryAfter = retryAfter;
  }

  get status(): number {
    return errorCodes[this.code].status;
  }
}

export const fieldError = (pointer: string, code: FieldCode | ErrorCode, detail: string): FieldError => ({
  pointer,
  code,
  detail,
});

/** 400 with one entry per field that is not valid. */
export function invalidFields(errors: readonly FieldError[]): ApiError {
  const count = errors.length;
  return new ApiError(
    "validation_failed",
    count === 1 ? "1 field is not valid." : `${count} fields are not valid.`,
    errors,
  );
}

/** 400 for parameters of a query, with one entry for each that is not valid. */
export function invalidQuery(errors: readonly FieldError[]): ApiError {
  const detail = errors.length === 1 ? (errors[0]?.detail ?? "") : `${errors.length} parameters are not valid.`;
  return new ApiError(
    "query_invalid",
    detail,
    errors.map((error) => ({ ...error, code: "query_invalid" })),
  );
}

/** A fault that stands alone, with a field to blame. */
export function errorAt(code: ErrorCode, pointer: string, detail: string): ApiError {
  return new ApiError(code, detail, [fieldError(pointer, code, detail)]);
}
