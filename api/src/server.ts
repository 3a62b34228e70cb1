/** Servers: virtual machines with a disk, network addresses and a guest operating system. */
import { type Static, Type } from "typebox";
import { Action, ActionInput, actionStates, actionTypes, serverStates } from "./action.ts";
import { families, SshKey } from "./catalog.ts";
import {
  boolean,
  date,
  id,
  integer,
  Labels,
  labelFilter,
  list,
  listQuery,
  name,
  nameFilter,
  nullable,
  optional,
  optionalId,
  text,
  word,
  wordsFilter,
} from "./common.ts";
import type { ErrorCode } from "./errors.ts";
import { operations } from "./operation.ts";
import { CreateServerInput, hddTypes, ServerCopy, ServerEdit, ServerRebuild, sizes } from "./serverinput.ts";
import { MachineError } from "./work.ts";

/** Condition of the VM, besides on and off. */
export const serverConditions = ["Normal", "NotResponding", "IoError", "Paused"] as const;

/** Kinds of networks that a server can be linked to. */
export const networkTypes = ["PublicShared", "PublicClient", "PrivateClient"] as const;

/** A link of a server to a network. */
export const ServerLink = Type.Object(
  {
    LinkID: id(),
    NetworkID: id(),
    LinkState: word(["New", "Active"]),
    NetworkType: word(networkTypes),
    NetworkName: text(),
    IP: text(),
    MAC: text(),
    Mask: text(),
    Gateway: text(),
    Bandwidth: integer(1, 10_000, { description: "Mbit/s in each direction." }),
    IP6: text(),
  },
  { title: "ServerLink" },
);
/** TypeScript type of this schema. */
export type ServerLink = Static<typeof ServerLink>;

/** A virtual server: its desired state, and what was last observed of its VM. */
export const Server = Type.Object(
  {
    ID: id(),
    Name: name(),
    HostName: text(),
    State: word(serverStates),
    IsPowerOn: boolean({ description: "Whether the VM is running now (refreshed every 5 s)." }),
    CPU: integer(sizes.CPU.minimum, sizes.CPU.maximum, { description: "Number of virtual CPUs." }),
    RAM: integer(sizes.RAM.minimum, sizes.RAM.maximum, { description: "MB." }),
    HDD: integer(sizes.HDD.minimum, sizes.HDD.maximum, { description: "GB." }),
    IP: text({ description: "Address of the first link to the shared network or a public network." }),
    AdminUserName: text(),
    AdminPassword: text({ description: "Password of `AdminUserName`. Empty for tokens without `server:write`." }),
    Image: text(),
    IsHighPerformance: boolean(),
    HDDType: word(hddTypes),
    PrimaryNetworkIp: text({ description: "Address of the first link." }),
    LinkedNetworks: list(ServerLink),
    DCLocation: text(),
    ImageFamily: word(families),
    LinkedSshKeys: list(SshKey),
    DateCreate: date(),
    ImageID: id(),
    BatchID: nullable(id()),
    IsProtected: boolean(),
    Error: nullable(MachineError),
    isBackupActive: boolean(),
    BackupPeriod: integer(7, 28, { description: "Days until a backup is deleted." }),
    Condition: word(serverConditions, {
      description:
        "Condition of the running VM. `NotResponding`: QEMU has not responded for 10 s. `IoError`: its disk cannot be written; it resumes when there is space. `Paused`: paused for another reason.",
    }),
    Crashes: integer(0, Number.MAX_SAFE_INTEGER, { description: "Number of times the VM ended unexpectedly." }),
    Labels,
  },
  { title: "Server" },
);
/** TypeScript type of this schema. */
export type Server = Static<typeof Server>;

/** Path parameter of a server. */
export const serverParam = { id: "server_not_found" } as const;
const actionParams = { id: "server_not_found", actionID: "action_not_found" } as const;

/** Errors that reject the creation of a server. */
export const planErrors = [
  "image_not_ready",
  "location_mismatch",
  "network_deleting",
  "disk_too_small",
  "quota_exceeded",
  "no_capacity",
  "engine_unavailable",
  "address_taken",
  "network_full",
] as const satisfies readonly ErrorCode[];

