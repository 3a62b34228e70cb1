/**
 * A histogram of durations whose observation costs three additions. The histogram of prom-client hashes and checks its labels on each
 * observation, which costs more than routing a request. The registry of prom-client prints this one like its own.
 */
import type { Metric } from "prom-client";

/** Upper bounds in seconds. */
const bounds = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60];

interface Series {
  readonly labels: Readonly<Record<string, string>>;
  /** Observations per bound, not cumulative. The last element counts those above all bounds. */
  readonly counts: Float64Array;
  sum: number;
}

/** A histogram of durations. */
export interface Durations {
  /** The histogram for the registry. */
  readonly metric: Metric;
  /** Returns the function that records a duration in seconds, for one set of labels. */
  series(labels: Readonly<Record<string, string>>): (seconds: number) => void;
}

/** Creates a histogram with the name and help text of its metric. */
export function createDurations(name: string, help: string): Durations {
  const all: Series[] = [];

  const read = ({ labels, counts, sum }: Series): object[] => {
    let count = 0;
    const buckets = [...bounds, "+Inf"].map((le, index) => {
      count += counts[index] ?? 0;
      return { metricName: `${name}_bucket`, labels: { le, ...labels }, value: count };
    });
    return [
      ...buckets,
      { metricName: `${name}_sum`, labels, value: sum },
      { metricName: `${name}_count`, labels, value: count },
    ];
  };

  const metric = {
    name,
    help,
    type: "histogram",
    aggregator: "sum",
    get: async () => ({ name, help, type: "histogram", aggregator: "sum", values: all.flatMap(read) }),
  };
  return {
    metric: metric as unknown as Metric,
    series(labels) {
      const series: Series = { labels, counts: new Float64Array(bounds.length + 1), sum: 0 };
      all.push(series);
      return (seconds) => {
        let at = 0;
        while (at < bounds.length && seconds > (bounds[at] as number)) at += 1;
        series.counts[at] = (series.counts[at] as number) + 1;
        series.sum += seconds;
      };
    },
  };
}
