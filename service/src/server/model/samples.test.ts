import assert from "node:assert/strict";
import { test } from "node:test";
import {
  type Counters,
  coarsen,
  decode,
  emptyFigures,
  encode,
  merge,
  pointOf,
  pointTime,
  put,
  rowStart,
  rowTime,
  valuesOf,
} from "./samples.ts";

const counters = (at: number, more: Partial<Counters> = {}): Counters => ({
  at,
  since: 0,
  cpuTime: 0,
  diskRead: 0,
  diskWritten: 0,
  netIn: 0,
  netOut: 0,
  ...more,
});
const start = rowTime * 1000;

test("rates are the increase between two observations", () => {
  const later = counters(10_000, { cpuTime: 15_000, diskRead: 4096, diskWritten: 8192, netIn: 100, netOut: 50 });
  assert.deepEqual(pointOf(counters(0), later, 61), [150, 61, 409.6, 819.2, 10, 5]);
});

test("a first observation, a new start and a removed NIC give no rates", () => {
  const nothing = [Number.NaN, 7, Number.NaN, Number.NaN, Number.NaN, Number.NaN];
  assert.deepEqual(pointOf(undefined, counters(10_000), 7), nothing);
  assert.deepEqual(pointOf(counters(0), counters(10_000, { since: 5 }), 7), nothing);
  assert.deepEqual(pointOf(counters(0, { netIn: 9 }), counters(10_000), 7), [0, 7, 0, 0, Number.NaN, 0]);
});

test("encoded rows are decoded unchanged", () => {
  const figures = emptyFigures();
  put(figures, start + 3 * pointTime + 17, [1, 2, 3, 4, 5, 6]);
  const bytes = encode(figures);
  assert.deepEqual([bytes.length, decode(bytes)], [720, figures]);
  assert.deepEqual(encode(coarsen(figures)).length, 24);
  assert.equal(rowStart(start + rowTime - 1), start);
});

test("values that were not measured overwrite nothing", () => {
  const figures = emptyFigures();
  put(figures, start, [1, 2, 3, 4, 5, 6]);
  put(figures, start + 1, [Number.NaN, 9, Number.NaN, Number.NaN, Number.NaN, Number.NaN]);
  assert.deepEqual([...figures.subarray(0, 6)], [1, 9, 3, 4, 5, 6]);
});

test("a row has the values of both, and the later ones where both have one", () => {
  const [earlier, later] = [
    Float32Array.of(1, 2, Number.NaN, Number.NaN),
    Float32Array.of(5, Number.NaN, 6, Number.NaN),
  ];
  assert.deepEqual(merge(earlier, later), Float32Array.of(5, 2, 6, Number.NaN));
});

test("values are means of the points in their step, or null", () => {
  const figures = emptyFigures();
  for (let index = 0; index < 6; index++) put(figures, start + index * pointTime, [index, 1, 0, 0, 0, 0]);
  const { times, series } = valuesOf([{ start, figures }], start - 60_000, start + 120_000, 60_000);
  assert.deepEqual(times, [start - 60_000, start, start + 60_000]);
  assert.deepEqual(
    [series.Cpu, series.MemoryUsed],
    [
      [null, 2.5, null],
      [null, 1, null],
    ],
  );
  assert.deepEqual(valuesOf([{ start, figures }], start, start + 30_000, 10_000).series.Cpu, [0, 1, 2]);
});

test("a point of five minutes counts in every step that it covers", () => {
  const figures = emptyFigures();
  put(figures, start, [4, 1, 0, 0, 0, 0]);
  put(figures, start + pointTime, [8, 1, 0, 0, 0, 0]);
  const old = { start, figures: coarsen(figures) };
  assert.deepEqual(valuesOf([old], start - 60_000, start + 360_000, 60_000).series.Cpu, [null, 6, 6, 6, 6, 6, null]);
  assert.deepEqual(valuesOf([old], start, start + 2 * rowTime, 2 * rowTime).series.Cpu, [6]);
});
