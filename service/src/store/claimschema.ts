/** Tables of domain ownership: reserved names, claims and withdrawn domains; part of `schema.ts`. */
import type { Generated } from "kysely";

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

/** Claims of domains. */
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
