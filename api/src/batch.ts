/** Groups: servers that are made, and can be deleted, as a unit. They are read one by one (`GET /server?batch=`). */
import { type Static, Type } from "typebox";
import { id, integer, list, name, optional, optionalId, word } from "./common.ts";
import { operations } from "./operation.ts";
import { hostNameField, planFaults, Server, wishFields } from "./server.ts";

export const mostMembers = 100;
export const policies = ["Atomic", "BestEffort"] as const;
export const batchStates = ["New", "Active", "Failed", "Deleting"] as const;

/** Of a group: `{n}` counts in names, and what all have in common may stand beside `Servers`. */
const BatchMember = Type.Object({ Name: optional(name()), HostName: hostNameField({ maxLength: 128 }), ...wishFields });
export const BatchWish = Type.Object({
  ...BatchMember.properties,
  Count: optional(integer(1, mostMembers, { description: "`{n}` in names becomes 1 to `Count`." })),
  Names: optional(list(name(), { minItems: 1, maxItems: mostMembers })),
  Servers: optional(list(BatchMember, { minItems: 1, maxItems: mostMembers })),
  Policy: optional(word(policies, { description: "All servers come to be or none (default), or each for itself." })),
});
export type BatchWish = Static<typeof BatchWish>;

export const Batch = Type.Object(
  {
    ID: id(),
    Policy: word(policies),
    State: word(batchStates),
    Servers: list(Server),
    Errors: list(
      Type.Object({
        Index: integer(0, mostMembers - 1),
        Error: Type.Unknown({ description: "A full error object." }),
      }),
    ),
  },
  { title: "Batch" },
);
export type Batch = Static<typeof Batch>;

export const batchOperations = operations({
  createBatch: {
    method: "POST",
    path: "/server-batch",
    access: "server:write",
    summary: "Create a group of servers",
    description:
      "Exactly one of `Count`, `Names` and `Servers`. Quotas and room are checked for the sum, faults name the element (`/Servers/2/CPU`).",
    body: BatchWish,
    answer: Batch,
    faults: ["batch_form_invalid", ...planFaults],
  },
  deleteBatch: {
    method: "DELETE",
    path: "/server-batch",
    access: "server:write",
    summary: "Delete a group of servers, or several, as a unit",
    description: "`ID` or `ServerIDs`, in the body or, if it has neither, in the query. All or none.",
    query: Type.Object({ ID: optionalId(), ServerIDs: optional(list(id(), { maxItems: mostMembers })) }),
    body: Type.Object({
      ID: optionalId({ description: "The group with all its servers." }),
      ServerIDs: optional(list(id(), { maxItems: mostMembers, description: "Servers of any origin." })),
    }),
    answer: null,
    repeatable: true,
    faults: ["server_not_found", "batch_not_found", "server_protected"],
  },
});
