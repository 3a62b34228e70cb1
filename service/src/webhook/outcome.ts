/** What came of deliveries, written down: taken, to be tried again, or given up; and what that says of the endpoint. */
import { webhookLimits } from "@brume/api/webhook.ts";
import type { Clock } from "../base/clock.ts";
import type { Answer } from "../drivers/webhook/port.ts";
import { append } from "../engine/event.ts";
import type { Store, Tx } from "../store/db.ts";
import { isOver, pauseAfter } from "./rules.ts";
import { showWebhook } from "./show.ts";
import * as table from "./table.ts";

export interface Result {
  readonly row: table.DeliveryRow;
  readonly answer: Answer;
}

interface RecordTools {
  readonly write: Store["write"];
  readonly clock: Clock;
  readonly random: () => number;
}

/** The endpoint says that it wants nothing any more. */
const gone = 410;

async function writeDelivery(tx: Tx, { row, answer }: Result, now: number, random: number): Promise<void> {
  const { status, error } = answer;
  const attempts = row.attempts + 1;
  const isLast = error === null || row.is_resend === 1 || status === gone || isOver(row.created, now);
  await table.updateDelivery(tx, row.id, {
    state: error === null ? "Delivered" : isLast ? "Failed" : "Waiting",
    attempts,
    status,
    error,
    due: isLast ? null : now + pauseAfter(attempts, random),
    ended: isLast ? now : null,
  });
}

/** The webhook as the results leave it. */
function judge(webhook: table.WebhookRow, results: readonly Result[], now: number): table.WebhookRow {
  return results.reduce((before, { answer }) => {
    if (answer.error === null) return { ...before, state: "Active" as const, failing_since: null, error: null };
    const since = before.failing_since ?? now;
    const hasFailed = answer.status === gone || isOver(since, now);
    return { ...before, failing_since: since, error: answer.error, state: hasFailed ? "Failed" : before.state };
  }, webhook);
}

/** One transaction for all. */
export async function record({ write, clock, random }: RecordTools, results: readonly Result[]): Promise<void> {
  await write(async (tx) => {
    const now = clock.now();
    for (const [id, own] of Map.groupBy(results, ({ row }) => row.webhook_id)) {
      for (const result of own) await writeDelivery(tx, result, now, random());
      await table.pruneDeliveries(tx, id, webhookLimits.shown);
      const webhook = await table.findWebhookById(tx, id);
      if (webhook === undefined) continue;
      const after = judge(webhook, own, now);
      const { state, failing_since, error } = after;
      if (state !== webhook.state || failing_since !== webhook.failing_since || error !== webhook.error)
        await table.updateWebhook(tx, id, { state, failing_since, error });
      if (state === webhook.state) continue;
      await append(tx, [
        {
          type: "webhook.changed",
          date: now,
          project: webhook.project_id,
          resource: "webhook",
          id,
          data: JSON.stringify(showWebhook(after)),
        },
      ]);
    }
  });
}
