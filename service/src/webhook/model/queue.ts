/** The deliveries of one webhook that wait, as the worker holds them in memory: which can be sent now, and when the next can. */

import type { DeliveryRow, WebhookRow } from "../table.ts";
import { isAhead } from "./rules.ts";

export interface Queue {
  /** By id, those of the table with a due date. */
  readonly rows: Map<number, DeliveryRow>;
  /** To be read from the table before it is used. */
  isStale: boolean;
  /** Events up to this one were looked at. */
  after: number;
  /** Deliveries that were never tried and wait for nothing of their own resource. */
  fresh: number;
  /** Nothing can be sent before, as long as nothing comes. */
  quietUntil: number;
}

export const createQueue = (): Queue => ({ rows: new Map(), isStale: true, after: 0, fresh: 0, quietUntil: 0 });

/** What is sent one after the other; a resend has no turn. */
const laneOf = (row: DeliveryRow): string =>
  row.is_resend === 1 ? `#${row.id}` : `${row.resource}:${row.resource_id}`;

/**
 * What can be sent now: of each resource the oldest. New ones and repetitions alternate, so that neither waits for all of the other.
 * Notes in the queue how many new ones there are, and until when it is quiet.
 */
export function findDue(
  queue: Queue,
  state: WebhookRow["state"],
  isUnderWay: (row: DeliveryRow) => boolean,
  now: number,
): DeliveryRow[] {
  const lanes = new Set<string>();
  const fresh: DeliveryRow[] = [];
  const again: DeliveryRow[] = [];
  queue.quietUntil = Number.POSITIVE_INFINITY;
  for (const row of queue.rows.values()) {
    const lane = laneOf(row);
    if (lanes.has(lane)) continue;
    lanes.add(lane);
    if (isUnderWay(row) || (state === "Failed" && row.is_resend === 0)) continue;
    if (isAhead(row.due ?? 0, now)) queue.quietUntil = Math.min(queue.quietUntil, row.due ?? 0);
    else (row.attempts === 0 ? fresh : again).push(row);
  }
  queue.fresh = fresh.length;
  const due: DeliveryRow[] = [];
  for (let i = 0; i < Math.max(fresh.length, again.length); i++)
    for (const row of [fresh[i], again[i]]) if (row !== undefined) due.push(row);
  if (due.length > 0) queue.quietUntil = 0;
  return due;
}

/** Nothing can be sent now, as long as nothing comes. */
export const isQuiet = ({ quietUntil }: Queue, now: number): boolean =>
  quietUntil === Number.POSITIVE_INFINITY || isAhead(quietUntil, now);
