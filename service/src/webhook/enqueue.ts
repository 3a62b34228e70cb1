/** SQL that reads the events of a webhook and creates a delivery for each. */
import { type ExpressionBuilder, sql } from "kysely";
import type { Reader, Tx } from "../store/db.ts";
import type { Tables } from "../store/schema.ts";
import type { DeliveryRow } from "./table.ts";

/** Events of one project with ids above `after` up to `until`. */
export interface EnqueueRange {
  readonly project: number;
  /** Null: all. */
  readonly types: readonly string[] | null;
  readonly after: number;
  readonly until: number;
}

const inRange = (row: ExpressionBuilder<Tables, "event">, { project, types, after, until }: EnqueueRange) =>
  row.and([
    row("event.project_id", "=", project),
    row("event.id", ">", after),
    row("event.id", "<=", until),
    ...(types === null ? [] : [row.or(types.map((type) => row("event.type", "=", type)))]),
  ]);

/** Returns the ids of the first events of the range, at most `limit`. */
export async function findEventIds(db: Reader, range: EnqueueRange, limit: number): Promise<number[]> {
  const query = db.selectFrom("event").select("id");
  const rows = await query
    .where((row) => inRange(row, range))
    .orderBy("id")
    .limit(limit)
    .execute();
  return rows.map(({ id }) => id);
}

/** Creates a delivery for each event of the range, and returns them by id. Creates none if the webhook has been deleted. */
export async function insertDeliveries(
  tx: Tx,
  webhook: number,
  range: EnqueueRange,
  now: number,
): Promise<DeliveryRow[]> {
  const rows = await tx
    .insertInto("webhook_delivery")
    .columns(["webhook_id", "event_id", "type", "resource", "resource_id", "state", "created", "due"])
    .expression((build) =>
      build
        .selectFrom("event")
        .innerJoin("webhook", (join) => join.on("webhook.id", "=", webhook))
        .select((row) => [
          "webhook.id as webhook_id",
          "event.id as event_id",
          "event.type",
          "event.resource",
          "event.resource_id",
          sql<string>`'Waiting'`.as("state"),
          row.val(now).as("created"),
          row.val(now).as("due"),
        ])
        .where((row) => inRange(row, range))
        .orderBy("event.id"),
    )
    .returningAll()
    .execute();
  return rows.sort((a, b) => a.id - b.id);
}
