/** Requests to create, update, copy and rebuild a server, and the limits of its size. `server.ts` contains responses and operations. */
import type { Static } from "typebox";
import { waitForField } from "./action.ts";
import {
  boolean,
  id,
  ignored,
  integer,
  Labels,
  list,
  name,
  object,
  optional,
  optionalId,
  text,
  word,
} from "./common.ts";

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

/** Letters, digits and hyphens; no hyphen at either end. */
export const hostNamePattern = "^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$";

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
  optional(text({ description: "Host name of the guest. Default: derived from `Name`.", ...options } as const));
const oneHostName = hostNameField({
  // An empty text selects the default.
  pattern: `^$|${hostNamePattern}`,
  "x-pattern-description": "1-63 of a-z, 0-9 and -, no hyphen at the ends",
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
export const CreateServerInput = object("CreateServerRequest", "A new server.", {
  Name: name({ description: "Name of the server." }),
  HostName: oneHostName,
  ...createServerFields,
});
/** TypeScript type of this schema. */
export type CreateServerInput = Static<typeof CreateServerInput>;

/** Fields of a request to update a server. */
export const serverEditFields = {
  Name: optional(name({ description: "Name of the server." })),
  ...editable,
  AllowRestart: optional(boolean({ description: "`false`: reject a change that needs a restart. Default `true`." })),
};
/** Request to copy a server. */
export const ServerCopy = object("CopyServerRequest", "How the copy differs from its source.", {
  Name: optional(name({ description: "Default: the name of the source followed by `-copy`." })),
  HostName: oneHostName,
  NetworkId: network,
  ...place,
  SshKeys: sshKeys,
  UserData: userData,
  WaitFor: waitForField,
  Labels: optional(Labels),
});
/** TypeScript type of this schema. */
export type ServerCopy = Static<typeof ServerCopy>;

/** Request to rebuild a server from an image. */
export const ServerRebuild = object("RebuildServerRequest", "The new content of a server.", {
  ImageId: imageReference,
  SshKeys: sshKeys,
  UserData: userData,
  WaitFor: waitForField,
  IsNeedSysprep: sysprep,
});
/** TypeScript type of this schema. */
export type ServerRebuild = Static<typeof ServerRebuild>;
