/** Servers: machines with a disk, addresses and a guest inside. */
import { type Static, Type } from "typebox";
import { Action, actionStates, actionTypes, Order, serverStates, waitForField } from "./action.ts";
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
import type { FaultCode } from "./errors.ts";
import { operations } from "./operation.ts";
import { MachineError } from "./work.ts";

export const sizes = {
  /** Cores. */
  CPU: { minimum: 1, maximum: 64, default: 1 },
  /** MB. */
  RAM: { minimum: 128, maximum: 1_048_576, default: 512, step: 128 },
  /** GB. */
  HDD: { minimum: 1, maximum: 4096, default: 10 },
} as const;

export const serverLimits = {
  /** Bytes. */
  userData: 65_536,
  backupDays: 7,
} as const;

/** Kept and shown; a location has one kind of storage. */
export const hddTypes = ["SSD", "SAS", "SATA"] as const;
export type HddType = (typeof hddTypes)[number];

/** How a machine is, beside on or off. */
export const serverConditions = ["Normal", "NotResponding", "IoError", "Paused"] as const;

export const networkTypes = ["PublicShared", "PublicClient", "PrivateClient"] as const;

/** Letters, digits and hyphens, none of them at the ends. */
export const hostNamePattern = "^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$";

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
    Bandwidth: integer(1, 10_000, { description: "Mbit/s, each direction by itself." }),
    IP6: text(),
  },
  { title: "ServerLink" },
);
export type ServerLink = Static<typeof ServerLink>;

export const Server = Type.Object(
  {
    ID: id(),
    Name: name(),
    HostName: text(),
    State: word(serverStates),
    IsPowerOn: boolean({ description: "What is observed, at most 5 seconds old." }),
    CPU: integer(sizes.CPU.minimum, sizes.CPU.maximum, { description: "Cores." }),
    RAM: integer(sizes.RAM.minimum, sizes.RAM.maximum, { description: "MB." }),
    HDD: integer(sizes.HDD.minimum, sizes.HDD.maximum, { description: "GB." }),
    IP: text({ description: "Of the first link to a shared or public network." }),
    AdminUserName: text(),
    AdminPassword: text({ description: "Empty for tokens without `server:write`." }),
    Image: text(),
    IsHighPerformance: boolean(),
    HDDType: word(hddTypes),
    PrimaryNetworkIp: text({ description: "Of the first link." }),
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
    BackupPeriod: integer(7, 28, { description: "Days a backup is kept." }),
    Condition: word(serverConditions, {
      description:
        "Of the running machine: `NotResponding` when QEMU has not answered for 10 s, `IoError` when its disk cannot be written (it goes on when there is room), `Paused` when it was paused otherwise.",
    }),
    Crashes: integer(0, Number.MAX_SAFE_INTEGER, { description: "How often the machine ended unexpectedly." }),
    Labels,
  },
  { title: "Server" },
);
export type Server = Static<typeof Server>;

/** What can be edited as well as wished for. */
const editable = {
  CPU: optional(integer(sizes.CPU.minimum, sizes.CPU.maximum, { description: "Cores. Default 1." })),
  RAM: optional(
    integer(sizes.RAM.minimum, sizes.RAM.maximum, {
      multipleOf: sizes.RAM.step,
      description: "MB. Default 512, or what the image needs if that is more.",
    }),
  ),
  HDD: optional(
    integer(sizes.HDD.minimum, sizes.HDD.maximum, {
      description: "GB, never less than before. Default 10, or what the image needs if that is more.",
    }),
  ),
  IsHighPerformance: optional(
    boolean({ description: "Twice the share of processor time when cores are scarce. Default `false`." }),
  ),
  HDDType: optional(word([...hddTypes, "HDD"], { description: "`HDD` is taken as `SAS`. Default `SSD`." })),
  IsProtected: optional(boolean({ description: "Refuses delete and rebuild. Default `false`." })),
  isBackupActive: optional(boolean({ description: "A backup every day. Default `false`." })),
  BackupPeriod: optional(
    integer(7, 28, { enum: [7, 14, 21, 28], "x-id": true, description: "Days a backup is kept. Default 7." }),
  ),
  Labels: optional(Labels),
};

export const hostNameField = (options: object) =>
  optional(text({ description: "Name inside the guest. Default: from `Name`.", ...options }));
const oneHostName = hostNameField({
  // Nothing at all asks for the default.
  pattern: `^$|${hostNamePattern}`,
  "x-says": "1-63 of a-z, 0-9 and -, no hyphen at the ends",
});
const imageReference = optional(
  text({
    maxLength: 64,
    "x-either": true,
    description: "Id or `Name` of an image. Default: the stock image with the lowest id.",
  }),
);
const sshKeys = optional(
  list(id({ "x-id": true }), { "x-skip": true, maxItems: 100, description: "Keys for `AdminUserName`." }),
);
const userData = optional(
  text({ "x-verbatim": true, "x-secret": true, description: "cloud-init user data, at most 64 KiB. Never answered." }),
);
const place = {
  NetworkBandwidth: optional(integer(1, 10_000, { description: "Mbit/s of its link." })),
  NetworkIP: optional(text({ maxLength: 64, description: "Free address of that network. Default: the lowest." })),
};
const network = optionalId({ description: "Network to link instead of the shared one of the location." });
const sysprep = optional(ignored({ description: "Taken, whatever it is, and without effect." }));

