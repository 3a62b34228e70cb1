/** What came of deliveries, written down: taken, to be tried again, or given up; and what that says of the endpoint. */
import type { Answer } from "../drivers/webhook/interface.ts";
import { append } from "../engine/event.ts";
import type { Tx } from "../store/db.ts";
import { isOver, mostAttempts, mostWaiting, pauseAfter } from "./model/rules.ts";
import { showWebhook } from "./model/show.ts";
import * as table from "./table.ts";

export interface Result {
  readonly row: table.DeliveryRow;
  readonly answer: Answer;
}

/** The endpoint says that it wants nothing any more. */
const gone = 410;
const given = `Given up: more than ${mostWaiting} deliveries waited while the endpoint took others.`;

/** What becomes of a delivery that the endpoint did not take. */
function afterFailure({ row, answer }: Result, now: number, random: number): table.DeliveryRow {
  const { status, error } = answer;
  const attempts = row.attempts + 1;
  const isLast = row.is_resend === 1 || status === gone || attempts >= mostAttempts || isOver(row.created, now);
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

/** The webhook as the results leave it. */
function judge(webhook: table.WebhookRow, results: readonly Result[], now: number): table.WebhookRow {
  return results.reduce((before, { answer }) => {
    if (answer.error === null) return { ...before, state: "Active" as const, failing_since: null, error: null };
    // One that lies ahead was stored before the clock was set back.
    const since = Math.min(before.failing_since ?? now, now);
    const hasFailed = answer.status === gone || isOver(since, now);
    return { ...before, failing_since: since, error: answer.error, state: hasFailed ? "Failed" : before.state };
  }, webhook);
}

/** What is known of one webhook when its results are written. */
export interface Report {
  readonly webhook: table.WebhookRow;
  readonly results: readonly Result[];
  /** Deliveries that wait beyond what is allowed, the oldest first. */
  readonly surplus: readonly number[];
}

export interface Recorded {
  /** Deliveries that wait no longer. */
  readonly ended: readonly number[];
  /** Deliveries that are tried again. */
  readonly again: readonly table.DeliveryRow[];
}

/** Writes the results of one webhook. */
export async function record(
  tx: Tx,
  { webhook, results, surplus }: Report,
  now: number,
  random: () => number,
): Promise<Recorded> {
  const [taken, failed] = [true, false].map((isTaken) =>
    results.filter(({ answer }) => (answer.error === null) === isTaken),
  ) as [Result[], Result[]];
  const ended: number[] = [];
  const again: table.DeliveryRow[] = [];
  for (const [status, same] of Map.groupBy(taken, ({ answer }) => answer.status)) {
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
  if (taken.length > 0 && surplus.length > 0) {
    await table.giveUp(tx, surplus, given, now);
    ended.push(...surplus);
  }
  if (ended.length > 0) await table.pruneDeliveries.run(tx, { webhook: webhook.id });
  await noteEndpoint(tx, webhook, judge(webhook, results, now), now);
  return { ended, again };
}

async function noteEndpoint(tx: Tx, before: table.WebhookRow, after: table.WebhookRow, now: number): Promise<void> {
  const { id, state, failing_since, error } = after;
  if (state === before.state && failing_since === before.failing_since && error === before.error) return;
  await table.updateWebhook(tx, id, { state, failing_since, error });
  // A webhook that was deleted meanwhile has no events behind that.
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
