/**
 * Types of the tables for Kysely. The migrations create the tables, and `test/invariants/store.test.ts` checks that both agree. Times
 * are milliseconds since 1970, booleans are 0 or 1, and JSON is text that SQL never parses.
 */
import type { Generated } from "kysely";
import type { DomainClaimTable, ReservedNameTable, WithdrawnDomainTable } from "./claimschema.ts";
import type { IdempotencyTable, ProbeTable, PruneTimeTable } from "./ownschema.ts";
import type { OrphanTable, RetiredTable, SampleTable, ServerBatchTable } from "./serverschema.ts";
import type { WebhookDeliveryTable, WebhookTable } from "./webhookschema.ts";

/** Events. */
export interface EventTable {
  id: Generated<number>;
  type: string;
  date: number;
  project_id: number;
  resource: string;
  resource_id: number;
  parent_id: number | null;
  token_id: number | null;
  request_id: string | null;
  /** JSON of the object as GET returns it, with empty secrets; null after deletion. */
  data: string | null;
}

/** Tasks: runs of flows, and reconcilers. */
export interface TaskTable {
  id: Generated<number>;
  /** Name of the flow or reconciler. */
  name: string;
  /** Kind and id of the object it works on, such as `server`. */
  subject: string;
  subject_id: number;
  /** Null for reconcilers. */
  project_id: number | null;
  state: "Postponed" | "InProgress" | "Completed" | "Failed" | "Canceled" | "Keeping";
  step: string | null;
  ending: "Failed" | "Canceled" | null;
  progress: number;
  /** JSON list of step records. */
  steps: string;
  input: string;
  facts: string;
  /** JSON of the last or final error. */
  error: string | null;
  cancel: string | null;
  start_date: number;
  end_date: number | null;
  /** Time at which the current step began. */
  begun_at: number | null;
  announced_at: number;
  due_at: number | null;
  lease: string | null;
  tries: number;
  wake: number;
  served: number;
  step_until: number | null;
  deadline_at: number | null;
  /** Goes to the head of the subject's queue. */
  is_urgent: Generated<number>;
}

/** Applied migrations. */
export interface MigrationTable {
  number: number;
  name: string;
  checksum: string;
}

/** Projects and their quotas. */
export interface ProjectTable {
  id: Generated<number>;
  name: string;
  is_blocked: number;
  /** JSON of the quotas that differ from the defaults. */
  quotas: string;
  created: number;
  labels: string;
  version: number;
}

/** Tokens. Only the hash of a token is stored. */
export interface TokenTable {
  id: Generated<number>;
  project_id: number;
  name: string;
  /** SHA-256 of the value, hexadecimal. */
  hash: string;
  /** JSON list of strings. */
  scopes: string;
  is_admin: number;
  domain_id: number | null;
  record_pattern: string | null;
  /** JSON list of strings; null: all. */
  record_types: string | null;
  expires_at: number | null;
  /** JSON `{Requests, Seconds}`. */
  rate_limit: string | null;
  /** JSON list of addresses and blocks. */
  allowed_from: string | null;
  created: number;
  last_used: number | null;
  labels: string;
  version: number;
}

/** Audit log. */
export interface AuditTable {
  id: Generated<number>;
  /** 0: none, because the token is unknown. */
  project_id: number;
  date: number;
  /** 0: unknown. */
  token_id: number;
  token_name: string;
  address: string;
  operation: string;
  resource: string | null;
  resource_id: number | null;
  status: number;
  request_id: string;
  before: string | null;
  after: string | null;
  count: Generated<number>;
  /** Time of the last of several equal requests; null: there was one. */
  last_date: number | null;
}

/** DNS domains. */
export interface DomainTable {
  id: Generated<number>;
  project_id: number;
  /** Unicode form. */
  name: string;
  ascii: string;
  /** `com.example.` for `example.com`. */
  subtree: string;
  serial: number;
  record_count: number;
  is_delegate: number;
  delegation: Generated<"Delegated" | "Partial" | "NotDelegated" | "Unknown">;
  /** The project proved its ownership of the name by a claim. */
  is_proven: Generated<number>;
  /** JSON of the import report; null: there was no import. */
  import_report: string | null;
  created: number;
  labels: string;
  version: number;
}

