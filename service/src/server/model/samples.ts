/**
 * Metrics of a server: from counters to rates, from rates to rows of five minutes, and from rows to the values of a response. A row has
 * 720 bytes on its first day, and 24 bytes after it.
 */

/** Series, in the order in which they are stored. */
const figureNames = ["Cpu", "MemoryUsed", "DiskRead", "DiskWrite", "NetIn", "NetOut"] as const;
/** A value of `figureNames`. */
export type FigureName = (typeof figureNames)[number];
const width = figureNames.length;
const isLittleEndian = new Uint8Array(Uint16Array.of(1).buffer)[0] === 1;

/** Milliseconds between two points, and milliseconds that one row covers. */
export const pointTime = 10_000;
export const rowTime = 300_000;
const pointsPerRow = rowTime / pointTime;

/** Milliseconds after which the points of a row are averaged, and after which a row is deleted. */
export const pointLife = 24 * 3_600_000;
export const rowLife = 30 * 24 * 3_600_000;

/** Values in the order of `figureNames`: percent of one core, MB, and four rates in bytes per second. NaN: not measured. */
export type Point = readonly number[];

/** Counters at one time: `cpuTime` is milliseconds of one core, the others are bytes. */
export interface Counters {
  /** Milliseconds. */
  readonly at: number;
  /** Start of the run in which the counters began at 0, in ms since 1970. */
  readonly since: number;
  readonly cpuTime: number;
  readonly diskRead: number;
  readonly diskWritten: number;
  readonly netIn: number;
  readonly netOut: number;
}

/** Returns the rates between two observations; `memory` is MB now. The first observation of a run has no rates. */
export function pointOf(before: Counters | undefined, now: Counters, memory: number): Point {
  const seconds = before === undefined || before.since !== now.since ? 0 : (now.at - before.at) / 1000;
  const rate = (key: "cpuTime" | "diskRead" | "diskWritten" | "netIn" | "netOut"): number => {
    const increase = now[key] - (before?.[key] ?? 0);
    // The counters of a removed NIC are lost, so a sum can decrease.
    return seconds <= 0 || increase < 0 ? Number.NaN : increase / seconds;
  };
  return [rate("cpuTime") / 10, memory, rate("diskRead"), rate("diskWritten"), rate("netIn"), rate("netOut")];
}

/** Returns the start of the row that contains the time, in ms. */
export const rowStart = (at: number): number => Math.floor(at / rowTime) * rowTime;

/** Values of the points of one row, one point after the other. */
export type Figures = Float32Array;

/** Returns a row without measured values. */
export const emptyFigures = (): Figures => new Float32Array(pointsPerRow * width).fill(Number.NaN);

/** Writes a point measured at `at` into the row. Values that were not measured, as after a restart, do not overwrite others. */
export function put(figures: Figures, at: number, point: Point): void {
  const place = Math.floor((at % rowTime) / pointTime) * width;
  // Not by `entries`, which creates a pair for each value: this runs for each server every ten seconds.
  for (let index = 0; index < width; index++) {
    const value = point[index] ?? Number.NaN;
    if (!Number.isNaN(value)) figures[place + index] = value;
  }
}

/** Returns a row with the values of both, and those of `later` where both have one. */
export function merge(earlier: Figures, later: Figures): Figures {
  return later.map((value, index) => (Number.isNaN(value) ? (earlier[index] ?? Number.NaN) : value));
}

/** Encodes a row as 32-bit floats, little endian. The result shares the memory of the row, unless the host has the other order of bytes. */
export function encode(figures: Figures): Uint8Array {
  const bytes = Buffer.from(figures.buffer, figures.byteOffset, figures.byteLength);
  return isLittleEndian ? bytes : Buffer.from(bytes).swap32();
}

/** Decodes a row. */
export function decode(bytes: Uint8Array): Figures {
  const figures = new Float32Array(Math.floor(bytes.byteLength / 4));
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  for (let index = 0; index < figures.length; index++) figures[index] = view.getFloat32(index * 4, true);
  return figures;
}

/** Returns the row reduced to one point: the mean of the measured values. */
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

/** A row with its start in ms since 1970. */
export interface Row {
  readonly start: number;
  readonly figures: Figures;
}

/**
 * Returns one value per step from `from` until before `to` (ms): the mean of its points. A point that is longer than a step counts in
 * every step that it covers. Null: nothing was measured. Values have at most three decimals.
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
      const series = sums[index % width] ?? [];
      for (let place = Math.max(0, first); place <= Math.min(last, count - 1); place++) add(series[place], value);
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
