/** The waiting deliveries of one webhook in the memory of the worker. Selects those that can be sent now, and the time of the next. */

import type { DeliveryRow, WebhookRow } from "../table.ts";
import { isAhead } from "./rules.ts";

/** Waiting deliveries of one webhook. */
export interface Queue {
  /** Waiting deliveries by id, in ascending order. */
  readonly rows: Map<number, DeliveryRow>;
  /** The rows must be read from the table before use. */
  isStale: boolean;
  /** Id of the last event that was scanned. */
  after: number;
  /** Number of deliveries that were never tried and can be sent now. */
  ready: number;
  /** Time (ms since 1970) before which nothing can be sent, unless a delivery or a result is added. Infinity: nothing waits. */
  quietUntil: number;
}

export const createQueue = (): Queue => ({ rows: new Map(), isStale: true, after: 0, ready: 0, quietUntil: 0 });

/** Deliveries with the same key are sent one after the other. A resend has a key of its own: it does not wait. */
const orderKey = (row: DeliveryRow): string =>
  row.is_resend === 1 ? `#${row.id}` : `${row.resource}:${row.resource_id}`;

/**
 * Returns the deliveries that can be sent now: the oldest of each resource. New deliveries and retries alternate, so that neither kind
 * blocks the other. Updates `ready` and `quietUntil` of the queue.
 */
export function findDue(
  queue: Queue,
  state: WebhookRow["state"],
  isInFlight: (row: DeliveryRow) => boolean,
  now: number,
): DeliveryRow[] {
  const seen = new Set<string>();
  const unsent: DeliveryRow[] = [];
  const retries: DeliveryRow[] = [];
  queue.quietUntil = Number.POSITIVE_INFINITY;
  for (const row of queue.rows.values()) {
    const key = orderKey(row);
    if (seen.has(key)) continue;
    seen.add(key);
    if (isInFlight(row) || (state === "Failed" && row.is_resend === 0)) continue;
    if (isAhead(row.due ?? 0, now)) queue.quietUntil = Math.min(queue.quietUntil, row.due ?? 0);
    else (row.attempts === 0 ? unsent : retries).push(row);
  }
  queue.ready = unsent.length;
  const due: DeliveryRow[] = [];
  for (let i = 0; i < Math.max(unsent.length, retries.length); i++)
    for (const row of [unsent[i], retries[i]]) if (row !== undefined) due.push(row);
  if (due.length > 0) queue.quietUntil = 0;
  return due;
}

/** Returns whether nothing can be sent now, unless a delivery or a result is added. */
export const isQuiet = ({ quietUntil }: Queue, now: number): boolean =>
  quietUntil === Number.POSITIVE_INFINITY || isAhead(quietUntil, now);
