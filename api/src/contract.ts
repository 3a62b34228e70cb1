/** The sum of what the API promises: one object, by name of operation. */
import { accountOperations } from "./account.ts";
import { dnsOperations } from "./dns.ts";
import { eventOperations } from "./event.ts";
import type { Operation } from "./operation.ts";
import { serviceOperations } from "./service.ts";

export const contract = {
  ...dnsOperations,
  ...accountOperations,
  ...eventOperations,
  ...serviceOperations,
} as const satisfies Readonly<Record<string, Operation>>;

export type Contract = typeof contract;
export type OperationName = keyof Contract;
export const operationNames = Object.keys(contract) as OperationName[];
