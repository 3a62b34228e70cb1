/** The contract of the API: all operations by operation id. Request reader, OpenAPI document and SDK are derived from it. */
import { accountOperations } from "./account.ts";
import { batchOperations } from "./batch.ts";
import { catalogOperations, imageOperations } from "./catalog.ts";
import { claimOperations } from "./claim.ts";
import { diskCopyOperations } from "./diskcopy.ts";
import { dnsOperations } from "./dns.ts";
import { eventOperations } from "./event.ts";
import { monitorOperations } from "./monitor.ts";
import { networkOperations } from "./network.ts";
import type { Operation } from "./operation.ts";
import { orphanOperations } from "./orphan.ts";
import { serverOperations } from "./server.ts";
import { serviceOperations } from "./service.ts";
import { sessionOperations } from "./session.ts";
import { settingOperations } from "./setting.ts";
import { tokenOperations } from "./token.ts";
import { webhookOperations } from "./webhook.ts";

/** All operations, by operation id. */
export const contract = {
  ...serverOperations,
  ...batchOperations,
  ...monitorOperations,
  ...catalogOperations,
  ...imageOperations,
  ...dnsOperations,
  ...claimOperations,
  ...networkOperations,
  ...accountOperations,
  ...sessionOperations,
  ...tokenOperations,
  ...eventOperations,
  ...orphanOperations,
  ...diskCopyOperations,
  ...webhookOperations,
  ...settingOperations,
  ...serviceOperations,
} as const satisfies Readonly<Record<string, Operation>>;

/** All operations by id, with their schemas as types. */
export type Contract = typeof contract;
/** An `operationId` of OpenAPI, and the name of a method of the client. */
export type OperationName = keyof Contract;
/** Ids of all operations. */
export const operationNames = Object.keys(contract) as OperationName[];
