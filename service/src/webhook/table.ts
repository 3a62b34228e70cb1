/** SQL of webhooks and their deliveries. */
import { webhookLimits } from "@brume/api/webhook.ts";
import type { Insertable, Selectable, Updateable } from "kysely";
import { prepare, type Reader, type Tx } from "../store/db.ts";
import type { Tables } from "../store/schema.ts";

type WebhookTable = Tables["webhook"];
type WebhookDeliveryTable = Tables["webhook_delivery"];

export type WebhookRow = Selectable<WebhookTable>;
export type DeliveryRow = Selectable<WebhookDeliveryTable>;

export const listAllWebhooks = prepare<object>()((db) => db.selectFrom("webhook").selectAll().orderBy("id"));

export const listWebhooks = (db: Reader, project: number): Promise<WebhookRow[]> =>
  db.selectFrom("webhook").selectAll().where("project_id", "=", project).orderBy("id").execute();

export const findWebhook = (db: Reader, project: number, id: number): Promise<WebhookRow | undefined> =>
  db.selectFrom("webhook").selectAll().where("project_id", "=", project).where("id", "=", id).executeTakeFirst();

export const findWebhookById = prepare<{ id: number }>()((db, p) =>
  db.selectFrom("webhook").selectAll().where("id", "=", p("id")),
);

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

/** Deletes the webhook; the database deletes its deliveries. */
export const deleteWebhook = (tx: Tx, id: number): Promise<unknown> =>
  tx.deleteFrom("webhook").where("id", "=", id).execute();

export const findEvent = prepare<{ id: number }>()((db, p) =>
  db.selectFrom("event").selectAll().where("id", "=", p("id")),
);

/** Lists the waiting deliveries, the oldest first. */
export const listWaiting = prepare<{ webhook: number }>()((db, p) =>
  db
    .selectFrom("webhook_delivery")
    .selectAll()
    .where("webhook_id", "=", p("webhook"))
    .where("due", "is not", null)
    .orderBy("id"),
);

/** Lists the oldest event that waits for delivery, per active webhook. */
export const listOldestWaiting = prepare<object>()((db) =>
  db
    .selectFrom("webhook_delivery")
    .innerJoin("webhook", "webhook.id", "webhook_delivery.webhook_id")
    .select((row) => row.fn.min<number>("webhook_delivery.event_id").as("event"))
    .where("webhook_delivery.due", "is not", null)
    .where("webhook.state", "=", "Active")
    .groupBy("webhook.id"),
);

/** Records deleted events `from` to `to`, which the webhook had not enqueued yet, as one failed delivery. */
export async function insertLost(
  tx: Tx,
  webhook: number,
  { from, to }: { readonly from: number; readonly to: number },
  now: number,
): Promise<void> {
  if ((await findWebhookById.first(tx, { id: webhook })) === undefined) return;
  const which = from === to ? `The event ${from} was` : `The events from ${from} to ${to} were`;
  await tx
    .insertInto("webhook_delivery")
    .values({
      webhook_id: webhook,
      event_id: to,
      type: "webhook.changed",
      resource: "webhook",
      resource_id: webhook,
      state: "Failed",
      error: `${which} deleted before the webhook enqueued them.`,
      created: now,
      due: null,
      ended: now,
    })
    .execute();
}

/** Marks the deliveries as delivered, all with the same HTTP status. */
export const endDelivered = (tx: Tx, ids: readonly number[], status: number | null, now: number): Promise<unknown> =>
  tx
    .updateTable("webhook_delivery")
    .set((row) => ({
      state: "Delivered",
      attempts: row("attempts", "+", 1),
      status,
      error: null,
      due: null,
      ended: now,
    }))
    .where("id", "in", ids)
    .execute();

/** Marks the deliveries as failed without another attempt. */
export const failDeliveries = (tx: Tx, ids: readonly number[], error: string, now: number): Promise<unknown> =>
  tx
    .updateTable("webhook_delivery")
    .set({ state: "Failed", error, due: null, ended: now })
    .where("id", "in", ids)
    .execute();

export const updateDelivery = (tx: Tx, id: number, change: Updateable<WebhookDeliveryTable>): Promise<unknown> =>
  tx.updateTable("webhook_delivery").set(change).where("id", "=", id).execute();

export const findDelivery = (db: Reader, webhook: number, id: number): Promise<DeliveryRow | undefined> =>
  db
    .selectFrom("webhook_delivery")
    .selectAll()
    .where("webhook_id", "=", webhook)
    .where("id", "=", id)
    .executeTakeFirst();

/** Lists the newest deliveries, the newest first. */
export const listDeliveries = (db: Reader, webhook: number, limit: number): Promise<DeliveryRow[]> =>
  db
    .selectFrom("webhook_delivery")
    .selectAll()
    .where("webhook_id", "=", webhook)
    .orderBy("id", "desc")
    .limit(limit)
    .execute();

/** Deletes ended deliveries, except the newest `webhookLimits.shown`. */
export const pruneDeliveries = prepare<{ webhook: number }>()((db, p) =>
  db
    .deleteFrom("webhook_delivery")
    .where("webhook_id", "=", p("webhook"))
    .where("due", "is", null)
    .where("id", "<=", (row) =>
      row
        .selectFrom("webhook_delivery as kept")
        .select("kept.id")
        .where("kept.webhook_id", "=", p("webhook"))
        .where("kept.due", "is", null)
        .orderBy("kept.id", "desc")
        .offset(webhookLimits.shown)
        .limit(1),
    ),
);

/** Pruning rule of ended deliveries by age and number, in addition to `pruneDeliveries`. */
export const endedDeliveries = {
  name: "delivery",
  table: "webhook_delivery",
  key: ["id"],
  date: "ended",
  where: "due is null",
} as const;
