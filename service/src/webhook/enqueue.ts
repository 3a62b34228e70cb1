/** SQL that reads the events of a webhook and creates a delivery for each. */
import { type ExpressionBuilder, sql } from "kysely";
import { typesFit } from "../engine/event.ts";
import type { Reader, Tx } from "../store/db.ts";
import type { Tables } from "../store/schema.ts";
import type { DeliveryRow } from "./table.ts";

/** Events of one project with ids above `after` up to `until`. */
export interface EventRange {
  readonly project: number;
  /** Event types, `prefix.*` allowed; null: all. */
  readonly types: readonly string[] | null;
  readonly after: number;
  readonly until: number;
}

const inRange = (row: ExpressionBuilder<Tables, "event">, { project, types, after, until }: EventRange) =>
  row.and([
    row("event.project_id", "=", project),
    row("event.id", ">", after),
    row("event.id", "<=", until),
    ...(types === null ? [] : [typesFit(row, types)]),
  ]);

/** Returns the ids of the first events of the range, at most `limit`. */
export async function findEvents(db: Reader, range: EventRange, limit: number): Promise<number[]> {
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
  range: EventRange,
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