/** DNS records. */
export interface RecordTable {
  id: Generated<number>;
  domain_id: number;
  type: string;
  /** Relative to the domain, ASCII, `@` for the domain itself. */
  owner: string;
  /** Sort key of the owner name in the zone. */
  node: string;
  ttl: number;
  /** Data in canonical text. */
  value: string;
  serial: number;
  created: number;
  labels: string;
  version: number;
}

/** Versions of a domain: what each change did. */
export interface DomainVersionTable {
  domain_id: number;
  serial: number;
  date: number;
  token_id: number | null;
  request_id: string | null;
  /** JSON list of `{Op, Before, After}`. */
  changes: string;
}

/** Last serials of deleted domains. */
export interface RetiredZoneTable {
  ascii: string;
  serial: number;
}

/** Public, private and shared networks. */
export interface NetworkTable {
  id: Generated<number>;
  /** Null: the shared network of its location. */
  project_id: number | null;
  kind: "public" | "shared" | "private";
  name: string;
  state: "New" | "Active" | "Deleting";
  location: string;
  /** The block, each address as 8 hexadecimal digits. */
  first: string;
  last: string;
  gateway: string | null;
  /** Address of the edge, outside of the block. */
  edge: string | null;
  /** First address of the /64, 32 hexadecimal digits; null: no IPv6. */
  first6: string | null;
  is_dhcp: number;
  bandwidth: number;
  /** JSON of the active rule set. */
  firewall: string;
  /** JSON of the last confirmed rule set; null: the active one is confirmed. */
  fallback: string | null;
  confirm_by: number | null;
  /** Sealed private key of the edge; its public key. */
  wireguard: Uint8Array | null;
  wireguard_public: string | null;
  /** UDP port of the edge; null until it has a key. */
  wireguard_port: number | null;
  /** JSON: addresses at which peers reach the edge, by address of the peer; null: the edge's own address. */
  outside: string | null;
  generation: number;
  applied: number;
  /** JSON of the last error of applying. */
  error: string | null;
  created: number;
  labels: string;
  version: number;
}

/** Address blocks that are not allocated again yet. */
export interface RetiredBlockTable {
  id: Generated<number>;
  first: string;
  last: string;
  until: number;
}

/** Links between servers and networks. */
export interface LinkTable {
  id: Generated<number>;
  network_id: number;
  server_id: number;
  /** Host name that DHCP sends. */
  host_name: string;
  ip: string;
  /** Mbit/s. */
  bandwidth: number;
  state: "New" | "Active";
  created: number;
}

/** VPN tunnels. */
export interface TunnelTable {
  id: Generated<number>;
  network_id: number;
  /** Position in the list, from 0. */
  place: number;
  /** JSON without secrets. */
  spec: string;
  /** Sealed. */
  shared_key: Uint8Array | null;
  /** Generation of the network that added it. */
  generation: number;
  is_up: number;
  labels: string;
}

/** SSH keys. */
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
}

/** Servers. */
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

/** All tables, by name. */
export interface Tables {
  migration: MigrationTable;
  event: EventTable;
  task: TaskTable;
  idempotency: IdempotencyTable;
  project: ProjectTable;
  token: TokenTable;
  audit: AuditTable;
  domain: DomainTable;
  reserved_name: ReservedNameTable;
  domain_claim: DomainClaimTable;
  withdrawn_domain: WithdrawnDomainTable;
  record: RecordTable;
  domain_version: DomainVersionTable;
  retired_zone: RetiredZoneTable;
  network: NetworkTable;
  retired_block: RetiredBlockTable;
  link: LinkTable;
  tunnel: TunnelTable;
  sshkey: SshKeyTable;
  image: ImageTable;
  server_batch: ServerBatchTable;
  server: ServerTable;
  server_key: ServerKeyTable;
  sample: SampleTable;
  probe: ProbeTable;
  prune_time: PruneTimeTable;
  orphan: OrphanTable;
  retired: RetiredTable;
  webhook: WebhookTable;
  webhook_delivery: WebhookDeliveryTable;
}
