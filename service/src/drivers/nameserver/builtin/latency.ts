/**
 * Measures the time from query to response: a histogram of the last minute in six slices, so that old values expire without being stored
 * individually. Reading the clock costs as much as a cached response, so under load only every sixteenth is measured.
 */

const SLICES = 6;
const SLICE_MS = 10_000;
/** Below this number in a slice, every response is measured. */
const FEW = 1000;
/** Bucket i ends at 1.25^i microseconds: 64 reach beyond a second at an error of a quarter at most. */
const GROWTH = Math.log(1.25);
const BUCKETS = 64;

/** The histogram. */
export interface Latency {
  /** Returns whether to measure the next response. */
  due(): boolean;
  /** Adds a duration in microseconds that ended at `now` (milliseconds). */
  add(duration: number, now: number): void;
  /** Returns the 99th percentile of the minute before `now` in microseconds; 0 without responses. */
  p99(now: number): number;
}

/** Creates an empty histogram. */
export function createLatency(): Latency {
  const slices = Array.from({ length: SLICES }, () => ({ epoch: -1, count: 0, buckets: new Uint32Array(BUCKETS) }));
  let current = slices[0] as (typeof slices)[number];
  let turn = 0;

  return {
    due: () => current.count < FEW || (turn++ & 15) === 0,
    add(duration, now) {
      const epoch = Math.floor(now / SLICE_MS);
      if (current.epoch !== epoch) {
        current = slices[epoch % SLICES] as (typeof slices)[number];
        current.epoch = epoch;
        current.count = 0;
        current.buckets.fill(0);
      }
      const bucket = Math.min(BUCKETS - 1, Math.max(0, Math.ceil(Math.log(Math.max(duration, 1)) / GROWTH)));
      current.buckets[bucket] = (current.buckets[bucket] as number) + 1;
      current.count++;
    },
    p99(now) {
      const oldest = Math.floor(now / SLICE_MS) - SLICES + 1;
      const recent = slices.filter((slice) => slice.epoch >= oldest);
      const total = recent.reduce((sum, slice) => sum + slice.count, 0);
      let left = Math.ceil(total * 0.99);
      for (let bucket = 0; bucket < BUCKETS && total > 0; bucket++) {
        for (const slice of recent) left -= slice.buckets[bucket] as number;
        if (left <= 0) return Math.round(Math.exp(bucket * GROWTH));
      }
      return 0;
    },
  };
}
