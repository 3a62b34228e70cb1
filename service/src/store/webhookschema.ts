/** The tables of webhooks; part of `schema.ts`. */
import type { Generated } from "kysely";

export interface WebhookTable {
  id: Generated<number>;
  project_id: number;
  url: string;
  /** JSON list of names, also with `*` at the end. */
  types: string;
  /** Sealed. */
  secret: Uint8Array;
  state: "Active" | "Failed";
  /** Events up to this one have been taken. */
  cursor: number;
  failing_since: number | null;
  error: string | null;
  created: number;
  labels: string;
  version: number;
}

export interface WebhookDeliveryTable {
  id: Generated<number>;
  webhook_id: number;
  event_id: number;
  type: string;
  resource: string;
  resource_id: number;
  state: "Waiting" | "Delivered" | "Failed";
  is_resend: Generated<number>;
  attempts: Generated<number>;
  status: number | null;
  error: string | null;
  created: number;
  /** When it is tried next; null: it has ended. */
  due: number | null;
  ended: number | null;
}
