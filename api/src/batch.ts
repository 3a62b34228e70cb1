/** Server groups: servers that are created and deleted as a unit. `GET /server?batch=ID` lists the servers of a group. */
import { type Static, Type } from "typebox";
import { id, integer, list, name, optional, optionalId, word } from "./common.ts";
import { operations } from "./operation.ts";
import { planErrors, Server } from "./server.ts";
import { createServerFields, hostNameField } from "./serverinput.ts";

/** Maximum number of servers in a group. */
export const mostMembers = 100;
/** Policies of a group if the creation of a server fails. */
export const policies = ["Atomic", "BestEffort"] as const;
/** Values of `State` of a group (docs/spec.md#server-group-states). */
export const batchStates = ["New", "Active", "Failed", "Deleting"] as const;

/** One server of a group. Fields beside `Servers` are defaults for all of them; `{n}` in a name is the number of the server. */
const BatchMember = Type.Object({
  Name: optional(name()),
  HostName: hostNameField({ maxLength: 128 }),
  ...createServerFields,
});
/** Request to create a group. */
export const CreateBatchInput = Type.Object({
  ...BatchMember.properties,
  Count: optional(
    integer(1, mostMembers, { description: "Number of servers. `{n}` in names is replaced by 1 to `Count`." }),
  ),
  Names: optional(list(name(), { minItems: 1, maxItems: mostMembers })),
  Servers: optional(list(BatchMember, { minItems: 1, maxItems: mostMembers })),
  Policy: optional(
    word(policies, {
      description: "`Atomic` (default): all servers or none. `BestEffort`: each server succeeds or fails on its own.",
    }),
  ),
});
/** A parsed request to create a group. */
export type CreateBatchInput = Static<typeof CreateBatchInput>;

/** A group of servers. */
export const Batch = Type.Object(
  {
    ID: id(),
    Policy: word(policies),
    State: word(batchStates),
    Servers: list(Server),
    Errors: list(
      Type.Object({
        Index: integer(0, mostMembers - 1),
        Error: Type.Unknown({ description: "Error object, as in an error response." }),
      }),
    ),
  },
  { title: "Batch" },
);
/** TypeScript type of this schema. */
export type Batch = Static<typeof Batch>;

/** Operations on server groups. */
export const batchOperations = operations({
  createBatch: {
    method: "POST",
    path: "/server-batch",
    access: "server:write",
    summary: "Create a group of servers",
    description:
      "Send exactly one of `Count`, `Names` and `Servers`. Quotas and capacity are checked for the sum. Errors name the element, such as `/Servers/2/CPU`.",
    body: CreateBatchInput,
    answer: Batch,
    errors: ["batch_form_invalid", ...planErrors],
  },
  deleteBatch: {
    method: "DELETE",
    path: "/server-batch",
    access: "server:write",
    summary: "Delete a group of servers",
    description: "Send `ID` or `ServerIDs`, in the body or in the query. Atomic: all servers are deleted or none.",
    query: Type.Object({ ID: optionalId(), ServerIDs: optional(list(id(), { maxItems: mostMembers })) }),
    body: Type.Object({
      ID: optionalId({ description: "Id of a group; all its servers are deleted." }),
      ServerIDs: optional(
        list(id(), { maxItems: mostMembers, description: "Ids of servers, with or without a group." }),
      ),
    }),
    answer: null,
    repeatable: true,
    errors: ["server_not_found", "batch_not_found", "server_protected"],
  },
});
