/** Servers: virtual machines with a disk, network addresses and a guest operating system. */
import type { Static } from "typebox";
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
  object,
  optional,
  optionalId,
  shownAs,
  text,
  word,
  wordsFilter,
} from "./common.ts";
import type { ErrorCode } from "./errors.ts";
import { operations } from "./operation.ts";
import { CreateServerInput, hddTypes, ServerCopy, ServerRebuild, serverEditFields, sizes } from "./serverinput.ts";
import { MachineError } from "./work.ts";

/** Condition of the VM, besides on and off. */
export const serverConditions = ["Normal", "NotResponding", "IoError", "Paused"] as const;

/** Kinds of networks that a server can be linked to. */
export const networkTypes = ["PublicShared", "PublicClient", "PrivateClient"] as const;

/** A link of a server to a network. */
export const ServerLink = object("ServerLink", "A link of a server to a network.", {
  LinkID: id({ description: "Id of the link." }),
  NetworkID: id({ description: "Id of the network." }),
  LinkState: word(["New", "Active"], {
    description: "`New`: being created. `Active`: the VM has the NIC, and its address is served.",
  }),
  NetworkType: word(networkTypes, {
    description:
      "`PublicShared`: the shared network of the location. `PublicClient`: a public network. `PrivateClient`: a private network.",
  }),
  NetworkName: text({ description: "Name of the network." }),
  IP: text({ description: "IPv4 address of the server in this network." }),
  MAC: text({ description: "MAC address of the NIC: six pairs of lower-case hexadecimal digits." }),
  Mask: text({ description: "Network mask, such as `255.255.255.0`." }),
  Gateway: text({ description: "Default route in this network. Empty: none." }),
  Bandwidth: integer(1, 10_000, { description: "Mbit/s in each direction." }),
  IP6: text({ description: "IPv6 address of the server in this network. Empty: none." }),
});
/** TypeScript type of this schema. */
export type ServerLink = Static<typeof ServerLink>;

/** A virtual machine with its links, SSH keys and state. */
export const Server = object("Server", "A virtual server.", {
  ID: id({ description: "Id of the server." }),
  Name: name({ description: "Name of the server." }),
  HostName: text({ description: "Host name of the guest." }),
  State: word(serverStates, {
    description:
      "`New`: being created. `Active`: exists; `IsPowerOn` is its power state. `Blocked`: its project is blocked. `Deleting`: being deleted. `Failed`: could not be created; see `Error`. `NeedMoney`: never used.",
  }),
  IsPowerOn: boolean({ description: "Whether the VM is running now (refreshed every 5 s)." }),
  CPU: integer(sizes.CPU.minimum, sizes.CPU.maximum, { description: "Number of virtual CPUs." }),
  RAM: integer(sizes.RAM.minimum, sizes.RAM.maximum, { description: "Memory in MB." }),
  HDD: integer(sizes.HDD.minimum, sizes.HDD.maximum, { description: "Size of the disk in GB." }),
  IP: text({ description: "Address of the first link to the shared network or a public network. Empty: none." }),
  AdminUserName: text({ description: "User that may log in: `root`, with Windows `Administrator`." }),
  AdminPassword: text({ description: "Password of `AdminUserName`. Empty for tokens without `server:write`." }),
  Image: text({ description: "Name of the image that the server was created from." }),
  IsHighPerformance: boolean({ description: "`true`: twice the CPU share when the host's CPUs are contended." }),
  HDDType: word(hddTypes, { description: "Kind of storage as requested; without effect." }),
  PrimaryNetworkIp: text({ description: "Address of the first link. Empty: none." }),
  LinkedNetworks: list(ServerLink, { description: "Links to networks, by `LinkID`." }),
  DCLocation: text({ description: "`TechTitle` of the location." }),
  ImageFamily: word(families, { description: "Operating system family of the image." }),
  LinkedSshKeys: list(SshKey, { description: "SSH keys that were written into the guest." }),
  DateCreate: date({ description: "When the server was created." }),
  ImageID: id({ description: "Id of the image that the server was created from." }),
  BatchID: nullable(id({ description: "Id of the group that the server belongs to. `null`: none." })),
  IsProtected: boolean({ description: "`true`: delete and rebuild are rejected." }),
  Error: nullable(MachineError),
  isBackupActive: boolean({ description: "`true`: a daily backup." }),
  BackupPeriod: integer(7, 28, { enum: [7, 14, 21, 28], description: "Days until a backup is deleted." }),
  Condition: word(serverConditions, {
    description:
      "Condition of the running VM. `Normal`: it works. `NotResponding`: QEMU has not responded for 10 s. `IoError`: its disk cannot be written; it resumes when there is space. `Paused`: paused for another reason.",
  }),
  Crashes: integer(0, Number.MAX_SAFE_INTEGER, { description: "Number of times the VM ended unexpectedly." }),
  Labels,
});
/** TypeScript type of this schema. */
export type Server = Static<typeof Server>;

/** Request to update a server. */
export const ServerEdit = object(
  "UpdateServerRequest",
  "What changes. Absent fields stay unchanged.",
  serverEditFields,
  shownAs(Server),
);
/** TypeScript type of this schema. */
export type ServerEdit = Static<typeof ServerEdit>;

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
    summary: "List servers",
    description: "Returns the servers of the project, by id.",
    query: listQuery({
      name: nameFilter,
      state: wordsFilter(serverStates),
      label: labelFilter,
      batch: optionalId({ description: "Id of a server group." }),
      location: optional(text({ description: "Names of locations, separated by commas." })),
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
    summary: "Get a server",
    description: "Returns the server with its links, SSH keys and present power state.",
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
    description:
      "Queues the action behind the running actions of the server. Read the action to follow its progress, or send `Prefer: wait`.",
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
    description: "Returns at most the last 1000 actions.",
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
    description: "Returns the action with its steps. Does not count towards the rate limit.",
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
