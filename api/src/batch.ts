/** Server groups: servers that are created and deleted as a unit. `GET /server?batch=ID` lists the servers of a group. */
import type { Static } from "typebox";
import { anything, fields, id, integer, list, name, object, optional, optionalId, word } from "./common.ts";
import { forms } from "./form.ts";
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
const BatchMember = object("BatchServerRequest", "One server of a group. Absent fields have the value of the group.", {
  Name: optional(name({ description: "Name of the server. Default: the name of the group." })),
  HostName: hostNameField({ maxLength: 128 }),
  ...createServerFields,
});
/** Request to create a group. */
export const CreateBatchInput = object(
  "CreateBatchRequest",
  "A group of servers. The fields of a server are the defaults for all servers.",
  {
    ...BatchMember.properties,
    Name: optional(
      name({
        description: "Name of each server. `{n}` is the number of the server; without it `-1`, `-2` … is appended.",
      }),
    ),
    Count: optional(
      integer(1, mostMembers, { description: "Number of servers. `{n}` in names is replaced by 1 to `Count`." }),
    ),
    Names: optional(
      list(name({ description: "Name of a server." }), {
        minItems: 1,
        maxItems: mostMembers,
        description: "Names of the servers.",
      }),
    ),
    Servers: optional(
      list(BatchMember, { minItems: 1, maxItems: mostMembers, description: "The servers, with fields of their own." }),
    ),
    Policy: optional(
      word(policies, {
        description: "`Atomic` (default): all servers or none. `BestEffort`: each server succeeds or fails on its own.",
      }),
    ),
  },
  forms([
    {
      title: "CreateBatchByCount",
      description: "Servers with numbered names.",
      needs: ["Count", "Name"],
      without: ["Names", "Servers"],
    },
    {
      title: "CreateBatchByNames",
      description: "Servers that differ only in their names.",
      needs: ["Names"],
      without: ["Count", "Servers"],
    },
    {
      title: "CreateBatchByServers",
      description: "Servers with fields of their own.",
      needs: ["Servers"],
      without: ["Count", "Names"],
    },
  ]),
);
/** TypeScript type of this schema. */
export type CreateBatchInput = Static<typeof CreateBatchInput>;

/** A group of servers. */
export const Batch = object("Batch", "A group of servers.", {
  ID: id({ description: "Id of the group." }),
  Policy: word(policies, {
    description: "`Atomic`: all servers or none. `BestEffort`: each server succeeds or fails on its own.",
  }),
  State: word(batchStates, {
    description:
      "`New`: servers are being created. `Active`: all servers, with `BestEffort` at least one, are created. `Failed`: the creation failed. `Deleting`: the group is being deleted.",
  }),
  Servers: list(Server, { description: "The servers, in the order of the request." }),
  Errors: list(
    object("BatchError", "Why a server of a group was rejected.", {
      Index: integer(0, mostMembers - 1, { description: "Position of the server in the request, from 0." }),
      Error: anything({ description: "Error object, as in an error response." }),
    }),
    { description: "With `BestEffort`, the servers that were rejected. Otherwise empty." },
  ),
});
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
    query: fields({
      ID: optionalId({ description: "Id of a group, if the body has neither field." }),
      ServerIDs: optional(
        list(id(), { maxItems: mostMembers, description: "Ids of servers, if the body has neither field." }),
      ),
    }),
    body: object(
      "DeleteBatchRequest",
      "What to delete. Without both fields, the query contains one of them.",
      {
        ID: optionalId({ description: "Id of a group; all its servers are deleted." }),
        ServerIDs: optional(
          list(id(), { maxItems: mostMembers, description: "Ids of servers, with or without a group." }),
        ),
      },
      forms([
        { title: "DeleteBatchById", description: "Deletes a group.", needs: ["ID"], without: ["ServerIDs"] },
        { title: "DeleteBatchServers", description: "Deletes servers.", without: ["ID"] },
      ]),
    ),
    answer: null,
    repeatable: true,
    errors: ["server_not_found", "batch_not_found", "server_protected"],
  },
});
