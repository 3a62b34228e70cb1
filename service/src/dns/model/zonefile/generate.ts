/** BIND's $GENERATE: one line that expands to many records; `$` is replaced by the numbers of a range. */

import { quote } from "../../../base/quote.ts";
import { type NameError, refuseName } from "../name.ts";

const maxSteps = 65_536;

/** The numbers from `start` to `stop`, included. */
export interface Range {
  readonly start: number;
  readonly stop: number;
  readonly step: number;
}

/** Parses `1-254` or `0-100/2`; at most 65,536 steps. */
export function readRange(text: string): Range | NameError {
  const match = /^(\d{1,10})-(\d{1,10})(?:\/(\d{1,10}))?$/.exec(text);
  const [start, stop, step] = [match?.[1], match?.[2], match?.[3] ?? "1"].map(Number) as [number, number, number];
  if (match === null || step < 1 || start > stop || stop > 2_147_483_647)
    return refuseName("format_invalid", `the range must be such as 1-254 or 0-100/2, not ${quote(text)}`);
  if ((stop - start) / step >= maxSteps)
    return refuseName("out_of_range", `the range must have at most ${maxSteps} steps, not as many as ${quote(text)}`);
  return { start, stop, step };
}

/**
 * Returns a word with every `$` and `${offset,width,base}` replaced: base `d`, `o`, `x`, `X` for numbers, `n`, `N` for reversed nibbles.
 * `$$` and `\$` are a dollar sign.
 */
export function expand(word: string, value: number): string | NameError {
  if (!word.includes("$")) return word;
  let out = "";
  for (let at = 0; at < word.length; ) {
    const next = word.charAt(at + 1);
    if (word.charAt(at) === "\\") {
      out += next === "$" ? next : `\\${next}`;
      at += 2;
    } else if (word.charAt(at) !== "$") out += word.charAt(at++);
    else if (next === "$") {
      out += "$";
      at += 2;
    } else if (next === "{") {
      const end = word.indexOf("}", at);
      const match = /^\{(-?\d{1,10})(?:,(\d{1,3})(?:,([doxXnN]))?)?$/.exec(word.slice(at + 1, Math.max(end, at + 1)));
      const number = value + Number(match?.[1]);
      const width = Number(match?.[2] ?? 0);
      if (match === null || width > 255 || number < 0)
        return refuseName(
          "format_invalid",
          `must have an offset, width and base such as \${0,3,d}, not ${quote(word)}`,
        );
      out += format(number, width, match[3] ?? "d");
      at = end + 1;
    } else {
      out += String(value);
      at++;
    }
  }
  return out;
}

function format(number: number, width: number, base: string): string {
  if (base === "d") return String(number).padStart(width, "0");
  if (base === "o") return number.toString(8).padStart(width, "0");
  const hex = base === "x" || base === "n" ? number.toString(16) : number.toString(16).toUpperCase();
  if (base === "x" || base === "X") return hex.padStart(width, "0");
  // The width of nibbles includes their dots.
  return hex
    .padStart(Math.ceil(width / 2), "0")
    .split("")
    .reverse()
    .join(".");
}
