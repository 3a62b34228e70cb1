/** What the caller did wrong, thrown by any room and answered by `http`. Whatever else is thrown is our own trouble and answers 500. */
import { type FaultCode, type FieldCode, type FieldFault, faults } from "@brume/api/errors.ts";

export class Fault extends Error {
  readonly code: FaultCode;
  readonly errors: readonly FieldFault[];
  /** Seconds for `Retry-After`. */
  readonly retryAfter: number | undefined;

  constructor(code: FaultCode, detail: string, errors: readonly FieldFault[] = [], retryAfter?: number) {
    super(detail);
    this.name = "Fault";
    this.code = code;
    this.errors = errors;
    this.retryAfter = retryAfter;
  }

  get status(): number {
    return faults[this.code].status;
  }
}

export const fieldFault = (pointer: string, code: FieldCode | FaultCode, detail: string): FieldFault => ({
  pointer,
  code,
  detail,
});

/** 400 with one entry per field that is not valid. */
export function invalidFields(errors: readonly FieldFault[]): Fault {
  const count = errors.length;
  return new Fault(
    "validation_failed",
    count === 1 ? "1 field is not valid." : `${count} fields are not valid.`,
    errors,
  );
}

/** 400 for parameters of a query, with one entry for each that is not valid. */
export function invalidQuery(errors: readonly FieldFault[]): Fault {
  const detail = errors.length === 1 ? (errors[0]?.detail ?? "") : `${errors.length} parameters are not valid.`;
  return new Fault(
    "query_invalid",
    detail,
    errors.map((error) => ({ ...error, code: "query_invalid" })),
  );
}

/** A fault that stands alone, with a field to blame. */
export function faultAt(code: FaultCode, pointer: string, detail: string): Fault {
  return new Fault(code, detail, [fieldFault(pointer, code, detail)]);
}
