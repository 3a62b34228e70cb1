/** What a webhook may be, and when a delivery is tried again. */
import type { FieldError } from "@brume/api/errors.ts";
import { eventTypes } from "@brume/api/event.ts";
import { webhookLimits } from "@brume/api/webhook.ts";
import { fieldError } from "../../base/error.ts";

export interface WebhookInput {
  readonly Url?: string;
  readonly Types?: readonly string[];
}

export const everyType = "*";

const isType = (text: string): boolean =>
  text.endsWith("*")
    ? eventTypes.some((type) => type.startsWith(text.slice(0, -1)))
    : (eventTypes as readonly string[]).includes(text);

/** Every fault of the fields that a schema does not see; which addresses may be called is looked up elsewhere. */
export function checkWebhook({ Url, Types }: WebhookInput): FieldError[] {
  const faults: FieldError[] = [];
  if (Url !== undefined) {
    const url = URL.canParse(Url) ? new URL(Url) : null;
    if (url === null || !["http:", "https:"].includes(url.protocol))
      faults.push(fieldError("/Url", "format_invalid", "Url must be an address that begins with https:// or http://."));
    else if (url.username !== "" || url.password !== "" || url.hash !== "")
      faults.push(fieldError("/Url", "format_invalid", "Url must hold no user name, no password and no fragment."));
  }
  Types?.forEach((type, index) => {
    if (!isType(type))
      faults.push(
        fieldError(
          `/Types/${index}`,
          "value_not_allowed",
          `Types must hold names of events such as record.created, or beginnings such as record.*, not ${JSON.stringify(type)}.`,
        ),
      );
  });
  return faults;
}

const firstPause = 5_000;
const factor = 3;
const longestPause = 3_600_000;

/** Milliseconds before the next attempt after `attempts` that failed: 5 s, 15 s, 45 s, … up to an hour, each up to a tenth more. */
export function pauseAfter(attempts: number, random: number): number {
  const pause = Math.min(longestPause, firstPause * factor ** Math.min(20, Math.max(0, attempts - 1)));
  return Math.round(pause * (1 + random / 10));
}

/** Whether a delivery waits for that time. One that lies farther ahead than any pause was stored before the clock was set back. */
export const isAhead = (due: number, now: number): boolean => due > now && due <= now + 1.1 * longestPause;

/** Attempts that fit into the patience, with some to spare: they bound a delivery also when the clock is set. */
export const mostAttempts = 60;

/** Whether a delivery from then, or an endpoint that has failed since then, is given up. */
export const isOver = (since: number, now: number): boolean => now - since >= webhookLimits.patience;

/**
 * Rows of one webhook that wait at most, but for a batch: the other events wait in their table. An endpoint that takes some and rejects
 * others has the oldest beyond this given up, so that other resources go on; one that takes nothing loses nothing for a day.
 */
export const mostWaiting = 1000;
