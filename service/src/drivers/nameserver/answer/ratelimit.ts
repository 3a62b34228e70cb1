/**
 * Response rate limiting, so that forged queries cannot use the server to attack others. Equal responses to one network (/24, /56) share a
 * token bucket. Over the rate every second response is sent empty and truncated, so that a real client at a forged address can retry over
 * TCP; the others are dropped.
 */
import { networkOf, plainAddress } from "../../../base/address.ts";

const BUCKETS = 1 << 16;
/** Every n-th response over the rate is sent, truncated. */
const SLIP = 2;

/** `slip`: send the response truncated. */
export type RateVerdict = "send" | "slip" | "drop";

/** A rate limit. */
export interface Limiter {
  /** Counts a response with this `sameness` to an address as `dgram` writes it, and returns what to do with it. */
  admit(address: string, sameness: number): RateVerdict;
}

/**
 * Creates a limit of `rate` responses per second for each network and sameness, with a burst of one second. `now` returns milliseconds.
 * `seed` is a random number that prevents clients from choosing who shares a bucket.
 */
export function createLimiter(rate: number, now: () => number, seed: number): Limiter {
  const tags = new Uint32Array(BUCKETS);
  const tokens = new Float32Array(BUCKETS);
  const seen = new Float64Array(BUCKETS);
  const slips = new Uint8Array(BUCKETS);

  return {
    admit(address, sameness) {
      const tag = mix(mix(seed, networkOf(address)), sameness) >>> 0;
      const bucket = (tag ^ (tag >>> 16)) & (BUCKETS - 1);
      const time = now();
      // On a collision the bucket starts full: this allows too many responses, but only by chance.
      const isNew = tags[bucket] !== tag || seen[bucket] === 0;
      const refilled = (tokens[bucket] as number) + ((time - (seen[bucket] as number)) * rate) / 1000;
      const left = isNew ? rate : Math.min(rate, refilled);
      tags[bucket] = tag;
      seen[bucket] = time;
      if (left >= 1) {
        tokens[bucket] = left - 1;
        return "send";
      }
      tokens[bucket] = left;
      const slip = ((slips[bucket] as number) + 1) % SLIP;
      slips[bucket] = slip;
      return slip === 0 ? "slip" : "drop";
    },
  };
}

function mix(hash: number, value: number): number {
  const mixed = Math.imul(hash ^ value, 0x9e3779b1);
  return mixed ^ (mixed >>> 15);
}

/** Returns whether the address is a loopback address. */
export function isLoopback(address: string): boolean {
  const plain = plainAddress(address);
  return plain.startsWith("127.") || plain === "::1";
}
