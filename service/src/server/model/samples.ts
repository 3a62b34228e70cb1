/**
 * How busy a server was, as numbers: from counters to rates, from rates to five minutes of points as they are stored, and from those to
 * the values that somebody asks for. A server costs 720 bytes in five minutes for a day, and 24 from then on.
 */

export const figureNames = ["Cpu", "MemoryUsed", "DiskRead", "DiskWrite", "NetIn", "NetOut"] as const;
export type FigureName = (typeof figureNames)[number];
const width = figureNames.length;

/** Milliseconds from point to point, and of what is stored together. */
export const pointTime = 10_000;
export const rowTime = 300_000;
const pointsPerRow = rowTime / pointTime;

/** Milliseconds for which points, and for which rows are kept. */
export const pointLife = 24 * 3_600_000;
export const rowLife = 30 * 24 * 3_600_000;

/** In the order of `figureNames`: percent of one core, MB, and four times bytes per second. NaN: not measured. */
export type Point = readonly number[];

/** What was counted until a moment. Bytes, but for the processor's milliseconds. */
export interface Counters {
  readonly at: number;
  /** Of the run that counts from 0: its start. */
  readonly since: number;
  readonly cpuTime: number;
  readonly diskRead: number;
  readonly diskWritten: number;
  readonly netIn: number;
  readonly netOut: number;
}

/** From one look to the next; `memory` is MB at the second. The first look at a run gives no rates. */
export function pointOf(before: Counters | undefined, now: Counters, memory: number): Point {
  const seconds = before === undefined || before.since !== now.since ? 0 : (now.at - before.at) / 1000;
  const rate = (key: "cpuTime" | "diskRead" | "diskWritten" | "netIn" | "netOut"): number => {
    const grown = now[key] - (before?.[key] ?? 0);
    // Cards that come and go take their counters with them.
    return seconds <= 0 || grown < 0 ? Number.NaN : grown / seconds;
  };
  return [rate("cpuTime") / 10, memory, rate("diskRead"), rate("diskWritten"), rate("netIn"), rate("netOut")];
}

export const rowStart = (at: number): number => Math.floor(at / rowTime) * rowTime;

/** Five minutes, point by point. */
export type Figures = Float32Array;

export const emptyFigures = (): Figures => new Float32Array(pointsPerRow * width).fill(Number.NaN);

/** Lays a point measured at `at` into its place of the row. What is not measured takes nothing away, such as just after a restart. */
export function put(figures: Figures, at: number, point: Point): void {
  const place = Math.floor((at % rowTime) / pointTime) * width;
  for (const [index, value] of point.entries()) if (!Number.isNaN(value)) figures[place + index] = value;
}

export function encode(figures: Figures): Uint8Array {
  const bytes = Buffer.alloc(figures.length * 4);
  for (const [index, value] of figures.entries()) bytes.writeFloatLE(value, index * 4);
  return bytes;
}

export function decode(bytes: Uint8Array): Figures {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return Float32Array.from({ length: Math.floor(buffer.length / 4) }, (_, index) => buffer.readFloatLE(index * 4));
}

/** The mean of all that was measured. */
export function coarsen(figures: Figures): Figures {
  const sums = figureNames.map(() => ({ sum: 0, count: 0 }));
  for (const [index, value] of figures.entries()) add(sums[index % width], value);
  return Float32Array.from(sums, meanOf);
}

interface Sum {
  sum: number;
  count: number;
}

function add(to: Sum | undefined, value: number): void {
  if (to === undefined || Number.isNaN(value)) return;
  to.sum += value;
  to.count += 1;
}

const meanOf = ({ sum, count }: Sum): number => (count === 0 ? Number.NaN : sum / count);

export interface Row {
  readonly start: number;
  readonly figures: Figures;
}

/**
 * One value per step from `from` on and before `to`: the mean of the points in it. A point that is longer than the step counts in all
 * that it covers; null is where nothing was measured. Values have at most three decimals.
 */
export function valuesOf(rows: readonly Row[], from: number, to: number, step: number) {
  const count = Math.max(0, Math.ceil((to - from) / step));
  const sums = figureNames.map(() => Array.from({ length: count }, (): Sum => ({ sum: 0, count: 0 })));
  for (const { start, figures } of rows) {
    const points = figures.length / width;
    const length = rowTime / points;
    for (const [index, value] of figures.entries()) {
      const at = start + Math.floor(index / width) * length;
      const first = Math.floor((at - from) / step);
      const last = length > step ? Math.floor((at + length - 1 - from) / step) : first;
      const own = sums[index % width] ?? [];
      for (let place = Math.max(0, first); place <= Math.min(last, count - 1); place++) add(own[place], value);
    }
  }
  const show = (sum: Sum): number | null => (sum.count === 0 ? null : Math.round(meanOf(sum) * 1000) / 1000);
  return {
    times: Array.from({ length: count }, (_, index) => from + index * step),
    series: Object.fromEntries(figureNames.map((name, index) => [name, (sums[index] ?? []).map(show)])) as Record<
      FigureName,
      (number | null)[]
    >,
  };
}
