/** Tables of projects, tokens and the audit log. Part of `../schema.ts`. */
import type { Generated } from "kysely";

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

/** Sessions of browsers. */
export interface SessionTable {
  id: Generated<number>;
  token_id: number;
  name: string;
  /** SHA-256 of the cookie, hexadecimal. */
  hash: string;
  address: string;
  created: number;
  expires_at: number;
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
