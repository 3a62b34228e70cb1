/** Tables of store, engine and HTTP server, without an API object of their own except events. Part of `../schema.ts`. */
import type { Generated } from "kysely";

/** Applied migrations. */
export interface MigrationTable {
  number: number;
  name: string;
  checksum: string;
}

/** Terms of an object, for the filters of lists: see `../../base/term.ts`. */
export interface TermTable {
  kind: "server" | "network" | "domain";
  project_id: number;
  term: string;
  object_id: number;
}

/** One row: a known text sealed with the installation's key, to detect a wrong key. */
export interface ProbeTable {
  id: Generated<number>;
  sealed: Uint8Array;
}

/** The event log of all projects. Ids ascend in the order of commits. */
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

/** One row: the time of `engine/prunetime.ts`, so that no row is pruned because of a wrong clock. */
export interface PruneTimeTable {
  id: number;
  date: number;
}

/** Stored responses by idempotency key. */
export interface IdempotencyTable {
  project_id: number;
  key: string;
  date: number;
  /** JSON of the request's fingerprint and the response, sealed with the installation's key. */
  sealed: Uint8Array;
}
