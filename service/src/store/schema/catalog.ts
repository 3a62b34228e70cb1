/** Tables of SSH keys and images. Part of `../schema.ts`. */
import type { Generated } from "kysely";

/** Public keys of projects. */
export interface SshKeyTable {
  id: Generated<number>;
  project_id: number;
  title: string;
  type: string;
  /** Second word of an OpenSSH line. */
  base64: string;
  comment: string;
  fingerprint: string;
  created: number;
  labels: string;
  version: number;
}

/** Images, snapshots and backups. */
export interface ImageTable {
  id: Generated<number>;
  /** Null: an image of the operator. */
  project_id: number | null;
  type: "GoldServer" | "Client" | "Backup";
  name: string;
  display_name: string;
  /** Null: every location. */
  location: string | null;
  /** Minimum disk in GB and RAM in MB of a server. */
  hdd: number;
  min_ram: number;
  family: "Linux" | "Windows" | "Bsd";
  os: string;
  tech_name: string;
  /** `Withdrawn`: removed by the operator and hidden from clients. */
  state: "Available" | "New" | "Active" | "Failed" | "Withdrawn";
  folder: string | null;
  /** Server of which it was created; it may have been deleted. */
  server_id: number | null;
  progress: number;
  error: string | null;
  created: number;
  labels: string;
  version: number;
  /** JSON of the identity in the machine driver's interface, for an image of a server. */
  identity: string | null;
  /** Program that runs user data in its guests; null: unknown. */
  guest: "tiny" | "cloud-init" | null;
  /** Bytes of the file that a client uploads; null: the image waits for no content. Its state is `New` meanwhile. */
  upload_size: number | null;
  /** Bytes that are stored on the host, and were acknowledged. */
  upload_received: Generated<number>;
  /** 64 hexadecimal digits in lower case; null: not checked. */
  upload_sha256: string | null;
  /** When the image is deleted unless content arrives. */
  upload_due: number | null;
}
