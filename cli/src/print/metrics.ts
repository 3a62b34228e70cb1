/** Measurements of a server for people: one line per series, with a small chart. */
import type { ServerMetrics } from "@brume/api/monitor.ts";
import { align, cell } from "./table.ts";

const units = ["B", "kB", "MB", "GB", "TB"];
const bars = "▁▂▃▄▅▆▇█";
/** Width of a chart in characters. */
const chartWidth = 40;

/** Returns bytes per second with a unit: `1.5 MB/s`. */
export function rate(bytes: number | null): string {
  if (bytes === null) return "-";
  let value = bytes;
  let unit = 0;
  while (value >= 1000 && unit < units.length - 1) {
    value /= 1000;
    unit++;
  }
  return `${unit === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${units[unit]}/s`;
}

const number = (unit: string) => (value: number | null) =>
  value === null ? "-" : `${Number(value.toFixed(1))}${unit}`;

const rows: readonly (readonly [
  name: keyof ServerMetrics["Series"],
  header: string,
  format: (value: number | null) => string,
])[] = [
  ["Cpu", "CPU", number(" %")],
  ["MemoryUsed", "MEMORY", number(" MB")],
  ["DiskRead", "READ", rate],
  ["DiskWrite", "WRITE", rate],
  ["NetIn", "IN", rate],
  ["NetOut", "OUT", rate],
];

const meanOf = (values: readonly number[]) =>
  values.length === 0 ? null : values.reduce((sum, value) => sum + value, 0) / values.length;

/** Returns one character per step, or per several steps: its height is the mean, relative to the maximum. No measurement is a blank. */
export function chart(series: readonly (number | null)[], most: number = chartWidth): string {
  const known = series.filter((value) => value !== null);
  const top = Math.max(...known, 0);
  const size = Math.max(1, Math.ceil(series.length / most));
  const characters: string[] = [];
  for (let start = 0; start < series.length; start += size) {
    const mean = meanOf(series.slice(start, start + size).filter((value) => value !== null));
    characters.push(mean === null ? " " : (bars[top === 0 ? 0 : Math.round((mean / top) * (bars.length - 1))] ?? " "));
  }
  return characters.join("");
}

/** Returns a table with the last value, mean and maximum of each series, and its chart from the earliest to the last time. */
export function formatMetrics({ Step, Times, Series }: ServerMetrics): string[] {
  const lines = rows.map(([name, header, format]) => {
    const known = Series[name].filter((value) => value !== null);
    const most = known.length === 0 ? null : Math.max(...known);
    return [header, format(known.at(-1) ?? null), format(meanOf(known)), format(most), chart(Series[name])];
  });
  return [
    `${cell(Times[0])} to ${cell(Times.at(-1))} UTC, one value per ${Step} s`,
    ...align([["SERIES", "LAST", "MEAN", "MAXIMUM", "CHART"], ...lines]),
  ];
}
