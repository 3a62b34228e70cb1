/**
 * How long answers take: a histogram of the last minute in six slices, so that old answers fall out without being remembered
 * one by one. Reading the clock costs as much as a cached answer, so under load only every sixteenth is measured.
 */

const SLICES = 6;
const SLICE_MS = 10_000;
/** Below this many in a slice every answer is measured. */
const FEW = 1000;
/** Bucket i ends at 1.25^i microseconds: 64 reach beyond a second at an error of a quarter at most. */
const GROWTH = Math.log(1.25);
const BUCKETS = 64;

export interface Latency {
  /** Whether to measure the answer that comes now. */
  due(): boolean;
  /** Takes a duration in microseconds that ended at `now` (milliseconds). */
  add(duration: number, now: number): void;
  /** The 99th percentile of the minute before `now` in microseconds; 0 without answers. */
  p99(now: number): number;
}

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