export const wishFields = {
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

export const ServerWish = Type.Object({ Name: name(), HostName: oneHostName, ...wishFields });
export type ServerWish = Static<typeof ServerWish>;

export const ServerEdit = Type.Object({
  Name: optional(name()),
  ...editable,
  AllowRestart: optional(boolean({ description: "`false`: refuse a change that needs a restart. Default `true`." })),
});
export type ServerEdit = Static<typeof ServerEdit>;

export const ServerCopy = Type.Object({
  Name: optional(name({ description: "Default: the source's with `-copy` behind it." })),
  HostName: oneHostName,
  NetworkId: network,
  ...place,
  SshKeys: sshKeys,
  UserData: userData,
  WaitFor: waitForField,
  Labels: optional(Labels),
});
export type ServerCopy = Static<typeof ServerCopy>;

export const ServerRebuild = Type.Object({
  ImageId: imageReference,
  SshKeys: sshKeys,
  UserData: userData,
  WaitFor: waitForField,
  IsNeedSysprep: sysprep,
});
export type ServerRebuild = Static<typeof ServerRebuild>;

export const serverParam = { id: "server_not_found" } as const;
const actionParams = { id: "server_not_found", actionID: "action_not_found" } as const;

/** What a server that shall be made can be refused for. */
export const planFaults = [
  "image_not_ready",
  "location_mismatch",
  "network_deleting",
  "disk_too_small",
  "quota_exceeded",
  "no_capacity",
  "engine_unavailable",
  "address_taken",
  "network_full",
] as const satisfies readonly FaultCode[];

export const serverOperations = operations({
  listServers: {
    method: "GET",
    path: "/server",
    access: "server:read",
    observes: true,
    summary: "List servers, those that are being deleted or have failed too",
    query: listQuery({
      name: nameFilter,
      state: wordsFilter(serverStates),
      label: labelFilter,
      batch: optionalId({ description: "The group they were made in." }),
      location: optional(text()),
      network: optional(text({ description: "Ids or names, several with commas." })),
      ip: optional(text({ description: "An address that they have." })),
    }),
    answer: list(Server),
    list: true,
  },
  createServer: {
    method: "POST",
    path: "/server",
    access: "server:write",
    summary: "Create a server",
    description: "The answer has its addresses; disk, network and start follow, as its action `Create` shows.",
    body: ServerWish,
    answer: Server,
    tagged: true,
    shows: "readServer",
    faults: planFaults,
  },
  readServer: {
    method: "GET",
    path: "/server/{id}",
    access: "server:read",
    observes: true,
    summary: "Read a server",
    params: serverParam,
    answer: Server,
    tagged: true,
  },
  updateServer: {
    method: "PUT",
    path: "/server/{id}",
    access: "server:write",
    summary: "Change the configuration of a server",
    description:
      "Answers the action `Resize`. What can change live does; the rest needs a restart, which `AllowRestart: false` refuses.",
    params: serverParam,
    body: ServerEdit,
    answer: Action,
    shows: "readAction",
    repeatable: true,
    faults: [
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
    description: "Jumps the queue of its actions.",
    params: serverParam,
    answer: null,
    shows: "readServer",
    repeatable: true,
    faults: ["server_protected"],
  },
  copyServer: {
    method: "POST",
    path: "/server/{id}/copy",
    access: "server:write",
    summary: "Copy a server",
    description: "From a snapshot of its disk, on or off, in its turn. The copy has an identity of its own.",
    params: serverParam,
    body: ServerCopy,
    answer: Server,
    tagged: true,
    shows: "readServer",
    faults: ["action_not_allowed", "queue_full", ...planFaults],
  },
  rebuildServer: {
    method: "POST",
    path: "/server/{id}/rebuild",
    access: "server:write",
    summary: "Rebuild a server from an image",
    description: "Name, addresses, sizes and labels stay; the disk and the guest's identity are new.",
    params: serverParam,
    body: ServerRebuild,
    answer: Server,
    tagged: true,
    shows: "readServer",
    faults: [
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
    summary: "Start an action of a server",
    params: serverParam,
    body: Order,
    answer: Action,
    shows: "readAction",
    faults: [
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
    summary: "Read an action",
    params: actionParams,
    answer: Action,
  },
  cancelAction: {
    method: "POST",
    path: "/server/{id}/action/{actionID}/cancel",
    access: "server:write",
    summary: "Cancel an action that waits, or a running one at its next step where it can be undone",
    params: actionParams,
    answer: Action,
    shows: "readAction",
    faults: ["action_not_allowed"],
  },
});
