/**
 * JSON numbers as they were written. A double forgets the difference between `10` and `10.0`, and digits beyond the sixteenth;
 * here a number is judged by its text, without ever unfolding an exponent that a hostile client chose.
 */

interface Decimal {
  readonly negative: boolean;
  /** Without zeros at either end; empty: the number is zero. */
  readonly digits: string;
  /** The number is 0.digits × 10^point. */
  readonly point: number;
}

/** `text` is a number of RFC 8259. */
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

/** The value if there is no fraction (`10.0` and `1e3` are integers), else null. Too large for a double: infinite. */
export function toInteger(text: string): number | null {
  const { digits, point } = parse(text);
  if (digits === "") return 0;
  return digits.length <= point ? Number(text) : null;
}

/** The shortest way to write the same number without an exponent; null if it is beyond what a double can hold. */
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
