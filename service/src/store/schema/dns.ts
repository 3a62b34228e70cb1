/** Tables of domains, records and their history, and of the ownership of domains. Part of `../schema.ts`. */
import type { Generated } from "kysely";

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

/** Names that the operator has reserved. */
export interface ReservedNameTable {
  id: Generated<number>;
  /** Unicode form. */
  name: string;
  ascii: string;
  /** Null: no project may have domains here. */
  project_id: number | null;
  created: number;
  labels: string;
}

/** Pending and ended proofs that a name belongs to a project. */
export interface DomainClaimTable {
  id: Generated<number>;
  project_id: number;
  token_id: number;
  /** Unicode form. */
  name: string;
  ascii: string;
  /** Part of the text that proves the claim. */
  secret: string;
  state: "Pending" | "Completed" | "Failed";
  detail: string;
  domain_id: number | null;
  created: number;
  checked: number | null;
  expires: number;
  labels: string;
  version: number;
}

/** Domains that another project has proven to own. */
export interface WithdrawnDomainTable {
  /** The id that the domain had. */
  id: number;
  project_id: number;
  name: string;
  ascii: string;
  date: number;
  record_count: number;
  reason: string;
  zone_file: string;
  labels: string;
}
