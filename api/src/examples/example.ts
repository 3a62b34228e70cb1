/** The type of an example, and the two dates that all examples use. */
import type { Contract, OperationName } from "../contract.ts";
import type { Answer, Body, Operation } from "../operation.ts";

export interface Example<Op extends Operation = Operation> {
  /** Ids of the path, in order. */
  readonly path?: readonly number[];
  readonly request?: Body<Op>;
  readonly answer?: Answer<Op>;
}

export type Examples = { readonly [Name in OperationName]?: Example<Contract[Name]> };
export const date = "2026-11-20T09:15:00.120Z";
export const later = "2026-11-20T09:20:11.007Z";
