/** Stores the results of deliveries: delivered, to be retried, or failed. Updates the state of the webhook from them. */
import type { Answer } from "../drivers/webhook/interface.ts";
import { append } from "../engine/event.ts";
import type { Tx } from "../store/db.ts";
import { isOver, maxAttempts, maxWaiting, pauseAfter } from "./model/rules.ts";
import { showWebhook } from "./model/show.ts";
import * as table from "./table.ts";

/** A delivery and the response of the endpoint. */
export interface Result {
  readonly row: table.DeliveryRow;
  readonly answer: Answer;
}

/** HTTP status by which an endpoint unsubscribes. */
const gone = 410;
const surplusError = `Dropped: more than ${maxWaiting} deliveries waited while the endpoint accepted others.`;

/** Returns the row of a delivery that failed: `Failed` after the last attempt, else `Waiting` for the next. */
function afterFailure({ row, answer }: Result, now: number, random: number): table.DeliveryRow {
  const { status, error } = answer;
  const attempts = row.attempts + 1;
  const isLast = row.is_resend === 1 || status === gone || attempts >= maxAttempts || isOver(row.created, now);
  return {
    ...row,
    state: isLast ? "Failed" : "Waiting",
    attempts,
    status,
    error,
    due: isLast ? null : now + pauseAfter(attempts, random),
    ended: isLast ? now : null,
  };
}

/** Returns the webhook row after these results. */
function afterResults(webhook: table.WebhookRow, results: readonly Result[], now: number): table.WebhookRow {
  return results.reduce((before, { answer }) => {
    if (answer.error === null) return { ...before, state: "Active" as const, failing_since: null, error: null };
    // A time in the future was stored before the clock was set back.
    const since = Math.min(before.failing_since ?? now, now);
    const hasFailed = answer.status === gone || isOver(since, now);
    return { ...before, failing_since: since, error: answer.error, state: hasFailed ? "Failed" : before.state };
  }, webhook);
}

/** The results of one webhook, to be stored together. */
export interface Report {
  readonly webhook: table.WebhookRow;
  readonly results: readonly Result[];
  /** Ids of waiting deliveries beyond `maxWaiting`, the oldest first. */
  readonly surplus: readonly number[];
}

/** Effects on the queue of the webhook. */
export interface Recorded {
  /** Ids of deliveries that have ended. */
  readonly ended: readonly number[];
  /** Deliveries that are retried. */
  readonly again: readonly table.DeliveryRow[];
}

/** Stores the results of one webhook. `random` returns numbers in [0, 1). */
export async function record(
  tx: Tx,
  { webhook, results, surplus }: Report,
  now: number,
  random: () => number,
): Promise<Recorded> {
  const [delivered, failed] = [true, false].map((isDelivered) =>
    results.filter(({ answer }) => (answer.error === null) === isDelivered),
  ) as [Result[], Result[]];
  const ended: number[] = [];
  const again: table.DeliveryRow[] = [];
  for (const [status, same] of Map.groupBy(delivered, ({ answer }) => answer.status)) {
    const ids = same.map(({ row }) => row.id);
    await table.endDelivered(tx, ids, status, now);
    ended.push(...ids);
  }
  for (const result of failed) {
    const after = afterFailure(result, now, random());
    const { state, attempts, status, error, due, ended: end } = after;
    await table.updateDelivery(tx, after.id, { state, attempts, status, error, due, ended: end });
    if (due === null) ended.push(after.id);
    else again.push(after);
  }
  if (delivered.length > 0 && surplus.length > 0) {
    await table.failDeliveries(tx, surplus, surplusError, now);
    ended.push(...surplus);
  }
  if (ended.length > 0) await table.pruneDeliveries.run(tx, { webhook: webhook.id });
  await updateWebhookState(tx, webhook, afterResults(webhook, results, now), now);
  return { ended, again };
}

async function updateWebhookState(
  tx: Tx,
  before: table.WebhookRow,
  after: table.WebhookRow,
  now: number,
): Promise<void> {
  const { id, state, failing_since, error } = after;
  if (state === before.state && failing_since === before.failing_since && error === before.error) return;
  await table.updateWebhook(tx, id, { state, failing_since, error });
  // A webhook that was deleted meanwhile gets no further events.
  if (state === before.state || (await table.findWebhookById.first(tx, { id })) === undefined) return;
  await append(tx, [
    {
      type: "webhook.changed",
      date: now,
      project: before.project_id,
      resource: "webhook",
      id,
      data: JSON.stringify(showWebhook(after)),
    },
  ]);
}
