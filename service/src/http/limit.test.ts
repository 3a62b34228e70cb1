import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { ApiError } from "../base/error.ts";
import { createLimiter, type Limiter, type Rate } from "./limit.ts";

const isTaken = (limiter: Limiter, rate: Rate, now: number, token = 1): boolean => {
  try {
    limiter.take(token, rate, now, true, []);
    return true;
  } catch (error) {
    assert.ok(error instanceof ApiError && error.code === "rate_limited");
    return false;
  }
};

describe("a bucket", () => {
  test("a request after Retry-After is always accepted", () => {
    const rates = fc.record({
      requests: fc.integer({ min: 1, max: 1000 }),
      seconds: fc.integer({ min: 1, max: 86_400 }),
    });
    fc.assert(
      fc.property(rates, (rate) => {
        const limiter = createLimiter();
        for (let i = 0; i < rate.requests; i++) assert.ok(isTaken(limiter, rate, 0));
        let wait = 0;
        assert.throws(
          () => limiter.take(1, rate, 0, true, []),
          (error) => {
            wait = (error as ApiError).retryAfter ?? 0;
            return true;
          },
        );
        assert.ok(wait >= 1);
        assert.ok(isTaken(limiter, rate, wait * 1000));
      }),
      { numRuns: 30 },
    );
  });

  test("accepts at most its capacity and the refill, however requests are distributed", () => {
    const times = fc.array(fc.integer({ min: 0, max: 120_000 }), { maxLength: 300 });
    fc.assert(
      fc.property(times, (unsorted) => {
        const limiter = createLimiter();
        const rate = { requests: 10, seconds: 60 };
        const taken = unsorted.toSorted((a, b) => a - b).filter((now) => isTaken(limiter, rate, now));
        for (const [i, from] of taken.entries())
          for (let j = i; j < taken.length; j++)
            assert.ok(j - i + 1 <= 10 + ((taken[j] as number) - from) / 6000 + 1e-6);
      }),
      { numRuns: 30 },
    );
  });

  test("a clock that is set back removes no tokens", () => {
    const limiter = createLimiter();
    const rate = { requests: 2, seconds: 1 };
    assert.ok(isTaken(limiter, rate, 10_000));
    assert.ok(isTaken(limiter, rate, 5000));
    assert.ok(!isTaken(limiter, rate, 5000));
  });

  test("each token has its own bucket, also if there are very many", () => {
    const limiter = createLimiter();
    const rate = { requests: 1, seconds: 60 };
    for (let token = 0; token < 3000; token++) assert.ok(isTaken(limiter, rate, 0, token));
    for (let token = 0; token < 3000; token++) assert.ok(!isTaken(limiter, rate, 1000, token));
  });
});
