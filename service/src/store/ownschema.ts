/** Tables that the service keeps for itself; part of `schema.ts`. */
import type { Generated } from "kysely";

export interface IdempotencyTable {
  project_id: number;
  key: string;
  date: number;
  /** Fingerprint of the request and its answer, as JSON under the house's key. */
  sealed: Uint8Array;
}

/** One row: a known text under the key of this installation. */
export interface ProbeTable {
  id: Generated<number>;
  sealed: Uint8Array;
}

/** One row: the time up to which ages have been counted, so that a wrong clock makes no row old. */
export interface PruneTimeTable {
  id: number;
  date: number;
}