/** Operations on servers and their actions. */
export const serverOperations = operations({
  listServers: {
    method: "GET",
    path: "/server",
    access: "server:read",
    observes: true,
    summary: "List servers",
    query: listQuery({
      name: nameFilter,
      state: wordsFilter(serverStates),
      label: labelFilter,
      batch: optionalId({ description: "Id of a server group." }),
      location: optional(text()),
      network: optional(text({ description: "Ids or names of networks, separated by commas." })),
      ip: optional(text({ description: "An address of a server." })),
    }),
    answer: list(Server),
    list: true,
  },
  createServer: {
    method: "POST",
    path: "/server",
    access: "server:write",
    summary: "Create a server",
    description:
      "The response contains the addresses. Disk, network and boot follow in the background; the action `Create` shows the progress.",
    body: CreateServerInput,
    answer: Server,
    etag: true,
    resultOperation: "readServer",
    errors: planErrors,
  },
  readServer: {
    method: "GET",
    path: "/server/{id}",
    access: "server:read",
    observes: true,
    summary: "Get a server",
    params: serverParam,
    answer: Server,
    etag: true,
  },
  updateServer: {
    method: "PUT",
    path: "/server/{id}",
    access: "server:write",
    summary: "Update a server",
    description:
      "Returns the action `Resize`. Changes that the guest supports are applied live. Others need a restart; `AllowRestart: false` rejects them.",
    params: serverParam,
    body: ServerEdit,
    answer: Action,
    resultOperation: "readAction",
    repeatable: true,
    errors: [
      "action_not_allowed",
      "queue_full",
      "quota_exceeded",
      "no_capacity",
      "disk_cannot_shrink",
      "restart_needed",
    ],
  },
  deleteServer: {
    method: "DELETE",
    path: "/server/{id}",
    access: "server:write",
    summary: "Delete a server",
    description: "Runs before all queued actions of the server.",
    params: serverParam,
    answer: null,
    resultOperation: "readServer",
    repeatable: true,
    errors: ["server_protected"],
  },
  copyServer: {
    method: "POST",
    path: "/server/{id}/copy",
    access: "server:write",
    summary: "Copy a server",
    description:
      "Copies a snapshot of the disk, powered on or off. The copy is queued behind the running actions of the server and gets its own identity.",
    params: serverParam,
    body: ServerCopy,
    answer: Server,
    etag: true,
    resultOperation: "readServer",
    errors: ["action_not_allowed", "queue_full", ...planErrors],
  },
  rebuildServer: {
    method: "POST",
    path: "/server/{id}/rebuild",
    access: "server:write",
    summary: "Rebuild a server from an image",
    description: "Name, addresses, sizes and labels are kept. The disk and the identity of the guest are new.",
    params: serverParam,
    body: ServerRebuild,
    answer: Server,
    etag: true,
    resultOperation: "readServer",
    errors: [
      "server_protected",
      "action_not_allowed",
      "queue_full",
      "disk_too_small",
      "image_not_ready",
      "location_mismatch",
    ],
  },
  startAction: {
    method: "POST",
    path: "/server/{id}/action",
    access: "server:write",
    summary: "Start an action",
    params: serverParam,
    body: ActionInput,
    answer: Action,
    resultOperation: "readAction",
    errors: [
      "action_not_allowed",
      "server_busy",
      "queue_full",
      "already_linked",
      "range_overlap",
      "location_mismatch",
      "network_full",
      "address_taken",
      "network_deleting",
      "not_linked",
    ],
  },
  listActions: {
    method: "GET",
    path: "/server/{id}/action",
    access: "server:read",
    summary: "List the actions of a server, newest first",
    params: serverParam,
    query: listQuery({ state: wordsFilter(actionStates), type: wordsFilter(actionTypes) }),
    answer: list(Action),
    list: true,
  },
  readAction: {
    method: "GET",
    path: "/server/{id}/action/{actionID}",
    access: "server:read",
    unlimited: true,
    summary: "Get an action",
    params: actionParams,
    answer: Action,
  },
  cancelAction: {
    method: "POST",
    path: "/server/{id}/action/{actionID}/cancel",
    access: "server:write",
    summary: "Cancel an action",
    description: "A queued action ends at once. A running action ends at its next step if that step can be undone.",
    params: actionParams,
    answer: Action,
    resultOperation: "readAction",
    errors: ["action_not_allowed"],
  },
});
