/** Tables of servers, their groups and metrics, and of orphans. Part of `../schema.ts`. */
import type { Generated } from "kysely";

/** A group of servers of one request. */
export interface ServerBatchTable {
  id: Generated<number>;
  project_id: number;
  policy: "Atomic" | "BestEffort";
  state: "New" | "Active" | "Failed" | "Deleting";
  /** JSON list of `{Index, Error}`. */
  errors: string;
  created: number;
}

/** Desired state of the servers, and the last observed state of their VMs. */
export interface ServerTable {
  id: Generated<number>;
  project_id: number;
  batch_id: number | null;
  name: string;
  host_name: string;
  state: "New" | "Active" | "Blocked" | "Deleting" | "Failed";
  /** Desired power state; the actual one is not stored. */
  is_on: number;
  cpu: number;
  ram: number;
  hdd: number;
  /** Size that counts for quotas and capacity: the largest of the current size and all accepted resizes. */
  held_cpu: number;
  held_ram: number;
  held_hdd: number;
  is_high_performance: number;
  hdd_type: "SSD" | "SAS" | "SATA";
  location: string;
  image_id: number;
  image_name: string;
  family: "Linux" | "Windows" | "Bsd";
  /** As in its image. */
  guest: "tiny" | "cloud-init" | null;
  /** Sealed, as is `user_data`. */
  admin_password: Uint8Array;
  user_data: Uint8Array | null;
  /** Counts rebuilds; each creates a new guest. */
  disk_version: number;
  /** Counts starts and resets. */
  boot: number;
  is_protected: number;
  is_backup_active: number;
  /** Days. */
  backup_period: number;
  /** Times of the last backup, and of a failed one after it. */
  backed_up: number | null;
  backup_failed: number | null;
  /** Last observed state of the VM. */
  condition: Generated<"Normal" | "NotResponding" | "IoError" | "Paused">;
  /** Crashes of its VM since its creation. */
  crashes: Generated<number>;
  error: string | null;
  created: number;
  labels: string;
  version: number;
}

/** SSH keys of a server. */
export interface ServerKeyTable {
  server_id: number;
  place: number;
  /** JSON of the key's row at that time. */
  sshkey: string;
}

/** Metrics of one server for five minutes. */
export interface SampleTable {
  server_id: number;
  /** Milliseconds since 1970, a multiple of five minutes. */
  start: number;
  points: number;
  /** 32-bit floats, six per point. */
  figures: Uint8Array;
}

/** An object on the host that the database does not contain. */
export interface OrphanTable {
  id: Generated<number>;
  kind: "Server" | "Image" | "Snapshot";
  /** Id of the server, or folder of the image. */
  name: string;
  title: string;
  uuid: string;
  family: "Linux" | "Windows" | "Bsd";
  /** Folder of the base image of a server's disk. */
  image: string;
  cpu: number;
  ram: number;
  hdd: number;
  /** Bytes in use on the host. */
  bytes: number;
  boot: number;
  disk_version: number;
  state: "Held" | "Removing";
  found: number;
}

/** A server or image that was deleted, so that it is not taken for an orphan. */
export interface RetiredTable {
  kind: "Server" | "Image";
  name: string;
  uuid: string;
  date: number;
}

/** Servers of a project: all, those that hold capacity, and what these hold. */
export interface ServerSumTable {
  project_id: number;
  servers: number;
  holding: number;
  cpu: number;
  ram: number;
  hdd: number;
}
