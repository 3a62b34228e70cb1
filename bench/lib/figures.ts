/** Lines of a benchmark with limits: the measured value, the limit, and whether it is kept. */
import { writeFileSync } from "node:fs";

/** One row of the printed table. */
export interface Line {
  readonly what: string;
  readonly value: number;
  readonly limit: number;
  readonly unit: string;
  /** The value must be at least the limit. Default: at most. */
  readonly atLeast?: boolean;
}

const show = (value: number): string => (value < 10 ? value.toFixed(2) : value.toFixed(0));

/**
 * Prints the lines as a table, and returns whether all limits are kept. If another benchmark runs this one, it gets the lines as JSON in the
 * file `BENCH_LINES`: see `others.ts`.
 */
export function report(lines: readonly Line[]): boolean {
  const file = process.env["BENCH_LINES"];
  if (file !== undefined) writeFileSync(file, JSON.stringify(lines));
  const isKept = ({ value, limit, atLeast = false }: Line) => (atLeast ? value >= limit : value <= limit);
  console.table(
    lines.map((line) => ({
      what: line.what,
      measured: `${show(line.value)} ${line.unit}`.trim(),
      limit: `${line.atLeast ? "at least" : "at most"} ${show(line.limit)} ${line.unit}`.trim(),
      result: isKept(line) ? "ok" : "MISSED",
    })),
  );
  const missed = lines.filter((line) => !isKept(line)).length;
  console.log(missed === 0 ? "All limits are kept." : `${missed} of ${lines.length} limits are missed.`);
  return missed === 0;
}

/** Returns the median of numbers. */
export const medianOf = (values: readonly number[]): number =>
  [...values].sort((a, b) => a - b)[values.length >> 1] ?? 0;

/** Returns the largest of numbers; 0 without any. */
export const mostOf = (values: readonly number[]): number => values.reduce((most, value) => Math.max(most, value), 0);
