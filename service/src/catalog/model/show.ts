/** Converts rows of SSH keys, images and locations to their API form. */
import type { Image, Location, SshKey } from "@brume/api/catalog.ts";
import { formatDate, type Labels } from "@brume/api/common.ts";
import { type StoredError, showWorkError } from "@brume/api/work.ts";
import type { Identity } from "../../drivers/machine/interface.ts";
import type { ImageRow, SshKeyRow } from "../table.ts";

export const showSshKey = (row: SshKeyRow): SshKey => ({
  ID: row.id,
  Title: row.title,
  PublicKey: row.base64,
  IsActive: true,
  Type: row.type as SshKey["Type"],
  Comment: row.comment,
  Fingerprint: row.fingerprint,
  DateCreate: formatDate(row.created),
  Labels: JSON.parse(row.labels) as Labels,
});

const showIdentity = ({ removed, detail }: Identity) => ({ Removed: removed, Detail: detail });

/** Returns the state of an image that is not withdrawn. */
export const imageStateOf = ({ state, upload_size }: Pick<ImageRow, "state" | "upload_size">): Image["State"] =>
  upload_size === null ? (state as Image["State"]) : "Uploading";

const showUpload = ({ upload_size, upload_received, upload_sha256, upload_due }: ImageRow): Image["Upload"] =>
  upload_size === null
    ? null
    : {
        Size: upload_size,
        Received: upload_received,
        Sha256: upload_sha256,
        Expires: formatDate(upload_due ?? 0),
      };

/** Returns the API form of an image. `row` is not withdrawn. */
export const showImage = (row: ImageRow): Image => ({
  ID: row.id,
  Name: row.name,
  DisplayName: row.display_name,
  DCLocation: row.location,
  Hdd: row.hdd,
  Family: row.family,
  IsAvailableISP: false,
  IsISPLiteEnabled: false,
  IsISPBusinessEnabled: false,
  Type: row.type,
  LinkedSshKeys: [],
  OperatingSystemType: row.os,
  TechName: row.tech_name,
  State: imageStateOf(row),
  MinRAM: row.min_ram,
  DateCreate: formatDate(row.created),
  Error: row.error === null ? null : showWorkError(JSON.parse(row.error) as StoredError),
  ServerID: row.server_id,
  Progress: row.progress,
  Identity: row.identity === null ? null : showIdentity(JSON.parse(row.identity) as Identity),
  Upload: showUpload(row),
  Labels: JSON.parse(row.labels) as Labels,
});

export const sshKeyTag = (row: SshKeyRow): string => `sshkey-${row.id}-${row.version}`;
export const imageTag = (row: ImageRow): string => `image-${row.id}-${row.version}`;

/** Properties that all locations of an installation share. */
export interface Site {
  readonly engines: Location["Engines"];
  /** A v6 pool is configured. */
  readonly ipv6: boolean;
}

export const showLocation = (id: number, title: string, { engines, ipv6 }: Site, capacity: Location["Capacity"]) =>
  ({
    ID: id,
    Title: title,
    TechTitle: title,
    ShortTitle: title,
    Country: "",
    City: "",
    IsEnableLowPool: true,
    IsEnableHighPool: true,
    IsEnableBackup: true,
    IsEnableIpV6: ipv6,
    IsOnlyForAdmins: false,
    HiddenToNewProjects: false,
    IsFirewallEnabled: true,
    Engines: engines,
    Capacity: capacity,
  }) satisfies Location;
