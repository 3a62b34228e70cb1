/** Tables of what is on the host and not in the database, and of what the database saw deleted. */
import type { Generated } from "kysely";

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
