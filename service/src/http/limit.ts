/**
 * Rate limits of tokens that have one: a bucket each, which refills evenly, kept in memory only. The figures go out as
 * `RateLimit-Policy` and `RateLimit` (draft-ietf-httpapi-ratelimit-headers-10).
 */
import { ApiError } from "../base/error.ts";

export interface Rate {
  readonly requests: number;
  readonly seconds: number;
}

interface Bucket {
  level: number;
  /** When `level` was true, in milliseconds. */
  at: number;
  rate: Rate;
}

export interface Limiter {
  /**
   * Takes one request out of a token's bucket, or only looks. Puts the headers that tell of it into `headers`, also when it
   * throws `rate_limited`.
   */
  take(tokenId: number, rate: Rate, now: number, counted: boolean, headers: string[]): void;
}

/** Buckets are swept when there are more; a full one knows nothing that a new one would not. */
const sweepAbove = 1000;

export function createLimiter(): Limiter {
  const buckets = new Map<number, Bucket>();
  let sweepAt = sweepAbove;

  const fill = (bucket: Bucket, now: number): void => {
    const { requests, seconds } = bucket.rate;
    const gained = (Math.max(0, now - bucket.at) / 1000) * (requests / seconds);
    bucket.level = Math.min(requests, bucket.level + gained);
    bucket.at = now;
  };

  const sweep = (now: number): void => {
    for (const [tokenId, bucket] of buckets) {
      fill(bucket, now);
      if (bucket.level >= bucket.rate.requests) buckets.delete(tokenId);
    }
    sweepAt = Math.max(sweepAbove, buckets.size * 2);
  };

  const find = (tokenId: number, rate: Rate, now: number): Bucket => {
    const found = buckets.get(tokenId);
    if (found !== undefined) {
      found.rate = rate;
      fill(found, now);
      return found;
    }
    if (buckets.size >= sweepAt) sweep(now);
    const made = { level: rate.requests, at: now, rate };
    buckets.set(tokenId, made);
    return made;
  };

  return {
    take(tokenId, rate, now, counted, headers) {
      const bucket = find(tokenId, rate, now);
      const perRequest = rate.seconds / rate.requests;
      // A caller that waited exactly as long as it was told must not fail by a rounding error.
      const refused = counted && bucket.level < 1 - 1e-9;
      if (counted && !refused) bucket.level = Math.max(0, bucket.level - 1);
      const untilFull = Math.ceil((rate.requests - bucket.level) * perRequest);
      headers.push("RateLimit-Policy", `"token";q=${rate.requests};w=${rate.seconds}`);
      headers.push("RateLimit", `"token";r=${Math.floor(bucket.level + 1e-9)};t=${untilFull}`);
      if (refused)
        throw new ApiError(
          "rate_limited",
          `The token may send ${rate.requests} requests in ${rate.seconds} seconds.`,
          [],
          Math.ceil((1 - bucket.level) * perRequest),
        );
    },
  };
}
