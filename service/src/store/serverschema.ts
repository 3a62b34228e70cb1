/** Tables beside those of servers: what is on the host and in no row, what the database saw deleted, and how busy servers were. */
import type { Generated } from "kysely";

/** Servers that were ordered together. */
export interface ServerBatchTable {
  id: Generated<number>;
  project_id: number;
  policy: "Atomic" | "BestEffort";
  state: "New" | "Active" | "Failed" | "Deleting";
  /** JSON list of `{Index, Error}`. */
  errors: string;
  created: number;
}

/** Found on the host and in no row. */
export interface OrphanTable {
  id: Generated<number>;
  kind: "Server" | "Image" | "Snapshot";
  /** The server's number, or the folder of the image. */
  name: string;
  title: string;
  uuid: string;
  family: "Linux" | "Windows" | "Bsd";
  /** Folder of the image that a server's disk was made from. */
  image: string;
  cpu: number;
  ram: number;
  hdd: number;
  /** On the machine's own disks. */
  bytes: number;
  boot: number;
  disk_version: number;
  state: "Held" | "Removing";
  found: number;
}

/** What this database held and saw deleted. */
export interface RetiredTable {
  kind: "Server" | "Image";
  name: string;
  uuid: string;
  date: number;
}

/** Five minutes of one server. */
export interface SampleTable {
  server_id: number;
  /** A multiple of five minutes. */
  start: number;
  points: number;
  /** Floats of 32 bits, six a point. */
  figures: Uint8Array;
}
