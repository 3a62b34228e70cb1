/** Dates as requests write them and as answers show them. */
import { formatDate } from "@brume/api/common.ts";

const pattern =
  /^(\d{4})-(\d\d)-(\d\d)(?:[Tt ]([01]\d|2[0-3]):([0-5]\d):([0-5]\d|60)(?:\.(\d+))?(?:[Zz]|([+-])([01]\d|2[0-3]):([0-5]\d))?)?$/;

/**
 * RFC 3339; without a zone it is UTC, a date alone is its 00:00 UTC. Normalised to UTC with three digits of milliseconds (more
 * are cut off); null if the text is no date. A leap second is the second after it.
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
