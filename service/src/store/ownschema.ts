/** Internal tables, without API objects; part of `schema.ts`. */
import type { Generated } from "kysely";

/** Stored responses by idempotency key. */
export interface IdempotencyTable {
  project_id: number;
  key: string;
  date: number;
  /** JSON of the request's fingerprint and the response, sealed with the installation's key. */
  sealed: Uint8Array;
}

/** One row: a known text sealed with the installation's key, to detect a wrong key. */
export interface ProbeTable {
  id: Generated<number>;
  sealed: Uint8Array;
}

/** One row: the time of `engine/prunetime.ts`, so that no row is pruned because of a wrong clock. */
export interface PruneTimeTable {
  id: number;
  date: number;
}
