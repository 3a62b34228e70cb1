/** Ranges of IPv4 addresses. Pure. */

/** First and last address as numbers. */
export type AddressRange = readonly [first: number, last: number];

function numberOf(address: string): number {
  const parts = address.split(".");
  if (parts.length !== 4 || !parts.every((part) => /^\d{1,3}$/.test(part))) return Number.NaN;
  return parts.reduce((sum, part) => sum * 256 + Number(part), 0);
}

/** Returns the range of an IPv4 address, a block, or a range; null: it is none of them. */
export function rangeOf(item: string): AddressRange | null {
  const [from = "", to] = item.trim().split("-");
  const [address = "", prefix = "32"] = from.split("/");
  const size = 2 ** (32 - Number(prefix));
  const first = Math.floor(numberOf(address) / size) * size;
  const last = to === undefined ? first + size - 1 : numberOf(to);
  return Number.isNaN(first + last) ? null : [first, last];
}

export const overlaps = (one: AddressRange, other: AddressRange): boolean => one[0] <= other[1] && one[1] >= other[0];
