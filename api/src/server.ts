/** Servers: virtual machines with a disk, network addresses and a guest operating system. */
import { type Static, Type } from "typebox";
import { Action, ActionInput, actionStates, actionTypes, serverStates, waitForField } from "./action.ts";
import { families, SshKey } from "./catalog.ts";
import {
  boolean,
  date,
  id,
  ignored,
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
import { MachineError } from "./work.ts";

/** Limits and defaults of the size of a server. */
export const sizes = {
  /** Cores. */
  CPU: { minimum: 1, maximum: 64, default: 1 },
  /** MB. */
  RAM: { minimum: 128, maximum: 1_048_576, default: 512, step: 128 },
  /** GB. */
  HDD: { minimum: 1, maximum: 4096, default: 10 },
} as const;

/** Other limits of servers. */
export const serverLimits = {
  /** Bytes. */
  userData: 65_536,
  backupDays: 7,
} as const;

/** Stored and returned, without effect: a location has one kind of storage. */
export const hddTypes = ["SSD", "SAS", "SATA"] as const;
/** Kind of storage of a server. */
export type HddType = (typeof hddTypes)[number];

/** Condition of the VM, besides on and off. */
export const serverConditions = ["Normal", "NotResponding", "IoError", "Paused"] as const;

/** Kinds of networks that a server can be linked to. */
export const networkTypes = ["PublicShared", "PublicClient", "PrivateClient"] as const;

/** Letters, digits and hyphens; no hyphen at either end. */
export const hostNamePattern = "^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$";

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
/** A link in a response. */
export type ServerLink = Static<typeof ServerLink>;

/** A server. */
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
/** A server in a response. */
export type Server = Static<typeof Server>;

/** Fields that can be set at creation and updated later. */
const editable = {
  CPU: optional(integer(sizes.CPU.minimum, sizes.CPU.maximum, { description: "Number of virtual CPUs. Default 1." })),
  RAM: optional(
    integer(sizes.RAM.minimum, sizes.RAM.maximum, {
      multipleOf: sizes.RAM.step,
      description: "MB. Default 512, or the minimum of the image if that is more.",
    }),
  ),
  HDD: optional(
    integer(sizes.HDD.minimum, sizes.HDD.maximum, {
      description: "GB. A disk can only grow. Default 10, or the minimum of the image if that is more.",
    }),
  ),
  IsHighPerformance: optional(
    boolean({ description: "`true`: twice the CPU share when the host's CPUs are contended. Default `false`." }),
  ),
  HDDType: optional(word([...hddTypes, "HDD"], { description: "`HDD` is stored as `SAS`. Default `SSD`." })),
  IsProtected: optional(boolean({ description: "`true`: delete and rebuild are rejected. Default `false`." })),
  isBackupActive: optional(boolean({ description: "`true`: a daily backup. Default `false`." })),
  BackupPeriod: optional(
    integer(7, 28, { enum: [7, 14, 21, 28], "x-id": true, description: "Days until a backup is deleted. Default 7." }),
  ),
  Labels: optional(Labels),
};

/** Creates the request field `HostName` with further options. */
export const hostNameField = (options: object) =>
  optional(text({ description: "Host name of the guest. Default: derived from `Name`.", ...options }));
const oneHostName = hostNameField({
  // An empty text selects the default.
  pattern: `^$|${hostNamePattern}`,
  "x-says": "1-63 of a-z, 0-9 and -, no hyphen at the ends",
});
const imageReference = optional(
  text({
    maxLength: 64,
    "x-either": true,
    description: "Id or `Name` of an image. Default: the operator's image with the lowest id.",
  }),
);
const sshKeys = optional(
  list(id({ "x-id": true }), {
    "x-skip": true,
    maxItems: 100,
    description: "Ids of SSH keys that may log in as `AdminUserName`.",
  }),
);
const userData = optional(
  text({ "x-verbatim": true, "x-secret": true, description: "cloud-init user data, at most 64 KiB. Never returned." }),
);
const place = {
  NetworkBandwidth: optional(integer(1, 10_000, { description: "Mbit/s of the link, in each direction." })),
  NetworkIP: optional(
    text({ maxLength: 64, description: "A free address of that network. Default: the lowest free address." }),
  ),
};
const network = optionalId({ description: "Network to link. Default: the shared network of the location." });
const sysprep = optional(ignored({ description: "Accepted for compatibility; ignored." }));

/** Request fields of a creation, besides the names. Groups use them too. */
export const createServerFields = {
  ...editable,
  DCLocation: optional(
    text({ maxLength: 64, description: "Default: the location of `NetworkID`, else the first location." }),
  ),
  ImageID: imageReference,
  SshKeys: sshKeys,
  NetworkID: network,
  ...place,
  UserData: userData,
  WaitFor: waitForField,
  IsNeedSysprep: sysprep,
};

/** Request to create a server. */
export const CreateServerInput = Type.Object({ Name: name(), HostName: oneHostName, ...createServerFields });
/** A parsed request to create a server. */
export type CreateServerInput = Static<typeof CreateServerInput>;

/** Request to update a server. */
export const ServerEdit = Type.Object({
  Name: optional(name()),
  ...editable,
  AllowRestart: optional(boolean({ description: "`false`: reject a change that needs a restart. Default `true`." })),
});
/** A parsed request to update a server. */
export type ServerEdit = Static<typeof ServerEdit>;

/** Request to copy a server. */
export const ServerCopy = Type.Object({
  Name: optional(name({ description: "Default: the name of the source followed by `-copy`." })),
  HostName: oneHostName,
  NetworkId: network,
  ...place,
  SshKeys: sshKeys,
  UserData: userData,
  WaitFor: waitForField,
  Labels: optional(Labels),
});
/** A parsed request to copy a server. */
export type ServerCopy = Static<typeof ServerCopy>;

/** Request to rebuild a server from an image. */
export const ServerRebuild = Type.Object({
  ImageId: imageReference,
  SshKeys: sshKeys,
  UserData: userData,
  WaitFor: waitForField,
  IsNeedSysprep: sysprep,
});
/** A parsed request to rebuild a server. */
export type ServerRebuild = Static<typeof ServerRebuild>;

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
