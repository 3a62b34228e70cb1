/** Tables next to `server`: batches, orphans, deleted objects and metrics; part of `schema.ts`. */
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

/** Metrics of one server for five minutes. */
export interface SampleTable {
  server_id: number;
  /** Milliseconds since 1970, a multiple of five minutes. */
  start: number;
  points: number;
  /** 32-bit floats, six per point. */
  figures: Uint8Array;
}
