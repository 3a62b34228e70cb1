/**
 * Evaluates JSON numbers by their text. A double loses the difference between `10` and `10.0`, and digits beyond the sixteenth. An exponent
 * is never expanded, because a hostile client can choose it.
 */

interface Decimal {
  readonly negative: boolean;
  /** Digits without leading and trailing zeros; empty: the number is zero. */
  readonly digits: string;
  /** The number is 0.digits × 10^point. */
  readonly point: number;
}

/** Parses a number of RFC 8259. */
function parse(text: string): Decimal {
  const [, sign, whole = "", fraction = "", exponent = "0"] =
    /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(text) ?? [];
  const all = whole + fraction;
  const digits = all.replace(/^0+/, "");
  return {
    negative: sign === "-",
    digits: digits.replace(/0+$/, ""),
    point: whole.length - (all.length - digits.length) + Number(exponent),
  };
}

/** Returns the value of an integer (`10.0` and `1e3` are integers), else null. Infinity: too large for a double. */
export function toInteger(text: string): number | null {
  const { digits, point } = parse(text);
  if (digits === "") return 0;
  return digits.length <= point ? Number(text) : null;
}

/** Returns the shortest text of the number without exponent; null if a double cannot represent it. */
export function toPlain(text: string): string | null {
  const { negative, digits, point } = parse(text);
  if (digits === "") return "0";
  const value = Number(text);
  if (!Number.isFinite(value) || value === 0) return null;
  const plain =
    point <= 0
      ? `0.${"0".repeat(-point)}${digits}`
      : digits.length <= point
        ? digits.padEnd(point, "0")
        : `${digits.slice(0, point)}.${digits.slice(point)}`;
  return negative ? `-${plain}` : plain;
}
