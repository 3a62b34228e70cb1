/** Webhooks and their deliveries in SQL. */
import type { Insertable, Selectable, Updateable } from "kysely";
import { prepare, type Reader, type Tx } from "../store/db.ts";
import type { EventTable, Tables } from "../store/schema.ts";

type WebhookTable = Tables["webhook"];
type WebhookDeliveryTable = Tables["webhook_delivery"];

export type WebhookRow = Selectable<WebhookTable>;
export type DeliveryRow = Selectable<WebhookDeliveryTable>;

export const listAllWebhooks = (db: Reader): Promise<WebhookRow[]> =>
  db.selectFrom("webhook").selectAll().orderBy("id").execute();

export const listWebhooks = (db: Reader, project: number): Promise<WebhookRow[]> =>
  db.selectFrom("webhook").selectAll().where("project_id", "=", project).orderBy("id").execute();

export const findWebhook = (db: Reader, project: number, id: number): Promise<WebhookRow | undefined> =>
  db.selectFrom("webhook").selectAll().where("project_id", "=", project).where("id", "=", id).executeTakeFirst();

export const findWebhookById = (db: Reader, id: number): Promise<WebhookRow | undefined> =>
  db.selectFrom("webhook").selectAll().where("id", "=", id).executeTakeFirst();

export async function countWebhooks(db: Reader, project: number): Promise<number> {
  const row = await db
    .selectFrom("webhook")
    .select((e) => e.fn.countAll<number>().as("count"))
    .where("project_id", "=", project)
    .executeTakeFirstOrThrow();
  return row.count;
}

export const insertWebhook = (tx: Tx, row: Insertable<WebhookTable>): Promise<WebhookRow> =>
  tx.insertInto("webhook").values(row).returningAll().executeTakeFirstOrThrow();

export const updateWebhook = (tx: Tx, id: number, change: Updateable<WebhookTable>): Promise<unknown> =>
  tx.updateTable("webhook").set(change).where("id", "=", id).execute();

/** Its deliveries go with it. */
export const deleteWebhook = (tx: Tx, id: number): Promise<unknown> =>
  tx.deleteFrom("webhook").where("id", "=", id).execute();

/** Of the newest event that is stored; 0 if there was none. */
export async function newestEvent(db: Reader): Promise<number> {
  const row = await db.selectFrom("event").select("id").orderBy("id", "desc").limit(1).executeTakeFirst();
  return row?.id ?? 0;
}

export const findEvent = prepare<{ id: number }>()((db, p) =>
  db.selectFrom("event").selectAll().where("id", "=", p("id")),
);

/** What waits, the oldest first. */
export const listWaiting = prepare<{ webhook: number; limit: number }>()((db, p) =>
  db
    .selectFrom("webhook_delivery")
    .selectAll()
    .where("webhook_id", "=", p("webhook"))
    .where("due", "is not", null)
    .orderBy("id")
    .limit(p("limit")),
);

export async function insertDeliveries(
  tx: Tx,
  webhook: number,
  events: readonly Selectable<EventTable>[],
  now: number,
): Promise<void> {
  if (events.length === 0) return;
  const rows = events.map((event) => ({
    webhook_id: webhook,
    event_id: event.id,
    type: event.type,
    resource: event.resource,
    resource_id: event.resource_id,
    state: "Waiting" as const,
    created: now,
    due: now,
  }));
  await tx.insertInto("webhook_delivery").values(rows).execute();
}

export const updateDelivery = (tx: Tx, id: number, change: Updateable<WebhookDeliveryTable>): Promise<unknown> =>
  tx.updateTable("webhook_delivery").set(change).where("id", "=", id).execute();

export const findDelivery = (db: Reader, webhook: number, id: number): Promise<DeliveryRow | undefined> =>
  db
    .selectFrom("webhook_delivery")
    .selectAll()
    .where("webhook_id", "=", webhook)
    .where("id", "=", id)
    .executeTakeFirst();

/** The newest, newest first. */
export const listDeliveries = (db: Reader, webhook: number, limit: number): Promise<DeliveryRow[]> =>
  db
    .selectFrom("webhook_delivery")
    .selectAll()
    .where("webhook_id", "=", webhook)
    .orderBy("id", "desc")
    .limit(limit)
    .execute();

/** Deletes those that have ended but for the newest `keep`. */
export async function pruneDeliveries(tx: Tx, webhook: number, keep: number): Promise<void> {
  const ended = tx
    .selectFrom("webhook_delivery as kept")
    .select("kept.id")
    .where("kept.webhook_id", "=", webhook)
    .where("kept.due", "is", null)
    .orderBy("kept.id", "desc")
    .offset(keep)
    .limit(1);
  await tx
    .deleteFrom("webhook_delivery")
    .where("webhook_id", "=", webhook)
    .where("due", "is", null)
    .where("id", "<=", ended)
    .execute();
}
