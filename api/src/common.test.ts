/** Dates in the form of responses. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { formatDate } from "./common.ts";

test("a date has the form of Date.toISOString", () => {
  const odd = [0, 999, 951_782_400_000, 951_868_799_999, 4_107_542_400_000, -1, -62_135_596_800_000];
  const ends = [Date.UTC(9999, 11, 31, 23, 59, 59, 999), Date.UTC(10_000, 0, 1), 1_700_000_000_000.7];
  for (const ms of [...odd, ...ends]) assert.equal(formatDate(ms), new Date(ms).toISOString());
  const day = 86_400_000;
  // Every day of 800 years, each at another time.
  for (let days = 0; days < 292_200; days++) {
    const ms = days * day + ((days * 7_919_317) % day);
    if (formatDate(ms) !== new Date(ms).toISOString()) assert.equal(formatDate(ms), new Date(ms).toISOString());
  }
  assert.throws(() => formatDate(Number.NaN), RangeError);
});
