/** The type of an example, and two dates for examples. */
import type { Contract, OperationName } from "../contract.ts";
import type { Answer, Body, Operation } from "../operation.ts";

/** Example of request and response of an operation. */
export interface Example<Op extends Operation = Operation> {
  /** Ids of the path, in order. */
  readonly path?: readonly number[];
  readonly request?: Body<Op>;
  readonly answer?: Answer<Op>;
}

/** Examples by operation id. */
export type Examples = { readonly [Name in OperationName]?: Example<Contract[Name]> };
/** Date of creations in the examples. */
export const date = "2026-11-20T09:15:00.120Z";
/** A later date in the examples. */
export const later = "2026-11-20T09:20:11.007Z";
