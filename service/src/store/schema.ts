/**
 * The tables as Kysely sees them, row by row as the migrations make them; `test/laws/store.test.ts` holds the two together.
 * Times are milliseconds since 1970, booleans 0 or 1, JSON is text that SQL never looks into.
 */
import type { Generated } from "kysely";

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
  /** JSON of the object as GET shows it, secrets empty; null after deletion. */
  data: string | null;
}

export interface TaskTable {
  id: Generated<number>;
  /** Of a flow or keeper. */
  name: string;
  /** Kind of thing it works on, such as `server`, and which one. */
  subject: string;
  subject_id: number;
  /** Null for keepers. */
  project_id: number | null;
  state: "Postponed" | "InProgress" | "Completed" | "Failed" | "Canceled" | "Keeping";
  step: string | null;
  ending: "Failed" | "Canceled" | null;
  progress: number;
  /** JSON list of step records. */
  steps: string;
  input: string;
  facts: string;
  /** JSON of the trouble, last or final. */
  error: string | null;
  cancel: string | null;
  start_date: number;
  end_date: number | null;
  /** When the present step was first begun. */
  begun_at: number | null;
  announced_at: number;
  due_at: number | null;
  lease: string | null;
  tries: number;
  wake: number;
  served: number;
  step_until: number | null;
  deadline_at: number | null;
}

/** Which migrations the database has. */
export interface MigrationTable {
  number: number;
  name: string;
  checksum: string;
}

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

export interface TokenTable {
  id: Generated<number>;
  project_id: number;
  name: string;
  /** SHA-256 of the value, hexadecimal. */
  hash: string;
  /** JSON list of words. */
  scopes: string;
  is_admin: number;
  domain_id: number | null;
  record_pattern: string | null;
  /** JSON list of words; null: all. */
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

export interface AuditTable {
  id: Generated<number>;
  project_id: number;
  date: number;
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
}

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
  /** JSON of the import report; null: there was no import. */
  import_report: string | null;
  created: number;
  labels: string;
  version: number;
}

export interface RecordTable {
  id: Generated<number>;
  domain_id: number;
  type: string;
  /** Relative to the domain, ASCII, `@` for the top. */
  owner: string;
  /** Sort key of the name it is served at. */
  node: string;
  ttl: number;
  /** Data in canonical text. */
  value: string;
  serial: number;
  created: number;
  labels: string;
  version: number;
}

export interface DomainVersionTable {
  domain_id: number;
  serial: number;
  date: number;
  token_id: number | null;
  request_id: string | null;
  /** JSON list of `{Op, Before, After}`. */
  changes: string;
}

export interface RetiredZoneTable {
  ascii: string;
  serial: number;
}

export interface IdempotencyTable {
  project_id: number;
  key: string;
  date: number;
  /** Fingerprint of the request and its answer, as JSON under the house's key. */
  sealed: Uint8Array;
}

export interface Tables {
  migration: MigrationTable;
  event: EventTable;
  task: TaskTable;
  idempotency: IdempotencyTable;
  project: ProjectTable;
  token: TokenTable;
  audit: AuditTable;
  domain: DomainTable;
  record: RecordTable;
  domain_version: DomainVersionTable;
  retired_zone: RetiredZoneTable;
}
