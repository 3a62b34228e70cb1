/** Parses the dates of requests and converts them to the form of responses. */
import { formatDate } from "@brume/api/common.ts";

const pattern =
  /^(\d{4})-(\d\d)-(\d\d)(?:[Tt ]([01]\d|2[0-3]):([0-5]\d):([0-5]\d|60)(?:\.(\d+))?(?:[Zz]|([+-])([01]\d|2[0-3]):([0-5]\d))?)?$/;

/**
 * Converts a date (RFC 3339) to UTC with three digits of milliseconds; more digits are cut off. Returns null for any other text. A time
 * without zone is UTC, a date without time is 00:00 UTC, and a leap second becomes the second after it.
 */
export function normaliseDate(text: string): string | null {
  const found = pattern.exec(text);
  if (found === null) return null;
  const [, year, month, day, hour, minute, second, fraction = "", sign, zoneHour, zoneMinute] = found;
  const at = new Date(0);
  at.setUTCFullYear(Number(year), Number(month) - 1, Number(day));
  if (at.getUTCMonth() !== Number(month) - 1 || at.getUTCDate() !== Number(day)) return null;
  const offset = (Number(zoneHour ?? 0) * 60 + Number(zoneMinute ?? 0)) * (sign === "-" ? -1 : 1);
  at.setUTCHours(Number(hour ?? 0), Number(minute ?? 0) - offset, Number(second ?? 0));
  at.setUTCMilliseconds(Number(fraction.slice(0, 3).padEnd(3, "0")));
  const inRange = at.getUTCFullYear() >= 0 && at.getUTCFullYear() <= 9999;
  return inRange ? formatDate(at.getTime()) : null;
}
