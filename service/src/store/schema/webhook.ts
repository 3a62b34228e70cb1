/** Tables of webhooks. Part of `../schema.ts`. */
import type { Generated } from "kysely";

/** Endpoints, and how far each has received the event log. */
export interface WebhookTable {
  id: Generated<number>;
  project_id: number;
  url: string;
  /** JSON list of names, also with `*` at the end. */
  types: string;
  /** Sealed. */
  secret: Uint8Array;
  state: "Active" | "Failed";
  /** Id of the last event that was processed. */
  cursor: number;
  failing_since: number | null;
  error: string | null;
  created: number;
  labels: string;
  version: number;
}

/** Events to send to an endpoint, and the last ones that were sent. */
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
  /** Time of the next attempt; null: the delivery has ended. */
  due: number | null;
  ended: number | null;
}
