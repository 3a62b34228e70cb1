/**
 * Response rate limiting: a name server that answers forged queries is a cannon in somebody else's hands. Equal answers to one
 * network (/24, /56) share a bucket of tokens; over the rate every second answer is an empty truncated one, so that a real
 * client behind a forged address comes through by TCP, and the rest is silence.
 */
import { networkOf, plainAddress } from "../../../base/address.ts";

const BUCKETS = 1 << 16;
/** Every n-th answer over the rate is sent, truncated. */
const SLIP = 2;

export type RateVerdict = "send" | "slip" | "drop";

export interface Limiter {
  /** Counts an answer of this `sameness` to an address as `dgram` writes it. */
  admit(address: string, sameness: number): RateVerdict;
}

/**
 * `rate` answers a second for each network and sameness, with one second's worth of burst. `now` is in milliseconds, `seed` a
 * random number that keeps outsiders from choosing who shares a bucket.
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
      // Whoever shares a bucket with a stranger gets a fresh one: wrong towards answering, and only by chance.
      const fresh = tags[bucket] !== tag || seen[bucket] === 0;
      const refilled = (tokens[bucket] as number) + ((time - (seen[bucket] as number)) * rate) / 1000;
      const left = fresh ? rate : Math.min(rate, refilled);
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

export function isLoopback(address: string): boolean {
  const plain = plainAddress(address);
  return plain.startsWith("127.") || plain === "::1";
}
