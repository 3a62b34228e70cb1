/** Rules for webhooks: validation of their fields, retry times and limits of deliveries. */
import type { FieldError } from "@brume/api/errors.ts";
import { eventTypes } from "@brume/api/event.ts";
import { webhookLimits } from "@brume/api/webhook.ts";
import { fieldError } from "../../base/error.ts";

export interface WebhookInput {
  readonly Url?: string;
  readonly Types?: readonly string[];
}

/** Event type that matches all types. */
export const everyType = "*";

const isType = (text: string): boolean =>
  text.endsWith("*")
    ? eventTypes.some((type) => type.startsWith(text.slice(0, -1)))
    : (eventTypes as readonly string[]).includes(text);

/** Returns the errors of the fields that the schema does not check. The sender checks which addresses are allowed. */
export function checkWebhook({ Url, Types }: WebhookInput): FieldError[] {
  const errors: FieldError[] = [];
  if (Url !== undefined) {
    const url = URL.canParse(Url) ? new URL(Url) : null;
    if (url === null || !["http:", "https:"].includes(url.protocol))
      errors.push(
        fieldError("/Url", "format_invalid", "Url must be a valid address that begins with https:// or http://."),
      );
    else if (url.username !== "" || url.password !== "" || url.hash !== "")
      errors.push(fieldError("/Url", "format_invalid", "Url must not contain a user name, a password or a fragment."));
  }
  Types?.forEach((type, index) => {
    if (!isType(type))
      errors.push(
        fieldError(
          `/Types/${index}`,
          "value_not_allowed",
          `Types must contain event types such as record.created, or prefixes such as record.*, not ${JSON.stringify(type)}.`,
        ),
      );
  });
  return errors;
}

const firstPause = 5_000;
const factor = 3;
const longestPause = 3_600_000;

/** Returns the ms before the next attempt after `attempts` failures: 5 s, 15 s, 45 s, … up to 1 h, each plus up to 10 %. */
export function pauseAfter(attempts: number, random: number): number {
  const pause = Math.min(longestPause, firstPause * factor ** Math.min(20, Math.max(0, attempts - 1)));
  return Math.round(pause * (1 + random / 10));
}

/** Returns whether `due` is in the future. A time later than any pause allows was stored before the clock was set back, and is due. */
export const isAhead = (due: number, now: number): boolean => due > now && due <= now + 1.1 * longestPause;

/** More attempts than `webhookLimits.patience` allows: limits a delivery even if the clock is changed. */
export const maxAttempts = 60;

/** Returns whether a delivery created at `since`, or an endpoint that has failed since then, has failed for good. */
export const isOver = (since: number, now: number): boolean => now - since >= webhookLimits.patience;

/**
 * Maximum number of waiting deliveries per webhook, plus one batch; further events wait in the event table. If an endpoint accepts some
 * deliveries and rejects others, the oldest beyond this number fail, so that other resources continue. An endpoint that accepts none loses
 * none for a day.
 */
export const maxWaiting = 1000;
