/** Converts rows of webhooks and deliveries to their API form. */
import { formatDate, type Labels } from "@brume/api/common.ts";
import type { Delivery, Webhook } from "@brume/api/webhook.ts";
import type { DeliveryRow, WebhookRow } from "../table.ts";

const dateOf = (ms: number | null): string | null => (ms === null ? null : formatDate(ms));

/** Returns the API form. `secret` is given only in the response to a create request that generated it. */
export const showWebhook = (row: WebhookRow, secret = ""): Webhook => ({
  ID: row.id,
  Url: row.url,
  Types: JSON.parse(row.types) as string[],
  Secret: secret,
  State: row.state,
  FailingSince: dateOf(row.failing_since),
  Error: row.error,
  DateCreate: formatDate(row.created),
  Labels: JSON.parse(row.labels) as Labels,
});

export const webhookTag = (row: WebhookRow): string => `webhook-${row.id}-${row.version}`;

export const showDelivery = (row: DeliveryRow): Delivery => ({
  ID: row.id,
  EventID: row.event_id,
  Type: row.type as Delivery["Type"],
  Resource: row.resource as Delivery["Resource"],
  ResourceID: row.resource_id,
  State: row.state,
  Attempts: row.attempts,
  Status: row.status,
  Error: row.error,
  DateCreate: formatDate(row.created),
  NextDate: dateOf(row.due),
  EndDate: dateOf(row.ended),
});
