/**
 * Rate limits of tokens: one token bucket each, in memory only. The state of the bucket is sent as `RateLimit-Policy` and `RateLimit`
 * (draft-ietf-httpapi-ratelimit-headers-10).
 */
import { networkOf } from "../base/address.ts";
import { ApiError } from "../base/error.ts";

/** A rate limit. */
export interface Rate {
  readonly requests: number;
  readonly seconds: number;
}

interface Bucket {
  level: number;
  /** Time of `level` in milliseconds, on the steady clock. */
  at: number;
  rate: Rate;
}

/** The rate limits of all tokens. */
export interface Limiter {
  /**
   * Takes one request from the bucket of a token, or only reads it if `counted` is false. `now` is in ms on a steady clock. Adds the
   * headers of the rate limit to `headers`. Throws `rate_limited`, after adding the headers.
   */
  take(tokenId: number, rate: Rate, now: number, counted: boolean, headers: string[]): void;
}

/** Number of buckets above which full ones are deleted: a full bucket is the same as a new one. */
const sweepAbove = 1000;

/** Creates the rate limits. */
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
    const created = { level: rate.requests, at: now, rate };
    buckets.set(tokenId, created);
    return created;
  };

  return {
    take(tokenId, rate, now, counted, headers) {
      const bucket = find(tokenId, rate, now);
      const perRequest = rate.seconds / rate.requests;
      // A client that waited exactly `Retry-After` seconds must not fail by a rounding error.
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

/** Creates the limit of attempts to sign in, for each client network (IPv4 /24, IPv6 /56). */
export function createSignInLimit(rate: Rate): (address: string, now: number) => void {
  const { take } = createLimiter();
  return (address, now) => {
    try {
      take(networkOf(address), rate, now, true, []);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      const detail = `A network may sign in ${rate.requests} times in ${rate.seconds} seconds.`;
      throw new ApiError("rate_limited", detail, [], error.retryAfter);
    }
  };
}
